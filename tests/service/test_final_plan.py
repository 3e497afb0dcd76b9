"""What a compaction makes of earlier decisions, of pointers to what goes, and of images in what is kept."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.context.decisions import (
    CacheEdited,
    Collapsed,
    Committed,
    Decision,
    MediaReplaced,
    Nudged,
    Replaced,
    Seen,
    Snipped,
    Withdrawn,
)
from core.model import JSON, Block, Message, block_text, is_media, tool_results
from core.service.history import output
from core.service.operation import Target
from core.service.past_decisions import decided, still_about
from core.service.session import opened
from core.service.stages import StageResult, StageSettings, run_stages
from core.service.undo import undo
from core.stages.base import Stage
from core.stages.read_dedup import ReadDedup
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.testing import Transcript
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.disk import compacted, messages, tree
from tests.stages.build import image

LONG = "".join(f"line {n} of the output\n" for n in range(600))
SMALL = ToolBudget(ToolBudgetSettings(result_chars=5_000, results_chars=6_000, preview_bytes=100))
TINY = ToolBudget(ToolBudgetSettings(result_chars=20, results_chars=30, preview_bytes=5))


@pytest.fixture
def made() -> Transcript:
    """Old work, and a tail with a long and a short output."""
    made = Transcript().prompt("Look").use("Bash", LONG, command="make old").answer("I looked. " * 2_000)
    made.prompt("Again").use("Bash", LONG, command="make new").use("Bash", "short, but there\n" * 20, command="make it")
    return made.answer("Fine.")


@pytest.fixture
def path(made: Transcript, tmp_path: Path) -> Path:
    return made.write(tmp_path / "projects" / "-srv-app" / f"{made.session_id}.jsonl")


def staged(path: Path | str, stage: Stage, in_place: bool = False) -> StageResult:
    target = Target(Path(path).parents[2] / "locks", None, in_place)
    known = StageSettings(forced=True)
    return run_stages(session_file(Path(path)), stage.name, (), lambda run: [stage.plan(run.scene)], target, known)


def decisions(path: Path | str) -> tuple[Decision, ...]:
    with opened(session_file(Path(path))) as session:
        return decided(session)


def shown(path: Path | str) -> dict[str, str]:
    return {str(b["tool_use_id"]): block_text(b) for m in messages(path) for b in tool_results(m)}


def read(path: Path | str, ident: str) -> str:
    with opened(session_file(Path(path)), whole=True) as session:
        return output(session, ident).text


# Decisions


@pytest.mark.parametrize("in_place", [False, True])
def test_what_was_decided_about_kept_results_holds_in_the_new_session(
    made: Transcript, path: Path, in_place: bool
) -> None:
    _, new, short = made.calls
    first = staged(path, SMALL, in_place).output
    text = shown(first)[new]
    result = compacted(Path(first), 800, in_place=in_place)

    assert result.changed
    assert {*shown(result.output)} == {new, short}
    assert shown(result.output)[new] == text
    again = staged(result.output, TINY, in_place)
    assert not again.changed or in_place
    assert shown(again.output) == shown(result.output)
    assert {i for d in decisions(result.output) if isinstance(d, Seen) for i in d.ids} == {short}


def test_what_was_decided_about_what_is_gone_is_left_behind(made: Transcript, path: Path) -> None:
    new = made.calls[1]
    result = compacted(Path(staged(path, SMALL).output), 800)

    assert [d.id for d in decisions(result.output) if isinstance(d, Replaced)] == [new]
    assert all(getattr(d, "at_request", None) is None for d in decisions(result.output))


def test_outputs_that_gave_way_before_are_whole_in_the_new_session_without_the_others(
    made: Transcript, path: Path
) -> None:
    first = Path(staged(path, SMALL).output)
    result = Path(compacted(first, 800).output)

    for session in (path, first):
        session.unlink()
        shutil.rmtree(session.with_suffix(""), ignore_errors=True)
    assert [read(result, call) for call in made.calls[:2]] == [LONG, LONG]


EVERY: tuple[tuple[Decision, Decision | None], ...] = (
    (Seen(("t1", "lost")), Seen(("t1",))),
    (Seen(("lost",)), None),
    (Replaced("t1", "x", "cleared", at_request=9), Replaced("t1", "x", "cleared")),
    (Replaced("lost", "x", "cleared"), None),
    (MediaReplaced("t1", "media-1", "x", 9), MediaReplaced("t1", "media-1", "x")),
    (MediaReplaced("u1", "media-1", "x", 9), MediaReplaced("u1", "media-1", "x")),
    (MediaReplaced("lost", "media-1", "x"), None),
    (Snipped("s1", ("lost",), "x", at_request=9), Snipped("s1", ("lost",), "x")),
    (Snipped("lost", ("u1",), "x"), None),
    (Collapsed("c1", ("lost",), "x", at_request=9), Collapsed("c1", ("lost",), "x")),
    (Collapsed("lost", ("u1",), "x"), None),
    (Committed(("c1", "lost"), 9), Committed(("c1",))),
    (Committed(("lost",), 9), None),
    (Withdrawn(("s1",), "x", 9), None),
    (CacheEdited(("t1",), "u1", 9), None),
    (Nudged(1_000, 9), None),
)


@pytest.mark.parametrize(("before", "after"), EVERY, ids=lambda d: type(d).__name__)
def test_decisions_hold_for_what_is_kept_and_have_no_date(before: Decision, after: Decision | None) -> None:
    block: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    kept = [Message("user", "results", (block,), (uuid,)) for uuid in ("u1", "s1", "c1")]

    assert still_about([before], kept) == (() if after is None else (after,))


# Pointers


@pytest.mark.parametrize("in_place", [False, True])
def test_a_kept_result_that_points_to_what_goes_has_its_content_again(tmp_path: Path, in_place: bool) -> None:
    made = Transcript().prompt("Look").use("Read", LONG, file_path="/a.py").answer("I looked. " * 2_000)
    made.prompt("Again").use("Read", LONG, file_path="/a.py").answer("The same.")
    path = made.write(tmp_path / "projects" / "-srv-app" / f"{made.session_id}.jsonl")
    first, second = made.calls
    stubbed = staged(path, ReadDedup(), in_place).output
    assert first in shown(stubbed)[second]

    result = compacted(Path(stubbed), 800, in_place=in_place)
    assert shown(result.output) == {second: LONG}
    assert read(result.output, second) == LONG


# Images


def with_images(tmp_path: Path) -> Path:
    """One in the tail, in a result, and a bad one that a person pasted."""
    picture: list[JSON] = [image(), {"type": "text", "text": "as you see"}]
    made = Transcript().prompt("Look").use("Read", picture, file_path="/old.png").answer("I looked. " * 2_000)
    made.prompt("Again").use("Read", picture, file_path="/new.png").answer("The same.")
    made.prompt("And this").answer("Fine.")
    made.rows[-2]["message"] = {"role": "user", "content": [image(b"no image"), {"type": "text", "text": "And this"}]}
    return made.write(tmp_path / "projects" / "-srv-app" / f"{made.session_id}.jsonl")


def pictures(found: Sequence[Message]) -> int:
    held = [b for m in found for b in m.content]
    inner = [b["content"] for b in held if b["type"] == "tool_result"]
    return sum(map(is_media, held)) + sum(is_media(i) for c in inner if isinstance(c, list) for i in c)


@pytest.mark.parametrize("in_place", [False, True])
def test_after_a_compaction_no_image_from_before_is_in_the_view(tmp_path: Path, in_place: bool) -> None:
    path = with_images(tmp_path)
    before = tree(path.parent)
    result = compacted(path, 6_000, in_place=in_place)
    after = messages(result.output)

    assert result.changed
    assert pictures(messages(path) if not in_place else ()) == (0 if in_place else 3)
    assert len([m for m in after if m.kind == "results"]) == 1
    assert pictures(after) == 0
    store = Store.beside(Path(result.output))
    said = "\n".join(block_text(b) for m in after for b in m.content)
    assert said.count("saved at ") == 2
    assert {store.read(b) for b in store.bodies() if b.kind == "image"} >= {b"no image"}
    assert all(str(store.folder / b.file) in said for b in store.bodies() if b.kind == "image")

    undo(session_file(Path(result.output)), path.parents[2], path.parents[1] / "locks")
    assert tree(path.parent) == before


def test_what_a_dry_run_promises_counts_the_notes(tmp_path: Path) -> None:
    path = with_images(tmp_path)
    promised = compacted(path, 6_000, dry_run=True)
    assert tree(path.parent) == {path.name: path.read_bytes()}
    assert compacted(path, 6_000).tokens_after == promised.tokens_after


def test_a_session_without_decisions_and_images_has_no_decisions_afterwards(made: Transcript, path: Path) -> None:
    result = compacted(path, 800)
    assert decisions(result.output) == ()
    assert b'"decisions"' not in Path(result.output).read_bytes()
