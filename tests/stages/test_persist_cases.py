"""Reported failures with large results and bad images, as transcripts; what has to come out right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from core.context.decisions import Replaced
from core.model import block_text, is_media
from core.service.history import output, search
from core.service.session import Session, opened
from core.stages.base import Plan, Scene, applied
from core.stages.edits import store_bodies
from core.stages.media import Media, MediaSettings
from core.stages.microcompact import Microcompact, placeholder
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.transcript.blob import media_blob
from core.transcript.persisted import gone_outputs, persisted_outputs
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.stages.build import MODEL, History, items, pairs_are_whole, resumed, run, sent, shown, text

CASES = Path(__file__).parent.parent / "data" / "cases"
SESSION = "11111111-1111-4111-8111-111111111111"


@contextmanager
def case(name: str, tmp_path: Path) -> Iterator[tuple[Session, Store]]:
    path = tmp_path / f"{SESSION}.jsonl"
    shutil.copyfile(CASES / f"{name}.jsonl", path)
    with opened(session_file(path)) as session:
        yield session, Store.beside(path)


def scene_of(session: Session, store: Store) -> Scene:
    return Scene(session.messages, MODEL, store_folder=str(store.folder))


def budget(session: Session, store: Store, settings: ToolBudgetSettings | None = None) -> ToolBudget:
    """The stage, with what the client recorded of the session."""
    assert session.claude
    log, chain = session.claude
    persisted = persisted_outputs(log, chain.entries)
    return ToolBudget(settings, frozenset(persisted), gone_outputs(persisted, store))


def stored(plan: Plan) -> list[str]:
    return [d.id for d in plan.decisions if isinstance(d, Replaced)]


# persist-1: the file that an output was stored in is gone


def test_a_preview_without_its_file_stays_and_sends_nobody_to_the_file(tmp_path: Path) -> None:
    with case("persist-1", tmp_path) as (session, store):
        _, scene = run(budget(session, store), scene_of(session, store))
    said = str(shown(scene, "toolu_m")["content"])
    assert "/nonexistent" not in said
    assert "is gone" in said
    assert "Preview (first 2KB):\na\nb\n" in said


def test_a_preview_whose_file_is_there_is_left_alone(tmp_path: Path) -> None:
    with case("persist-1", tmp_path) as (session, store):
        store.folder.mkdir(parents=True)
        (store.folder / "toolu_m.txt").write_bytes(b"all of it")
        plan = budget(session, store, ToolBudgetSettings(result_chars=10, results_chars=10)).plan(
            scene_of(session, store)
        )
        assert output(session, "toolu_m").text == "all of it"
    assert stored(plan) == []
    assert not plan.bodies


def test_reading_back_says_what_is_missing_and_shows_the_preview(tmp_path: Path) -> None:
    with case("persist-1", tmp_path) as (session, _):
        said = output(session, "toolu_m").text
    assert "Preview (first 2KB):\na\nb\n" in said
    assert "toolu_m: the stored output toolu_m.txt is gone" in said


# persist-3: a file's own text holds the markers


def test_a_file_that_holds_the_markers_is_an_ordinary_result(tmp_path: Path) -> None:
    with case("persist-3", tmp_path) as (session, store):
        assert session.claude
        assert persisted_outputs(session.claude.log, session.claude.chain.entries) == {}
        plan, scene = run(budget(session, store), scene_of(session, store))
        assert stored(plan) == []
        assert sent(scene) == sent(scene_of(session, store))
    assert scene.state.seen == {"toolu_f"}


def test_a_long_file_that_holds_the_markers_is_stored_like_any_other(tmp_path: Path) -> None:
    with case("persist-3", tmp_path) as (session, store):
        scene = scene_of(session, store)
        prompt, call, results, answer = session.messages
        content = str(results.content[0]["content"]) + "6\tmore text\n" * 100
        longer = replace(results, content=({**results.content[0], "content": content},))
        scene = replace(scene, messages=(prompt, call, longer, answer), forced=True)
        plan, scene = run(
            budget(session, store, ToolBudgetSettings(result_chars=1_000, preview_bytes=200, exempt=())), scene
        )
        assert store_bodies(store, scene, plan) == plan
    assert stored(plan) == ["toolu_f"]
    assert (store.folder / "toolu_f.txt").read_text() == content


def test_no_path_that_stands_in_a_file_is_followed(tmp_path: Path) -> None:
    with case("persist-3", tmp_path) as (session, store):
        content = str(session.messages[2].content[0]["content"])
        assert "Full output saved to: /srv/app/evil.txt" in content
        store.folder.mkdir(parents=True)
        (store.folder / "evil.txt").write_text("what the path leads to", encoding="utf-8")
        assert output(session, "toolu_f").text == content
        assert {hit.id for hit in search(session, "persisted-output").hits} == {"toolu_f"}


@pytest.mark.parametrize("marker", ["[Old tool result content cleared]", placeholder("toolu_f")])
def test_a_file_that_says_that_it_was_cleared_is_cleared_like_any_other(tmp_path: Path, marker: str) -> None:
    history = History().prompt("Go.").use("toolu_f", "Read", f"{marker}\n" * 400, file_path="/srv/a.md")
    for n in range(8):
        history.use(f"t{n}", "Bash", "ok", command="make")
    plan, scene = run(Microcompact(), history.scene(forced=True))
    assert stored(plan) == ["toolu_f"]
    assert shown(scene, "toolu_f")["content"] == placeholder("toolu_f")
    assert Microcompact().plan(scene).decisions == ()


# persist-4: each result within the limit, all together far over it


EIGHT = ToolBudgetSettings(results_chars=100_000)


def test_the_largest_are_stored_until_the_message_fits_ids_and_order_stay(tmp_path: Path) -> None:
    with case("persist-4", tmp_path) as (session, store):
        before = scene_of(session, store)
        plan, after = run(budget(session, store, EIGHT), before)
    assert stored(plan) == ["toolu_e0", "toolu_e1", "toolu_e2", "toolu_e3"]
    results = [b for m in after.view().messages for b in m.content if b["type"] == "tool_result"]
    assert [b["tool_use_id"] for b in results] == [f"toolu_e{n}" for n in range(8)]
    assert sum(len(block_text(b)) for b in results) <= 100_000
    assert pairs_are_whole(after.view().messages)
    assert plan.tokens_freed == before.total_tokens - after.total_tokens > 10_000


def test_which_ones_went_is_decided_once(tmp_path: Path) -> None:
    with case("persist-4", tmp_path) as (session, store):
        plan, scene = run(budget(session, store, EIGHT), scene_of(session, store))
        again = resumed(scene, plan.decisions)
        assert sent(again) == sent(scene)
        assert budget(session, store, ToolBudgetSettings(results_chars=10)).plan(again).decisions == ()


def test_the_next_turn_keeps_every_byte_of_what_was_sent(tmp_path: Path) -> None:
    with case("persist-4", tmp_path) as (session, store):
        plan, scene = run(budget(session, store, EIGHT), scene_of(session, store))
        more = replace(session.messages[0], uuids=("later",), content=(text("And then?"),))
        again = replace(resumed(scene, plan.decisions), messages=(*session.messages, more))
        assert budget(session, store, EIGHT).plan(again).decisions == ()
    assert sent(again).startswith(sent(scene)[:-1])


def test_a_list_stays_a_list_whose_preview_says_what_and_how_much_is_stored_and_it_is_stored(tmp_path: Path) -> None:
    with case("persist-4", tmp_path) as (session, store):
        scene = scene_of(session, store)
        plan, scene = run(budget(session, store, EIGHT), scene)
        assert store_bodies(store, scene, plan) == plan
        whole = [b for m in session.messages for b in m.content if b.get("tool_use_id") == "toolu_e0"]
        assert output(session, "toolu_e0").text == block_text(whole[0])
    (block,) = items(scene, "toolu_e0")
    assert "20,010 characters (text, 20,010 bytes)" in block["text"]
    assert f"path: {store.folder / 'toolu_e0.txt'}" in block["text"]
    assert (store.folder / "toolu_e0.txt").read_text().startswith("channel 0 mmm")


def test_nothing_is_said_to_be_stored_that_could_not_be(tmp_path: Path) -> None:
    with case("persist-4", tmp_path) as (session, store):
        scene = scene_of(session, store)
        plan = budget(session, store, EIGHT).plan(scene)
        store.folder.parent.write_bytes(b"a file where the folder should be")
        plan = store_bodies(store, scene, plan)
        after = applied(scene, plan)
    assert stored(plan) == []
    assert " and 3 more stay, they could not be stored: " in plan.reason
    assert sent(after) == sent(scene)


# compactfail-2: one turn, one huge result


def test_one_huge_result_is_stored_though_there_is_nothing_to_summarise(tmp_path: Path) -> None:
    with case("compactfail-2", tmp_path) as (session, store):
        before = scene_of(session, store)
        plan, after = run(budget(session, store), before)
        store_bodies(store, before, plan)
        assert output(session, "toolu_big").text == "E" * 60_000
        assert [hit.id for hit in search(session, "EEE").hits] == ["toolu_big"]
        again = budget(session, store).plan(after)
    assert stored(plan) == ["toolu_big"]
    assert plan.verdict is not None
    assert plan.verdict.pays
    assert plan.tokens_freed > 10_000
    assert pairs_are_whole(after.view().messages)
    assert after.view().messages[0] == before.messages[0]
    assert str(store.folder / "toolu_big.txt") in str(shown(after, "toolu_big")["content"])
    assert again == Plan("budget")


# image-1: one of 25 images is none


def test_just_the_bad_image_goes_by_the_id_of_its_call(tmp_path: Path) -> None:
    with case("image-1", tmp_path) as (session, store):
        scene = scene_of(session, store)
        plan, after = run(Media(MediaSettings("named", ("toolu_i3",))), scene)
        assert store_bodies(store, scene, plan) == plan
        again = resumed(scene, plan.decisions)
    assert len(plan.decisions) == 1
    assert pairs_are_whole(after.view().messages)
    path = store.folder / f"{plan.bodies[0].id}.png"
    digest = plan.bodies[0].id.removeprefix("media-")[:8]
    assert items(after, "toolu_i3") == [text(f"[image: image/png, 9 bytes, {digest}, saved at {path}]")]
    assert path.read_bytes() == b"not-a-png"
    others = [items(after, f"toolu_i{n}")[0] for n in range(25) if n != 3]
    assert all(is_media(block) for block in others)
    assert sent(again) == sent(after)


@pytest.mark.parametrize("by", ["message", "body"])
def test_the_bad_image_goes_by_other_ids_too(tmp_path: Path, by: str) -> None:
    with case("image-1", tmp_path) as (session, store):
        scene = scene_of(session, store)
        message = next(m for m in session.messages if any(b.get("tool_use_id") == "toolu_i3" for b in m.content))
        ident = message.uuid if by == "message" else media_blob(items(scene, "toolu_i3")[0]).id
        _, after = run(Media(MediaSettings("named", (ident,))), scene)
    assert [n for n in range(25) if not is_media(items(after, f"toolu_i{n}")[0])] == [3]


def test_all_images_can_go(tmp_path: Path) -> None:
    with case("image-1", tmp_path) as (session, store):
        plan, after = run(Media(MediaSettings("all")), scene_of(session, store))
    assert len(plan.decisions) == 25
    assert len(plan.bodies) == 2  # 24 of them are the same
    assert b'"type":"image"' not in sent(after)
    assert pairs_are_whole(after.view().messages)
