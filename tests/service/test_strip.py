"""Images and documents that give way to notes in a session on disk, and the list of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.errors import IdNotFound
from core.model import JSON, Block, block_text, is_media, tool_results
from core.service.history import output
from core.service.operation import Target
from core.service.session import opened
from core.service.stages import StageSettings
from core.service.strip import MediaLine, StripResult, media_of, strip
from core.service.undo import undo
from core.stages.media import MediaSettings
from core.testing import Transcript
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.disk import compacted, messages, tree
from tests.stages.build import image, pairs_are_whole

CASE = Path(__file__).parents[1] / "data" / "cases" / "image-1.jsonl"
BAD = MediaSettings("unreadable")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The case in a client's folder."""
    folder = tmp_path / "projects" / "-srv-app"
    folder.mkdir(parents=True)
    return Path(shutil.copy(CASE, folder / "11111111-1111-4111-8111-111111111111.jsonl"))


def stripped(path: Path, chosen: MediaSettings, in_place: bool = False, dry_run: bool = False) -> StripResult:
    target = Target(path.parents[2] / "locks", None, in_place, dry_run)
    return strip(session_file(path), chosen, target, StageSettings())


def named(*ids: str) -> MediaSettings:
    return MediaSettings("named", ids)


def listed(path: Path | str) -> list[MediaLine]:
    with opened(session_file(Path(path))) as session:
        return media_of(session).media


def pictures(path: Path | str) -> list[str]:
    """The calls whose results still hold a picture."""
    blocks = [b for m in messages(path) for b in tool_results(m)]
    return [
        str(b["tool_use_id"]) for b in blocks if isinstance(b["content"], list) and any(map(is_media, b["content"]))
    ]


# image-1


def test_the_list_names_each_and_says_which_one_the_api_refuses(path: Path) -> None:
    found = listed(path)

    assert [(m.id, m.path) for m in found] == [(f"toolu_i{n}", f"/w/{n}.png") for n in range(25)]
    assert [m.id for m in found if m.unreadable] == ["toolu_i3"]
    assert (found[0].width, found[0].height, found[0].bytes, found[3].bytes) == (1, 1, 70, 9)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("chosen", [BAD, named("toolu_i3"), named("00000000-0000-4000-8000-000000000008")])
def test_just_the_bad_one_goes_its_pair_stays_and_it_can_be_read(
    path: Path, chosen: MediaSettings, in_place: bool
) -> None:
    before = path.read_bytes()
    result = stripped(path, chosen, in_place)

    assert [m.id for m in result.media] == ["toolu_i3"]
    assert pictures(result.output) == [f"toolu_i{n}" for n in range(25) if n != 3]
    assert pairs_are_whole(messages(result.output))
    with opened(session_file(Path(result.output))) as session:
        assert "[image: image/png, 9 bytes, " in output(session, "toolu_i3").text
    (body,) = (b for b in Store.beside(Path(result.output)).bodies() if b.kind == "image")
    assert Store.beside(Path(result.output)).read(body) == b"not-a-png"

    assert not stripped(Path(result.output), BAD, in_place).changed
    undo(session_file(Path(result.output)), path.parents[2], path.parents[2] / "locks")
    assert tree(path.parent) == {path.name: before}


def test_what_a_dry_run_names_is_what_goes_and_it_writes_nothing(path: Path) -> None:
    before = tree(path.parent)
    result = stripped(path, BAD, dry_run=True)

    assert (result.changed, result.reason, [m.id for m in result.media]) == (False, "dry run", ["toolu_i3"])
    assert tree(path.parent) == before


def test_all_go_and_then_there_are_none(path: Path) -> None:
    result = stripped(path, MediaSettings("all"))

    assert len(result.media) == 25
    assert listed(result.output) == []
    assert (stripped(Path(result.output), BAD).changed, stripped(Path(result.output), BAD).media) == (False, [])


def test_after_a_compaction_a_bad_image_of_before_is_out_of_the_view_and_the_summary_holds_none(path: Path) -> None:
    """The images of the case are small: with something to read beside them a compaction is worth its while."""
    path.write_bytes(path.read_bytes() + b"".join(more(path)))
    result = compacted(path)

    assert result.changed
    assert pictures(result.output) == []
    assert "iVBORw0KGgo" not in Path(result.output).read_text()


def more(path: Path) -> list[bytes]:
    """Further turns, behind the last row."""
    made = Transcript("22222222-2222-4222-8222-222222222222")
    made.last = messages(path)[-1].uuids[-1]
    made.prompt("What do they show?").answer("Squares. " * 3_000).prompt("Thanks").answer("You are welcome.")
    return made.data().splitlines(keepends=True)


# Ids


def test_ids_are_found_by_their_starts_and_with_several_the_one_that_is_meant_has_to_be_named(path: Path) -> None:
    bad = next(m for m in listed(path) if m.unreadable)
    digest = stripped(path, BAD, dry_run=True).media[0].id
    assert digest == bad.id

    assert [m.id for m in stripped(path, named("toolu_i24"), dry_run=True).media] == ["toolu_i24"]
    assert [m.id for m in stripped(path, named("toolu_i2"), dry_run=True).media] == ["toolu_i2"]
    with pytest.raises(IdNotFound, match="25 ids begin with toolu") as several:
        stripped(path, named("toolu"))
    assert "toolu_i0" in several.value.hint
    for name in ("nothing", ""):
        with pytest.raises(IdNotFound, match="no image or document") as none:
            stripped(path, named(name))
        assert "{media} lists" in none.value.hint


def test_of_several_in_one_message_each_is_named_by_its_content(tmp_path: Path) -> None:
    pasted: list[JSON] = [image(), image(b"%PDF-1.7 /Type /Page", "application/pdf"), {"type": "text", "text": "See"}]
    made = Transcript().prompt("x").answer("ok")
    made.rows[0]["message"] = {"role": "user", "content": pasted}
    path = made.write(tmp_path / "p" / "a" / "a.jsonl")

    first, second = listed(path)
    assert first.id.startswith("media-")
    assert (first.kind, first.media_type, first.width) == ("image", "image/png", 800)
    assert (second.kind, second.pages, second.unreadable) == ("document", 1, False)

    result = stripped(path, named(second.id.removeprefix("media-")[:8]))
    content: tuple[Block, ...] = messages(result.output)[0].content
    assert [b["type"] for b in content] == ["image", "text", "text"]
    assert block_text(content[1]).startswith("[document: application/pdf, 1 pages, ")
