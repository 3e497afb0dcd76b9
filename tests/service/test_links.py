"""A transcript that is named by a link: what is kept of it is kept beside the file itself, and found from both."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from core.compaction.full import Options
from core.errors import Locked, WriteFailed
from core.memory.files import MemoryFiles
from core.model import tool_results
from core.service.compact import CompactResult, compact
from core.service.history import output
from core.service.hooks import checkpoint
from core.service.job import Choices
from core.service.operation import Target
from core.service.session import opened
from core.service.stages import StageSettings
from core.service.undo import undo
from core.summarizers.extractive import Extractive
from core.testing import Transcript
from core.transcript import undo as of_transcripts
from core.transcript.locks import locked
from core.transcript.projects import session_file
from core.transcript.records import find_records, source_file
from core.transcript.store import Store
from tests.disk import messages, tree

LONG = "all the lines of a long output " * 4_000


@pytest.fixture
def real(tmp_path: Path) -> Path:
    made = Transcript().prompt("Begin.").call("Bash", command="make").result(LONG).answer("Done.").prompt("Go on.")
    return made.answer("All done.").write(tmp_path / "archive" / "real.jsonl")


@pytest.fixture
def link(tmp_path: Path, real: Path) -> Path:
    found = tmp_path / "elsewhere" / "link.jsonl"
    found.parent.mkdir()
    found.symlink_to(real)
    return found


def shortened(path: Path, in_place: bool = True) -> CompactResult:
    target = Target(path.parents[1] / "locks", in_place=in_place)
    settings = StageSettings(forced=True)
    return compact(session_file(path), Extractive(), Choices(Options(0, 3_000), target, settings=settings, how="micro"))


def call_of(path: Path) -> str:
    return next(str(result["tool_use_id"]) for m in messages(path) for result in tool_results(m))


def test_what_goes_in_place_is_stored_beside_the_file_and_read_from_both(real: Path, link: Path) -> None:
    assert shortened(link).changed

    assert link.is_symlink()
    assert [*tree(link.parent)] == [link.name]
    call = call_of(link)
    assert (real.with_suffix("") / "tool-results" / f"{call}.txt").read_text() == LONG
    for path in (link, real):
        assert LONG not in str(messages(path))
        with opened(session_file(path), whole=True) as session:
            assert output(session, call).text == LONG
        assert not shortened(path).changed


@pytest.mark.parametrize("takes_back", ["link", "real"])
@pytest.mark.parametrize("shortens", ["link", "real"])
def test_taking_it_back_leaves_nothing_whichever_was_named(
    real: Path, link: Path, shortens: str, takes_back: str
) -> None:
    paths, before = {"link": link, "real": real}, real.read_bytes()
    shortened(paths[shortens])
    undone = undo(session_file(paths[takes_back]), real.parents[1] / "claude", real.parents[1] / "locks")

    assert not undone.removed
    assert real.read_bytes() == before
    assert [*tree(real.parent)] == [real.name]
    assert [*tree(link.parent)] == [link.name]


def test_one_lock_is_held_for_both(real: Path, link: Path) -> None:
    locks = real.parents[1] / "locks"
    for held, other in ((real, link), (link, real)):
        with locked(held, locks), pytest.raises(Locked), locked(other, locks, timeout_s=0.0):
            pass
    with Store.beside(real).locked():
        assert Store.beside(link).folder == Store.beside(real).folder


def test_notes_and_a_summary_under_way_are_kept_beside_the_file_too(real: Path, link: Path) -> None:
    notes = [MemoryFiles.beside(session_file(path)).folder for path in (link, real)]
    assert notes == [real.with_suffix("") / "session-memory"] * 2
    checkpoint.put(link, "What was said.")
    assert [*tree(link.parent)] == [link.name]
    assert checkpoint.take(real) == "What was said."


def test_a_client_that_has_it_open_by_the_link_keeps_it_from_being_taken_back(real: Path, link: Path) -> None:
    shortened(link)
    claude_dir = real.parents[1] / "claude"
    for name in (link.stem, real.stem):
        client = {"pid": 1, "sessionId": name}
        (claude_dir / "sessions").mkdir(parents=True, exist_ok=True)
        (claude_dir / "sessions" / "1.json").write_bytes(msgspec.json.encode(client))
        with pytest.raises(Locked, match="open in the client"):
            of_transcripts.undo(link, claude_dir, real.parents[1] / "locks")


def test_a_result_of_its_own_finds_its_source_where_the_link_led(real: Path) -> None:
    near = real.with_name("link.jsonl")
    near.symlink_to(real)
    made = Path(shortened(near, in_place=False).output)
    with opened(session_file(made), whole=True) as session:
        assert session.claude
        (placed,) = find_records(session.claude.log)
        assert placed.record
        assert source_file(made, placed.record.source) == real
        assert output(session, call_of(made)).text == LONG


@pytest.mark.parametrize("named", ["link", "real"])
def test_a_transcript_without_a_suffix_has_a_folder_of_another_name(real: Path, link: Path, named: str) -> None:
    bare = real.rename(real.with_suffix(""))
    link.unlink()
    link.symlink_to(bare)
    before = bare.read_bytes()
    path = {"link": link, "real": bare}[named]

    assert shortened(path).changed
    call = call_of(bare)
    assert (bare.with_name("real.foldmark") / "tool-results" / f"{call}.txt").read_text() == LONG
    checkpoint.put(path, "What was said.")
    assert checkpoint.take(bare) == "What was said."
    undo(session_file(path), real.parents[1] / "claude", real.parents[1] / "locks")
    assert tree(real.parent) == {bare.name: before}


def test_where_nothing_can_be_stored_nothing_is_written(real: Path) -> None:
    real.with_suffix("").write_text("in the way")
    before = tree(real.parent)

    with pytest.raises(WriteFailed, match=r"stays?, .* could not be stored: .*Not a directory"):
        shortened(real)
    assert tree(real.parent) == before


def test_what_cannot_be_stored_stays_and_is_named(tmp_path: Path) -> None:
    made = Transcript().prompt("Begin.")
    for _ in range(3):
        made.call("Bash", command="make").result(LONG).answer("Done.").prompt("Go on.")
    path = made.answer("All done.").write(tmp_path / "archive" / "s.jsonl")
    first = call_of(path)
    Store.beside(path).put(first, "what another program stored")

    result = shortened(path)
    assert result.changed
    (warning,) = result.warnings
    assert warning.startswith(f"{first} stays, it could not be stored: ")
    assert [LONG in str(block) for m in messages(path) for block in tool_results(m)].count(True) == 1
