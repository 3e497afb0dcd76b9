"""Shortening tool results alone: when a copy is written, and what the result says of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from core.model import Block
from core.service.compact import CompactResult
from core.service.micro import micro
from core.service.operation import Target
from core.service.stages import StageSettings
from core.stages.tool_budget import ToolBudgetSettings
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import messages

UNSIGNED: Block = {"type": "thinking", "thinking": "Hm.", "signature": ""}
DEFAULT = StageSettings()
SMALL = ToolBudgetSettings(result_chars=5_000)


def shortened(
    path: Path,
    known: StageSettings = DEFAULT,
    budget: ToolBudgetSettings | None = None,
    *,
    in_place: bool = False,
    out_dir: Path | None = None,
) -> CompactResult:
    return micro(session_file(path), Target(path.parent.parent / "locks", out_dir, in_place), known, budget)


def transcripts(folder: Path) -> set[Path]:
    return set(folder.rglob("*.jsonl"))


def test_a_message_without_content_is_no_reason_to_write_a_copy(tmp_path: Path) -> None:
    made = Transcript().prompt("Look").use("Read", "x = 1\n", file_path="a.py").respond(UNSIGNED).prompt("More")
    path = made.use("Read", "y = 2\n", file_path="b.py").respond(UNSIGNED).write(tmp_path / "a.jsonl")
    assert not all(m.content for m in messages(path))

    result = shortened(path)

    assert (result.changed, result.how, result.output) == (False, "none", str(path))
    assert result.loss.reachable == 0
    assert transcripts(tmp_path) == {path}


def test_what_was_written_is_named_also_when_it_saves_nothing(tmp_path: Path) -> None:
    path = Transcript().prompt("Look").use("Bash", "", command="true").write(tmp_path / "a.jsonl")

    result = shortened(path)

    assert (result.changed, result.how) == (True, "micro")
    assert result.tokens_after == result.tokens_before
    assert transcripts(tmp_path) == {path, Path(result.output)}
    assert Path(result.output).stem == result.session_id != path.stem


def test_in_place_the_transcript_itself_is_named(tmp_path: Path) -> None:
    path = (
        Transcript().prompt("Look").use("Read", "x = 1\n", file_path="a.py").answer("Done").write(tmp_path / "a.jsonl")
    )
    before = path.read_bytes()

    result = shortened(path, in_place=True)

    assert (result.changed, result.how, result.output) == (True, "micro", str(path))
    assert path.read_bytes().startswith(before)
    assert not shortened(path, in_place=True).changed


def busy() -> Transcript:
    made = Transcript().prompt("Look")
    for n in range(30):
        made.use("Bash", f"line {n} of code\n" * 700, command=f"cat src/mod{n}.py").answer(f"Read {n}.")
    return made


def test_what_comes_to_something_else_is_another_session(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "a.jsonl")
    cold = StageSettings(now=datetime(2030, 1, 1, tzinfo=UTC))
    asked = [
        (StageSettings(forced=True), None),
        (cold, SMALL),
        (cold, replace(SMALL, preview_bytes=100)),
    ]
    results = [shortened(path, known, budget) for known, budget in asked]

    assert [r.changed for r in results] == [True] * len(asked), results
    assert len({r.session_id for r in results}) == len({Path(r.output).read_bytes() for r in results}) == len(asked)


def test_what_comes_to_the_same_is_the_same_session_wherever_it_is_written(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "a.jsonl")
    cold = StageSettings(now=datetime(2030, 1, 1, tzinfo=UTC))
    first = shortened(path, cold, SMALL)
    again = shortened(path, replace(cold, now=datetime(2031, 1, 1, tzinfo=UTC)), SMALL)
    elsewhere = shortened(path, cold, SMALL, out_dir=tmp_path / "other")

    assert first.changed
    assert (again.changed, again.reason, again.output) == (False, "the same was written before", first.output)
    assert elsewhere.session_id == first.session_id
    assert str(Path(elsewhere.output).with_suffix("")) in Path(elsewhere.output).read_text()
    assert str(Path(first.output).with_suffix("")) not in Path(elsewhere.output).read_text()
