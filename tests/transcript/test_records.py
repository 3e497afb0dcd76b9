from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Changed, FoldmarkError, InputError, Locked, WriteFailed
from core.model import Message
from core.transcript import reader, records
from core.transcript import undo as undo_module
from core.transcript.live import FileState
from core.transcript.projects import session_file
from core.transcript.reader import open_log
from core.transcript.records import Record, Source, decisions_of, digest_of_ends, find_records, first_record, is_as_made
from core.transcript.store import Store
from core.transcript.undo import undo
from core.transcript.writer import append, remove, write_new
from tests.disk import stored
from tests.faults import kills, outcomes

OLD = b'{"type":"user","uuid":"u1"}\n{"type":"assistant","uuid":"a1"}\n'
BLOCK = b'{"type":"system","uuid":"b1"}\n{"type":"user","uuid":"s1"}\n'
LATER = b'{"type":"user","uuid":"u9"}\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "p"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def session(place: Path) -> Path:
    path = place / "11111111-1111-4111-8111-111111111111.jsonl"
    path.write_bytes(OLD)
    return path


def record_of(source: Path, ident: str = "1") -> Record:
    size = source.stat().st_size
    return Record(op="compact", id=ident, session_id=source.stem, source=Source(str(source), source.stem, size))


def compact_in_place(path: Path, block: bytes = BLOCK, ident: str = "1") -> None:
    append(path, record_of(path, ident).row(block) + block, path.stat().st_size)


def compact(source: Path) -> Path:
    """A new file of Foldmark's, with a store."""
    path = source.with_name("22222222-2222-4222-8222-222222222222.jsonl")
    Store.beside(path).archive("x", [Message("user", "prompt", ({"type": "text", "text": "gone"},), ("u1",))])
    write_new(path, [record_of(source).row(BLOCK), BLOCK])
    return path


def undone(path: Path) -> bool:
    """Undoes as in a home of its own; whether the file was removed."""
    return undo(path, path.parent.parent.parent, path.parent.parent.parent / "locks").removed


def added(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


# Records


@pytest.mark.parametrize("batch_bytes", [1, 7, 64, 100_000])
def test_decisions_before_the_log_are_found_whatever_rows_lie_between(
    session: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    decided = [msgspec.Raw(b'{"kind":"seen","ids":["t1"]}'), msgspec.Raw(b'{"kind":"seen","ids":["t2"]}')]
    for raw in decided:
        row = msgspec.structs.replace(record_of(session), decisions=(raw,)).row(b"")
        added(session, row + b'{"type":"user","uuid":"u2","text":"' + b"x" * 999 + b'"}\n')
    monkeypatch.setattr(reader, "BATCH_BYTES", batch_bytes)

    with open_log(session) as log:
        log.start, log.entries = log.size, []
        assert decisions_of(log) == decided


@pytest.mark.parametrize("is_read", [True, False])
def test_the_newest_record_with_a_block_has_all_that_held_before(session: Path, is_read: bool) -> None:
    raws = [msgspec.Raw(b'{"kind":"seen","ids":["t%d"]}' % n) for n in range(5)]
    for decided, block in [(raws[:1], BLOCK), (raws[1:3], BLOCK), (raws[3:4], b""), (raws[4:], b"")]:
        record = msgspec.structs.replace(record_of(session), decisions=tuple(decided))
        added(session, record.row(block) + block)

    with open_log(session) as log:
        if not is_read:
            log.start, log.entries = log.size, []
        assert decisions_of(log) == raws[1:]


def test_what_is_further_off_than_a_block_can_be_long_is_not_searched(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(session, msgspec.structs.replace(record_of(session), decisions=(msgspec.Raw(b"{}"),)).row(b"") + BLOCK)
    with open_log(session) as log:
        log.start, log.entries = log.size, []
        monkeypatch.setattr(records, "MOST_BLOCK_BYTES", log.size - len(OLD))
        assert len(decisions_of(log)) == 0
        monkeypatch.setattr(records, "MOST_BLOCK_BYTES", log.size - len(OLD) + 1)
        assert len(decisions_of(log)) == 1


def test_a_row_that_is_too_long_for_a_record_does_not_fill_the_memory(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.write_bytes(b'{"type":"foldmark"')
    os.truncate(session, 32 << 20)
    added(session, b"\n" + OLD)
    monkeypatch.setattr(records, "MOST_BYTES", 4096)
    with open_log(session) as log:
        log.start, log.entries = 32 << 20, []
        tracemalloc.start()
        assert not is_as_made(session_file(session))
        assert decisions_of(log) == []
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 16 << 20


def test_a_pipe_is_no_session_that_foldmark_made(session: Path) -> None:
    session.unlink()
    os.mkfifo(session)
    with pytest.raises(OSError, match="ordinary"):
        first_record(session)


def test_a_record_says_what_was_written(session: Path) -> None:
    source = Source("/p/a.jsonl", "a", 7)
    record = Record(
        op="compact", id="1", session_id="b", source=source, summarizer="extractive", tokens_before=9, tokens_after=4
    )
    row = msgspec.json.decode(record.row(BLOCK))
    digest = row.pop("sha256")
    assert len(digest) == 64
    assert row == {
        "type": "foldmark",
        "op": "compact",
        "id": "1",
        "version": 1,
        "sessionId": "b",
        "bytes": len(BLOCK),
        "source": {"path": "/p/a.jsonl", "sessionId": "a", "bytes": 7},
        "summarizer": "extractive",
        "tokensBefore": 9,
        "tokensAfter": 4,
    }


def test_records_are_found_with_their_places(session: Path) -> None:
    compact_in_place(session)
    compact_in_place(session, LATER, "2")
    with open_log(session) as log:
        found = find_records(log)
    assert [placed.record.id for placed in found if placed.record] == ["1", "2"]
    data = session.read_bytes()
    assert [data[placed.start : placed.end] for placed in found] == [BLOCK, LATER]
    assert [data[placed.offset :][:18] for placed in found] == [b'{"type":"foldmark"'] * 2


def test_a_file_that_foldmark_never_touched_has_none(session: Path) -> None:
    with open_log(session) as log:
        assert find_records(log) == []
    with pytest.raises(InputError):
        undone(session)


@pytest.mark.parametrize(
    "row",
    [
        b'{"type":"foldmark"}',
        b'{"type":"foldmark","op":"x","id":"1","version":2,"sessionId":"s","source":{"path":"","sessionId":"","bytes":0}}',
        b'{"type":"foldmark","op":"x","id":"1","bytes":-9,"sessionId":"s","source":{"path":"","sessionId":"","bytes":0}}',
        b'{"type":"foldmark","op":"x","id":"1","sessionId":"s","source":{"path":"","sessionId":"","bytes":-5}}',
        b'{"type":"foldmark","op":"\xff"}',
    ],
)
def test_a_record_that_this_version_cannot_read_is_kept_and_nothing_below_it_is_undone(
    session: Path, row: bytes
) -> None:
    compact_in_place(session)
    added(session, row + b"\n")
    before = session.read_bytes()
    with open_log(session) as log:
        found = find_records(log)
    assert [placed.record is None for placed in found] == [False, True]
    assert before[found[1].offset : found[1].start] == row + b"\n"
    with pytest.raises(InputError):
        undone(session)
    assert session.read_bytes() == before


# Undo of a block


def test_undo_gives_the_bytes_and_the_mode_back(session: Path) -> None:
    session.chmod(0o640)
    compact_in_place(session)
    assert not undone(session)
    assert session.read_bytes() == OLD
    assert session.stat().st_mode & 0o777 == 0o640


def test_blocks_are_undone_one_by_one_from_the_newest(session: Path) -> None:
    compact_in_place(session)
    first = session.read_bytes()
    compact_in_place(session, LATER, "2")
    undone(session)
    assert session.read_bytes() == first
    undone(session)
    assert session.read_bytes() == OLD


def test_rows_that_were_written_behind_the_block_stay(session: Path) -> None:
    compact_in_place(session)
    added(session, LATER)
    undone(session)
    assert session.read_bytes() == OLD + LATER


def test_a_torn_row_is_as_torn_as_before(session: Path) -> None:
    added(session, b'{"type":"us')
    compact_in_place(session)
    undone(session)
    assert session.read_bytes() == OLD + b'{"type":"us'


def test_a_torn_row_stays_apart_from_rows_that_were_written_behind_the_block(session: Path) -> None:
    added(session, b'{"type":"us')
    compact_in_place(session)
    added(session, LATER)
    undone(session)
    assert session.read_bytes() == OLD + b'{"type":"us\n' + LATER


def test_a_large_file_is_undone(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH_BYTES", 7)
    compact_in_place(session)
    added(session, LATER)
    undone(session)
    assert session.read_bytes() == OLD + LATER


_VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=10), lambda v: st.lists(v, max_size=3), max_leaves=5
)
_ROWS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["user", "assistant", "system", "mode"]), "uuid": st.text(max_size=8), "x": _VALUES}
    ).map(msgspec.json.encode),
    min_size=1,
    max_size=4,
).map(lambda rows: b"".join(row + b"\n" for row in rows))
_TORN = st.sampled_from([b"", b"{", b'{"type":"user","uuid":"x"}', b'{"type":"foldmark","op', b"\0\0", b" ", b"\r"])


@given(_ROWS, _TORN, st.lists(st.tuples(_ROWS, st.just(b"") | _ROWS, _TORN), min_size=1, max_size=3))
def test_undo_takes_back_any_block_and_nothing_else(
    rows: bytes, torn: bytes, blocks: list[tuple[bytes, bytes, bytes]]
) -> None:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # a thousand syncs take a minute, and prove nothing here
        path = Path(home) / "projects" / "p" / "s.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(rows + torn)
        before = []
        for number, (block, *later) in enumerate(blocks):
            before.append(path.read_bytes())
            compact_in_place(path, block, str(number))
            added(path, b"".join(later))
        behind = b""
        for old, (_, *later) in zip(reversed(before), reversed(blocks), strict=True):
            behind = b"".join(later) + behind
            if behind and not old.endswith(b"\n"):
                behind = b"\n" + behind
            undone(path)
            assert path.read_bytes() == old + behind


def test_a_record_that_is_quoted_in_a_row_is_none(session: Path) -> None:
    compact_in_place(session)
    quoted = msgspec.json.encode({"type": "user", "uuid": "q", "text": session.read_bytes().decode()}) + b"\n"
    added(session, quoted)
    undone(session)
    assert session.read_bytes() == OLD + quoted


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.replace(b'"b1"', b'"b2"'),
        lambda data: data[:-1],
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b'{"type":"system","uuid":"b1"}\n', b""),
        lambda data: data.replace(b':0}\n{"type":"system"', b':0}{"type":"system"'),
    ],
)
def test_a_block_that_was_edited_is_left_alone(session: Path, edit: Callable[[bytes], bytes]) -> None:
    compact_in_place(session)
    data = edit(session.read_bytes())
    session.write_bytes(data)
    with pytest.raises(Changed):
        undone(session)
    assert session.read_bytes() == data


DERIVED = b'{"type":"system","uuid":"00000000-0000-5000-8000-000000000001"}\n{"type":"user","uuid":"u1"}\n'


@pytest.mark.parametrize("lost", range(1, len(DERIVED) + 2))
def test_a_block_that_was_cut_off_is_undone_as_far_as_it_is_there(session: Path, lost: int) -> None:
    compact_in_place(session, DERIVED)
    os.truncate(session, session.stat().st_size - lost)

    undone(session)

    assert session.read_bytes() == OLD


@pytest.mark.parametrize("lost", [40, len(DERIVED)])
def test_a_block_that_was_cut_off_and_has_rows_behind_it_is_left_alone(session: Path, lost: int) -> None:
    compact_in_place(session, DERIVED)
    os.truncate(session, session.stat().st_size - lost)
    added(session, LATER)
    before = session.read_bytes()

    with pytest.raises(Changed, match="edited"):
        undone(session)
    assert session.read_bytes() == before


# Undo of a file


def test_a_file_that_foldmark_made_is_removed_with_its_store(session: Path) -> None:
    path = compact(session)
    assert undone(path)
    assert [entry.name for entry in session.parent.iterdir()] == [session.name]
    assert session.read_bytes() == OLD


def test_a_file_is_as_made_until_somebody_goes_on_in_it(session: Path) -> None:
    made = compact(session)

    assert is_as_made(session_file(made))
    assert not is_as_made(session_file(session))
    gone = session_file(made)
    added(made, b'{"type":"user"}\n')
    assert not is_as_made(session_file(made))
    made.unlink()
    assert not is_as_made(gone)


def test_a_session_that_went_on_is_not_removed(session: Path) -> None:
    path = compact(session)
    added(path, LATER)
    with pytest.raises(Changed) as caught:
        undone(path)
    assert f"{len(LATER)} bytes were added" in str(caught.value)
    assert path.exists()
    assert stored(Store.beside(path), "u1")


@pytest.mark.parametrize("of_agent", [False, True])
def test_of_a_session_that_went_on_the_way_back_is_told(session: Path, of_agent: bool) -> None:
    source = session.rename(session.with_name("agent-a1.jsonl")) if of_agent else session
    path = compact(source)
    added(path, LATER)
    with pytest.raises(Changed) as caught:
        undone(path)
    told = str(source) if of_agent else f"claude --resume {session.stem}"
    assert f"its source is intact{': ' if of_agent else ', go on from there with: '}{told}; remove" in caught.value.hint
    source.unlink()
    with pytest.raises(Changed) as caught:
        undone(path)
    assert "intact" not in caught.value.hint


def test_a_time_that_no_file_can_have_stops_no_undo(session: Path) -> None:
    source = Source(str(session), session.stem, session.stat().st_size, 1 << 70)
    append(session, msgspec.structs.replace(record_of(session), source=source).row(BLOCK) + BLOCK)
    undone(session)
    assert session.read_bytes() == OLD


@pytest.mark.parametrize("loss", [lambda p: p.unlink(), lambda p: p.write_bytes(OLD[:10])])
def test_the_only_copy_is_not_removed(session: Path, loss: Callable[[Path], object]) -> None:
    path = compact(session)
    loss(session)
    with pytest.raises(InputError):
        undone(path)
    assert path.exists()


@pytest.mark.parametrize("at", [0, -1])
def test_a_source_that_was_written_anew_is_none_and_one_that_grew_is_one(session: Path, at: int) -> None:
    session.write_bytes(OLD * 3_000)
    with session.open("rb") as file:
        ends = digest_of_ends(file.fileno(), session.stat().st_size)
    known = record_of(session)
    path = session.with_name("22222222-2222-4222-8222-222222222222.jsonl")
    known = msgspec.structs.replace(known, source=msgspec.structs.replace(known.source, ends_sha256=ends))
    write_new(path, [known.row(BLOCK), BLOCK])
    data = bytearray(OLD * 3_000)
    data[at] = ord("x")
    session.write_bytes(data + LATER)
    with pytest.raises(InputError, match="another one now"):
        undone(path)

    session.write_bytes(OLD * 3_000 + LATER)
    assert undone(path)


def test_a_pipe_in_the_place_of_the_source_is_none(session: Path) -> None:
    path = compact(session)
    session.unlink()
    os.mkfifo(session)
    with pytest.raises(InputError):
        undone(path)


def test_a_file_that_was_moved_over_its_source_is_not_removed(session: Path) -> None:
    compact(session).replace(session)
    with pytest.raises(InputError):
        undone(session)
    assert session.exists()


def test_an_in_place_block_on_such_a_file_is_cut_first(session: Path) -> None:
    path = compact(session)
    made = path.read_bytes()
    compact_in_place(path, LATER, "2")
    assert not undone(path)
    assert path.read_bytes() == made
    assert undone(path)


def test_rows_that_come_at_the_last_moment_stop_a_removal(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compact(session)
    monkeypatch.setattr(undo_module, "refuse_only_copy", lambda *_: added(path, LATER))
    with pytest.raises(Changed):
        undone(path)
    assert path.exists()


def test_a_file_that_is_written_anew_while_it_is_removed_keeps_its_store(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compact(session)

    def and_again(file: Path) -> None:
        remove(file)
        compact(session)

    monkeypatch.setattr(undo_module, "remove", and_again)
    assert undone(path)
    assert path.exists()
    assert stored(Store.beside(path), "u1")


def test_a_file_that_cannot_be_removed_keeps_its_store(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compact(session)
    real = os.unlink

    def unlink(name: Path, **more: object) -> None:
        if name == path:
            raise OSError(errno.EACCES, "Permission denied")
        real(name)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(WriteFailed):
        undone(path)
    assert stored(Store.beside(path), "u1")


# Others at work


@pytest.mark.parametrize("in_place", [True, False])
def test_a_session_that_is_open_is_left_alone(session: Path, in_place: bool) -> None:
    path = session if in_place else compact(session)
    if in_place:
        compact_in_place(path)
    before = path.read_bytes()
    registry = session.parent.parent.parent / "sessions"
    registry.mkdir()
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as client:
        (registry / "1.json").write_text(f'{{"pid":{client.pid},"sessionId":"{path.stem}"}}', "utf-8")
        with pytest.raises(Locked) as caught:
            undone(path)
        assert str(client.pid) in str(caught.value)
    assert path.read_bytes() == before


def test_rows_that_come_while_the_file_is_read_are_a_change(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compact_in_place(session)
    real = FileState.of

    def look(file: Path | int) -> FileState:
        if isinstance(file, int):
            added(session, LATER)
        return real(file)

    monkeypatch.setattr(FileState, "of", look)
    with pytest.raises(Changed):
        undone(session)
    assert session.read_bytes().endswith(LATER)


def test_a_linked_session_is_undone_where_it_is(session: Path, tmp_path: Path) -> None:
    link = session.with_name("link.jsonl")
    link.symlink_to(session.name)
    compact_in_place(session)
    undone(link)
    assert link.is_symlink()
    assert session.read_bytes() == OLD


# Failures


@pytest.mark.parametrize("half", [True, False])
def test_whatever_fails_the_block_is_there_or_gone(session: Path, half: bool) -> None:
    compact_in_place(session)
    whole = session.read_bytes()
    seen = []
    for outcome in outcomes(lambda: undone(session), errno.ENOSPC, half):
        seen.append(outcome)
        assert session.read_bytes() == (whole if outcome else OLD)
        assert [entry.name for entry in session.parent.iterdir()] == [session.name]
        session.write_bytes(whole)
    assert sum(isinstance(outcome, FoldmarkError) for outcome in seen) >= 5


def test_killed_at_any_step_the_block_is_there_or_gone_and_the_next_run_is_clean(session: Path) -> None:
    compact_in_place(session)
    whole = session.read_bytes()
    for _ in kills(lambda: undone(session)):
        assert session.read_bytes() in (whole, OLD)
        session.write_bytes(whole)
        undone(session)
        assert session.read_bytes() == OLD
        assert [entry.name for entry in session.parent.iterdir()] == [session.name]
        session.write_bytes(whole)
    assert session.read_bytes() == OLD
