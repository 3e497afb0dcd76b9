"""Shortening tool results alone: when a copy is written, and what the result says of it."""

from __future__ import annotations

from pathlib import Path

from core.model import Block
from core.service.compact import CompactResult, Target
from core.service.micro import micro
from core.service.stages import StageSettings
from core.stages.tool_budget import ToolBudgetSettings
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import messages

UNSIGNED: Block = {"type": "thinking", "thinking": "Hm.", "signature": ""}


def shortened(
    path: Path,
    known: StageSettings = StageSettings(),
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
