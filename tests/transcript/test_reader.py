"""Reading files: whole and from the end, sound and damaged, and what is reported of them."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.context.view import api_messages, messages_of
from core.errors import Changed, Damaged, FoldmarkError, InputError
from core.transcript import backwards, scanner
from core.transcript.chain import load
from core.transcript.check import check
from core.transcript.entries import decode_entry
from core.transcript.reader import aopen_log, open_log
from core.transcript.repair import repair
from tests.rows import STEPS, Rows, any_rows, damaged

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def reported(path: Path, data: bytes) -> list[tuple[str, int]]:
    path.write_bytes(data)
    with open_log(path) as log:
        return [(f.kind, f.offset) for f in log.findings]


def row(uuid: str, text: str = "hi") -> bytes:
    return b'{"type":"user","uuid":"%s","message":{"content":"%s"}}' % (uuid.encode(), text.encode())


def uuids(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    with open_log(path) as log:
        return [e.uuid for e in log.entries]


def test_a_line_that_no_client_reads_is_an_error(path: Path) -> None:
    path.write_bytes(row("u1") + b"\n" + b"x" * 5_000)

    with patch.multiple(backwards, BATCH_BYTES=64, MOST_BYTES=2_048), pytest.raises(Damaged, match="a line of more"):
        open_log(path, whole=True)


def test_what_is_no_ordinary_file_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)

    with pytest.raises(InputError, match="no ordinary file"):
        open_log(path)


def test_blank_lines_are_passed_over_without_a_try_to_read_them(path: Path) -> None:
    data = row("u1") + b"\n\n\r\n \t\n" + row("u2") + b"\n\n"

    with patch.object(scanner, "decode_entry", wraps=decode_entry) as decode:
        assert uuids(path, data) == ["u1", "u2"]
    assert decode.call_count == 2
    assert reported(path, data) == []


@same_folder
@given(any_rows())
def test_every_row_is_an_entry_with_its_bytes(path: Path, transcript: Rows) -> None:
    path.write_bytes(transcript.data())

    with open_log(path) as log:
        assert [log.raw(e) + b"\n" for e in log.entries] == transcript.lines()
        assert [log.row(e) for e in log.entries] == transcript.rows
        assert log.findings == []


@same_folder
@given(damaged() | st.binary(max_size=400))
async def test_a_server_reads_the_same(path: Path, data: bytes) -> None:
    path.write_bytes(data)

    with (
        patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=100),
        open_log(path) as log,
        await aopen_log(path) as again,
    ):
        assert (again.entries, again.findings, again.start) == (log.entries, log.findings, log.start)


@same_folder
@given(st.binary(max_size=600) | damaged().map(lambda d: bytes(reversed(d))) | damaged(), st.integers(30, 500))
def test_any_bytes_at_all_are_read_or_refused(path: Path, data: bytes, batch: int) -> None:
    path.write_bytes(data)

    with patch.multiple(backwards, WHOLE_BYTES=200, BATCH_BYTES=batch):
        try:
            log, chain = load(path, whole=True)
            with log:
                api_messages(messages_of(log, chain))
                check(log, chain)
                b"".join(repair(log))
        except FoldmarkError:
            pass
    assert path.read_bytes() == data


WITHOUT_LEAF = tuple(step for step in STEPS if step != "last-prompt")
"""That row may name another leaf than the newest row."""


@same_folder
@given(any_rows(WITHOUT_LEAF), st.text(max_size=20))
def test_a_row_that_is_appended_is_read_as_it_was_written(path: Path, transcript: Rows, text: str) -> None:
    path.write_bytes(transcript.data())
    with open_log(path) as before:
        known = before.entries
    transcript.user(text)
    path.write_bytes(transcript.data())

    log, chain = load(path)
    with log:
        assert log.entries[:-1] == known
        assert log.row(log.entries[-1]) == transcript.rows[-1]
        assert chain.leaf == log.entries[-1]


def test_a_log_is_a_snapshot(path: Path) -> None:
    path.write_bytes(row("a") + b"\n")
    with open_log(path) as log:
        with path.open("ab") as more:
            more.write(row("b") + b"\n")

        assert [log.raw(e) for e in log.entries] == [row("a")]
        assert log.size == len(row("a")) + 1


def test_only_what_follows_the_last_boundary_of_a_large_file_is_read(path: Path) -> None:
    transcript = Rows()
    for n in range(50):
        transcript.prompt(f"old {n}")
    transcript.compaction()
    transcript.prompt("new")
    path.write_bytes(transcript.data())

    with patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=300), open_log(path) as log:
        assert [e.uuid for e in log.entries] == transcript.uuids()[-4:]
        assert not log.whole
        assert log.start == log.entries[0].offset
    with open_log(path) as log:
        assert log.whole


def test_the_words_of_a_boundary_in_a_text_are_no_boundary(path: Path) -> None:
    transcript = Rows()
    transcript.prompt("one")
    transcript.prompt('"subtype":"compact_boundary"')
    transcript.sidechain()
    transcript.boundary(isSidechain=True)
    transcript.rows[-1] |= {"isSidechain": True}
    path.write_bytes(transcript.data())

    with patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=100), open_log(path) as log:
        assert log.whole


def test_lines_longer_than_a_batch_are_read(path: Path) -> None:
    long = row("b", "x" * 5000)

    with patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=64):
        assert uuids(path, row("a") + b"\n" + long + b"\n" + row("c")) == ["a", "b", "c"]


def test_a_batch_does_not_grow_without_end_where_no_record_begins(path: Path) -> None:
    data = b"no record\n" * 2000 + row("a") + b"\n"

    with patch.multiple(backwards, BATCH_BYTES=64, _LONGEST_BYTES=256):
        assert uuids(path, data) == ["a"]


def test_memory_does_not_grow_with_the_rows_that_are_not_kept(path: Path) -> None:
    with path.open("wb") as file:
        for n in range(400):
            file.write(row(f"u{n}", "x" * 50_000) + b"\n")

    tracemalloc.start()
    with open_log(path, whole=True) as log:
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(log.entries) == 400
    assert peak < 4 * backwards.BATCH_BYTES


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(InputError) as raised:
            open_log(path)
        assert str(path) in str(raised.value)
        assert raised.value.hint


async def test_a_server_gets_the_same_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(InputError):
            await aopen_log(path)


def failing(*_: object) -> bytes:
    raise OSError(5, "Input/output error")


def test_a_disk_that_fails_is_an_input_error(path: Path) -> None:
    path.write_bytes(row("a"))

    with patch.object(os, "pread", failing), pytest.raises(InputError):
        open_log(path)


async def test_a_disk_that_fails_under_a_server_is_an_input_error(path: Path) -> None:
    path.write_bytes(row("a"))

    with patch.object(backwards.Backwards, "take", failing), pytest.raises(InputError):
        await aopen_log(path)


def test_a_file_that_is_cut_while_it_is_read_is_said_to_have_changed(path: Path) -> None:
    path.write_bytes(row("a"))

    with patch.object(os, "pread", lambda *_: b""), pytest.raises(Changed):
        open_log(path)


def test_a_row_that_is_gone_when_it_is_wanted_is_said_to_have_changed(path: Path) -> None:
    path.write_bytes(row("a"))
    with open_log(path) as log:
        os.truncate(path, 10)

        for read in (log.row, log.body):
            with pytest.raises(Changed):
                read(log.entries[0])


def test_damage_is_reported_with_its_place(path: Path) -> None:
    a, b = row("a"), row("b")

    assert reported(path, a + b"\n" + b + b"\n") == []
    assert reported(path, a) == [("no-final-newline", 0)]
    assert reported(path, a + b + b"\n") == [("joined-line", 0)]
    assert reported(path, a[:20] + b + b"\n") == [("spliced-line", 0)]
    assert reported(path, a + b[:20] + b"\n" + b + b"\n") == [("spliced-line", len(a))]
    assert reported(path, a + b"\n" + b[:20]) == [("torn-tail", len(a) + 1)]
    assert reported(path, a + b[:20]) == [("torn-tail", len(a))]
    assert reported(path, a[:20] + b) == [("spliced-line", 0), ("no-final-newline", 0)]
    assert reported(path, b"\0\0\n" + a + b"\n") == [("bad-bytes", 0)]
    assert reported(path, b"\0\0" + a[:-1] + b",}\n") == [("garbage-line", 0)]
    assert reported(path, a + b"\n\0\0\0") == [("bad-bytes", len(a) + 1)]
    assert reported(path, a + b"\n\n \t\n") == []


def test_a_run_of_lines_that_are_no_rows_is_one_finding(path: Path) -> None:
    a = row("a")

    assert reported(path, a + b"\n" + b"garbage\nnull\n[]\n" * 50 + a + b"\ngarbage\n") == [
        ("garbage-line", len(a) + 1),
        ("garbage-line", 2 * len(a) + 2 + 50 * 16),
    ]


def test_a_record_over_several_lines_is_read(path: Path) -> None:
    pretty = b'{\n  "type": "user",\n  "uuid": "p"\n}\n'

    assert uuids(path, row("a") + b"\n" + pretty + row("b") + b"\n") == ["a", "p", "b"]
    assert reported(path, pretty) == [("pretty-printed", 0)]
    assert reported(path, pretty[:-1]) == [("pretty-printed", 0), ("no-final-newline", len(pretty) - 2)]


def test_a_record_over_several_lines_that_never_ends_is_left_out(path: Path) -> None:
    begun = b'{\n  "type": "user",\n'

    assert uuids(path, begun + row("a") + b"\n") == ["a"]
    assert reported(path, begun + row("a") + b"\n") == [("garbage-line", 0)]
    assert reported(path, begun) == [("torn-tail", 0)]
    assert reported(path, begun + b"}\n" + b"garbage\n") == [("garbage-line", 0)]
    with patch.object(backwards, "BATCH_BYTES", 30):
        assert uuids(path, begun + row("a") + b"\n") == ["a"]
