from __future__ import annotations

import base64
from pathlib import Path

import pytest

from core.context.decisions import Decision, MediaReplaced
from core.model import Block, is_media, tool_results
from core.stages.base import Plan, Scene, applied
from core.stages.edits import store_bodies
from core.stages.media import Media, MediaSettings
from core.stages.tool_budget import ToolBudget
from core.transcript.blob import media_blob
from core.transcript.store import Store
from tests.disk import stored
from tests.stages.build import PNG, History, image, items, resumed, run, sent, text

PDF = b"%PDF-1.7 /Type /Page /Type /Page"


def picture(n: int, width: int = 800, size: int = 100) -> Block:
    return image(PNG[:16] + width.to_bytes(4, "big") + PNG[20:] + bytes([n]) * size)


def session() -> History:
    """Pictures that the user gave and that tools gave, in two turns."""
    history = (
        History().prompt("Old.", picture(1)).use("t1", "Read", [picture(2, size=900), text("and text"), picture(3)])
    )
    history.answer("Seen.").prompt("Now.").use("t2", "Read", [picture(4)])
    return history


def left(scene: Scene) -> list[Block]:
    """All images and documents that the model sees."""
    found: list[Block] = []
    for message in scene.view().messages:
        found += [b for b in message.content if is_media(b)]
        for block in tool_results(message):
            content = block["content"]
            found += [b for b in content if isinstance(b, dict) and is_media(b)] if isinstance(content, list) else []
    return found


def after(settings: MediaSettings, history: History) -> list[Block]:
    return left(run(Media(settings), history.scene())[1])


# What is picked


def test_old_ones_go_but_the_newest_that_the_user_gave() -> None:
    assert after(MediaSettings(), session()) == [picture(1), picture(4)]
    again = session().prompt("More.", picture(5))
    assert after(MediaSettings(), again) == [picture(5)]


def test_the_only_one_goes_also_when_the_user_gave_it() -> None:
    assert after(MediaSettings(), History().prompt("Old.", picture(1)).answer("Seen.").prompt("Now.")) == []


def test_without_a_prompt_all_is_the_last_turn() -> None:
    assert after(MediaSettings(), History().use("t1", "Read", [picture(1), picture(2)])) == [picture(1), picture(2)]


def test_without_a_number_the_largest_half_goes() -> None:
    history = History().prompt("Go.", picture(0, size=5_000))
    for n in range(1, 6):
        history.use(f"t{n}", "Read", [picture(n, size=100 * n)])
    assert after(MediaSettings("large"), history) == [
        picture(0, size=5_000),
        picture(1, size=100),
        picture(2, size=200),
    ]


@pytest.mark.parametrize(
    ("settings", "stay"),
    [
        (MediaSettings("large", max_bytes=1_000), ["wide", "pdf"]),
        (MediaSettings("large", max_side_pixels=2_000), ["heavy", "pdf"]),
        (MediaSettings("large", max_pages=1), ["wide", "heavy"]),
        (MediaSettings("large", max_side_pixels=2_000, max_pages=1), ["heavy"]),
        (MediaSettings("large", max_bytes=10_000_000), ["wide", "heavy", "pdf"]),
    ],
)
def test_what_is_over_a_stated_limit_goes_whoever_gave_it(settings: MediaSettings, stay: list[str]) -> None:
    media = {"wide": picture(1, width=9_000), "heavy": picture(2, size=900), "pdf": image(PDF, "application/pdf")}
    assert after(settings, History().prompt("Go.", *media.values())) == [media[name] for name in stay]


def test_a_limit_counts_the_base64() -> None:
    block = picture(1)
    size = len(base64.b64encode(media_blob(block).content))
    history = History().prompt("Go.", block)
    assert after(MediaSettings("large", max_bytes=size), history) == [block]
    assert after(MediaSettings("large", max_bytes=size - 1), history) == []


def test_all_are_all() -> None:
    assert after(MediaSettings("all"), session()) == []


@pytest.mark.parametrize(
    ("ids", "gone"),
    [
        (("t1",), [2, 3]),
        (("u1",), [1]),
        (("u3",), [2, 3]),
        ((media_blob(picture(3)).id,), [3]),
        (("t2", "u1"), [1, 4]),
        (("nobody",), []),
        ((), []),
    ],
)
def test_by_the_id_of_a_call_a_message_or_a_body(ids: tuple[str, ...], gone: list[int]) -> None:
    pictures = {1: picture(1), 2: picture(2, size=900), 3: picture(3), 4: picture(4)}
    stay = [block for n, block in pictures.items() if n not in gone]
    assert after(MediaSettings("named", ids), session()) == stay


# What stands in their place


def test_the_note_says_what_it_was_and_where_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    scene = session().prompt("And?", image(PDF, "application/pdf")).scene(store_folder=str(store.folder))
    plan, scene = run(Media(MediaSettings("all")), scene)
    assert store_bodies(store, scene, plan) == plan
    body = media_blob(picture(2, size=900))
    size, digest = len(body.content), body.id.removeprefix("media-")[:8]
    first, second, _ = items(scene, "t1")
    assert first == text(f"[image: image/png, 800x600, {size} bytes, {digest}, saved at {store.folder / body.file}]")
    assert second == text("and text")
    assert (store.folder / body.file).read_bytes() == body.content
    pdf = str(scene.view().messages[-1].content[1]["text"])
    assert pdf.startswith(f"[document: application/pdf, 2 pages, {len(PDF)} bytes, ")
    found = stored(store, media_blob(image(PDF, "application/pdf")).id)
    assert found is not None
    assert (found.kind, store.read(found)) == ("document", PDF)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"type": "url", "url": "https://example.org/a.png"}, "url"),
        ({"type": "file", "file_id": "file_1"}, "file"),
        ({"type": "base64", "media_type": "image/png", "data": "no base64"}, "image/png"),
        (None, "unknown"),
    ],
)
def test_what_holds_no_bytes_is_stored_as_its_json(tmp_path: Path, source: Block | None, kind: str) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    block: Block = {"type": "image", "source": source}
    scene = History().prompt("Go.", block).scene(store_folder=str(store.folder))
    plan, scene = run(Media(MediaSettings("all")), scene)
    store_bodies(store, scene, plan)
    blob = media_blob(block)
    note = str(scene.view().messages[0].content[1]["text"])
    assert note.startswith(f"[image: {kind}, {len(blob.content)} bytes, ")
    assert note.endswith(f"saved at {store.folder / blob.file}]")
    assert blob.file.endswith(".json")
    assert (store.folder / blob.file).read_bytes() == blob.content


def test_the_same_picture_twice_has_one_body_and_two_notes() -> None:
    history = History().prompt("Go.", picture(1), picture(1)).use("t1", "Read", [picture(1)])
    plan, scene = run(Media(MediaSettings("all")), history.scene())
    assert len(plan.bodies) == 1
    assert [d.owner for d in plan.decisions if isinstance(d, MediaReplaced)] == ["u1", "t1"]
    assert left(scene) == []


def test_a_picture_whose_body_cannot_be_stored_stays(tmp_path: Path) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    store.folder.mkdir(parents=True)
    (store.folder / media_blob(picture(1)).file).write_bytes(b"another file")
    scene = session().scene(store_folder=str(store.folder))
    plan = store_bodies(store, scene, Media(MediaSettings("all")).plan(scene))
    assert left(applied(scene, plan)) == [picture(1)]
    assert plan.reason.startswith(f"{media_blob(picture(1)).id} stays, it could not be stored: ")


# Stability


def test_notes_are_the_same_after_resume_and_a_second_run_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, scene = run(Media(), session().scene())
    monkeypatch.setattr("core.stages.media._note", lambda *_: "[another wording]")
    again = resumed(scene, plan.decisions)
    assert sent(again) == sent(scene)
    assert Media().plan(again).decisions == ()
    _, more = run(Media(MediaSettings("all")), again)
    assert items(more, "t1") == items(scene, "t1")
    assert left(more) == []


def test_notes_and_the_budget_hold_together_also_in_a_history_that_was_written_with_them() -> None:
    history = (
        History().prompt("Go.").use("t1", "Bash", [text("x" * 40_000), text("y" * 40_000), picture(1), picture(2)])
    )
    scene = history.scene()
    decisions: list[Decision] = []
    for stage in (Media(MediaSettings("named", (media_blob(picture(1)).id,))), ToolBudget()):
        plan, scene = run(stage, scene)
        decisions += plan.decisions
    first, note, block = items(scene, "t1")
    assert "persisted-output" in first["text"]
    assert note["text"].startswith("[image: ")
    assert block == picture(2)
    written = Scene(scene.view().messages, scene.model, scene.state, store_folder=scene.store_folder)
    assert sent(written) == sent(scene)
    assert sent(resumed(history.scene(), decisions[::-1])) == sent(scene)


def test_in_a_tool_loop_with_thinking_only_what_is_new_goes() -> None:
    history = History().prompt("Go.", picture(1)).use("t1", "Read", [picture(2)], thinking="Hm.")
    plan, scene = run(Media(MediaSettings("all")), history.scene())
    assert left(scene) == [picture(1)]
    assert plan.reason == "1 stay: an unfinished tool loop that holds thinking is behind them"


def test_it_is_done_whatever_it_costs_and_the_verdict_says_what() -> None:
    history = session()
    for n in range(30):
        history.use(f"x{n}", "Bash", f"{n} " * 9_000)
    plan = Media(MediaSettings("all")).plan(history.scene())
    assert len(plan.decisions) == 4
    assert plan.verdict is not None
    assert not plan.verdict.pays


def test_without_a_store_nothing_is_decided() -> None:
    plan = Media().plan(session().scene(store_folder=""))
    assert plan == Plan("media", reason="there is no store for images and documents")


def test_where_there_are_none_nothing_is_decided() -> None:
    assert Media(MediaSettings("all")).plan(History().prompt("Go.").scene()) == Plan(
        "media", reason="there are no images or documents"
    )
