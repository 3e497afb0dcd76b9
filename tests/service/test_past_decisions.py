"""What a session that is written anew takes along of what was decided before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.context.decisions import CacheEdited, Decision, MediaReplaced, Replaced, Snipped, fold
from core.errors import WriteFailed
from core.model import Block, Message, block_text, tool_results
from core.service.history import output
from core.service.operation import Target
from core.service.past_decisions import decided, with_contents_back
from core.service.session import opened
from core.service.stages import StageResult, run_stages
from core.service.undo import undo
from core.stages.base import Plan, Stored
from core.testing import Transcript
from core.transcript.blob import media_blob
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.disk import messages, tree
from tests.stages.build import image

LONG = "a line of a file\n" * 200


@pytest.fixture
def made() -> Transcript:
    made = Transcript().prompt("Look")
    for name in ("a", "a", "b"):
        made.use("Read", LONG, file_path=f"/{name}.py")
    return made.answer("Fine").prompt("Go on").answer("Done")


@pytest.fixture
def path(made: Transcript, tmp_path: Path) -> Path:
    return made.write(tmp_path / "projects" / "-srv-app" / f"{made.session_id}.jsonl")


def written(path: Path | str, *decisions: Decision, bodies: tuple[Stored, ...] = (), in_place: bool = False) -> Path:
    """The session with some decisions."""
    return Path(result_of(path, *decisions, bodies=bodies, in_place=in_place).output)


def result_of(
    path: Path | str, *decisions: Decision, bodies: tuple[Stored, ...] = (), in_place: bool = False
) -> StageResult:
    path = Path(path)
    target = Target(path.parents[2] / "locks", None, in_place)
    return run_stages(session_file(path), "some", ("x",), lambda _: [Plan("some", decisions, bodies)], target)


def body(call: str, content: str = LONG) -> Stored:
    return Stored(call, "Read", {"type": "tool_result", "tool_use_id": call, "content": content})


def read(path: Path, ident: str) -> str:
    with opened(session_file(path), whole=True) as session:
        return output(session, ident).text


def shown(path: Path, call: str) -> str:
    return next(block_text(b) for m in messages(path) for b in tool_results(m) if b["tool_use_id"] == call)


def pointer(made: Transcript) -> tuple[Replaced, Stored]:
    """The second read points to the first."""
    first, second = made.calls[:2]
    return Replaced(second, f"[see {first}]", "unchanged", leans_on=first), body(second)


def snip(made: Transcript, *rows: int) -> Snipped:
    return Snipped("abcdef01-0000", tuple(str(made.rows[n]["uuid"]) for n in rows), "[gone, snip-abcdef01]")


@pytest.mark.parametrize("in_place", [False, True])
def test_where_a_pointer_leads_nowhere_any_more_the_content_comes_back(
    made: Transcript, path: Path, in_place: bool
) -> None:
    decision, whole = pointer(made)
    first = written(path, decision, bodies=(whole,), in_place=in_place)
    assert shown(first, decision.id) == decision.text

    result = result_of(first, snip(made, 1, 2), in_place=in_place)
    again = Path(result.output)
    assert shown(again, decision.id) == LONG
    assert result.tokens_after < result.tokens_before + 100
    assert not result_of(again, snip(made, 1, 2), in_place=False).changed


def test_a_pointer_stays_where_what_it_points_to_stays(made: Transcript, path: Path) -> None:
    decision, whole = pointer(made)
    first = written(path, decision, bodies=(whole,))
    again = written(first, Replaced(made.calls[2], "[cleared]", "cleared"), bodies=(body(made.calls[2]),))

    assert shown(again, decision.id) == decision.text
    assert read(again, decision.id) == LONG


def test_a_content_that_cannot_be_read_back_does_not_come_back(made: Transcript, path: Path) -> None:
    decision, whole = pointer(made)
    first = written(path, decision, bodies=(whole,))
    (Store.beside(first).folder / f"{decision.id}.txt").write_text("changed by someone")

    assert shown(written(first, snip(made, 1, 2)), decision.id) == decision.text


def test_one_content_that_is_gone_keeps_no_other_from_coming_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.put("t1", LONG).unlink()
    store.put("t2", LONG)
    blocks: tuple[Block, ...] = tuple(
        {"type": "tool_result", "tool_use_id": call, "content": "[see t0]"} for call in ("t1", "t2")
    )
    pointing = [Replaced(call, "[see t0]", "unchanged", leans_on="t0") for call in ("t1", "t2")]

    (back,) = with_contents_back((Message("user", "results", blocks),), fold(pointing), store)
    assert [block["content"] for block in back.content] == ["[see t0]", LONG]


def test_without_pointers_nothing_is_looked_for_and_another_text_is_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.put("t2", LONG)
    block: Block = {"type": "tool_result", "tool_use_id": "t2", "content": "something else"}
    found = (Message("user", "results", ({"type": "text", "text": "x"}, block)),)

    assert with_contents_back(found, fold([]), store) == found
    (same,) = with_contents_back(found, fold([Replaced("t2", "[see t1]", "unchanged", leans_on="t1")]), store)
    assert same is found[0]


@pytest.mark.parametrize("gone", [CacheEdited(("t1",), "u"), Replaced("t1", "[cleared]", "cleared")])
def test_what_is_there_but_not_whole_is_nothing_to_point_to(tmp_path: Path, gone: Decision) -> None:
    store = Store(tmp_path / "store")
    store.put("t2", LONG)
    blocks: tuple[Block, ...] = tuple(
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": [{"type": "text", "text": text}]}
        for n, text in ((1, LONG), (2, "[see t1]"))
    )
    found = (Message("user", "results", blocks),)
    pointing = Replaced("t2", "[see t1]", "unchanged", leans_on="t1")

    assert with_contents_back(found, fold([pointing]), store) == found
    (back,) = with_contents_back(found, fold([pointing, gone]), store)
    assert back.content[1]["content"] == [{"type": "text", "text": LONG}]


# Bodies


def test_what_was_stored_for_the_source_is_with_each_session_that_goes_on_from_it(made: Transcript, path: Path) -> None:
    call, other = made.calls[0], made.calls[2]
    first = written(path, Replaced(call, f"[foldmark output {call}]", "cleared"), bodies=(body(call),))
    second = written(first, Replaced(other, "[cleared]", "cleared"), bodies=(body(other),))
    third = written(second, snip(made, 1, 2))
    before = tree(third.parent)

    for session in (path, first, second):
        session.unlink()
        shutil.rmtree(session.with_suffix(""), ignore_errors=True)
    assert read(third, call) == LONG
    assert read(third, other) == LONG
    assert {b.id for b in Store.beside(third).bodies()} >= {call, other, "snip-abcdef01"}
    assert {name for name in before if third.stem in name} == set(tree(third.parent))


def test_images_are_taken_along_and_undo_leaves_none_of_it(path: Path) -> None:
    made = Transcript().prompt("x").answer("y").prompt("z").use("Bash", LONG, command="make").answer("w")
    made.rows[0]["message"] = {"role": "user", "content": [image()]}
    blob = media_blob(image())
    stored = (Stored(blob.id, "", image()),)
    first = written(made.write(path), MediaReplaced(str(made.rows[0]["uuid"]), blob.id, "[image]"), bodies=stored)
    before = tree(path.parent)
    second = written(first, snip(made, 3, 4))

    assert Store.beside(second).content(blob.file) == blob.content
    undo(session_file(second), path.parents[2], path.parents[2] / "locks")
    assert tree(path.parent) == before


def test_in_place_everything_is_there_already(made: Transcript, path: Path) -> None:
    call = made.calls[0]
    written(path, Replaced(call, "[cleared]", "cleared"), bodies=(body(call),), in_place=True)
    before = tree(path.parent)
    written(path, snip(made, 5, 6), in_place=True)

    added = {name for name in tree(path.parent) if name not in before}
    assert {Path(name).name for name in added} == {"compacted-snip-abcdef01.md"}
    assert read(path, call) == LONG


def test_what_cannot_be_taken_along_stops_the_whole_and_leaves_nothing(
    made: Transcript, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = made.calls[0]
    first = written(path, Replaced(call, "[cleared]", "cleared"), bodies=(body(call),))
    before = tree(path.parent)

    def full(*_: object) -> None:
        raise WriteFailed("no space left")

    monkeypatch.setattr(Store, "adopt", full)
    with pytest.raises(WriteFailed):
        written(first, snip(made, 5, 6))
    assert tree(path.parent) == before


@pytest.mark.parametrize("in_place", [False, True])
def test_decisions_of_a_session_are_those_of_before_too_each_once(made: Transcript, path: Path, in_place: bool) -> None:
    one, two = (Replaced(call, "[cleared]", "cleared") for call in made.calls[:2])
    first = written(path, one, bodies=(body(one.id),), in_place=in_place)
    second = written(first, two, bodies=(body(two.id),), in_place=in_place)
    with opened(session_file(second)) as session:
        assert decided(session) == (one, two)
