"""A large file read by two processes: the same as by one, whatever happens to the second."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import Changed
from core.transcript import backwards, reader
from core.transcript.entries import Entry
from core.transcript.front import Front, can_fork
from core.transcript.reader import Reading, open_log
from core.transcript.scanner import Scan
from tests.rows import Rows, any_rows, damaged


def broken() -> Iterator[tuple[int, Scan]]:
    yield 0, Scan()
    raise Changed("gone")


def waited_for(reading: Reading) -> Reading:
    """A reading whose second process, if there is one, has read all that it would."""
    if front := reading._front:
        os.waitid(os.P_PID, front._pid, os.WEXITED | os.WNOWAIT)
    return reading


@contextmanager
def by_two() -> Iterator[None]:
    """Files of more than 400 bytes are read by two processes."""
    small = patch.multiple(backwards, BATCH_BYTES=200, TWO_PROCESSES_BYTES=400)
    with small, patch.object(reader, "can_fork", lambda: True):
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def conversation() -> Rows:
    transcript = Rows()
    for n in range(40):
        transcript.prompt(f"question {n}")
    return transcript


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_rows() | damaged())
def test_two_processes_read_what_one_reads(path: Path, given_: Rows | bytes) -> None:
    path.write_bytes(given_ if isinstance(given_, bytes) else given_.data())
    for whole in (True, False):
        with patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=200):
            alone = open_log(path, whole)
            with by_two():
                reading = Reading(path, whole)
                reading.begin()
                shared = waited_for(reading).finish()
        with alone, shared:
            assert (shared.start, shared.entries) == (alone.start, alone.entries)
            assert shared.findings == alone.findings


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_rows() | damaged(), st.integers(20, 400), st.integers(1, 400))
def test_the_pieces_are_the_same_from_both_ends(path: Path, given_: Rows | bytes, batch: int, slack: int) -> None:
    data = given_ if isinstance(given_, bytes) else given_.data()
    path.write_bytes(data)
    ends: list[int] = []
    with patch.multiple(backwards, BATCH_BYTES=batch, _SLACK_BYTES=slack), path.open("rb") as file:
        reader_ = backwards.Backwards(len(data), whole=True)
        while wanted := reader_.wanted():
            if reader_.end not in ends:
                ends.insert(0, reader_.end)
            reader_.take(data[slice(*wanted)])
        found = reader_.found()[1]
        borders = ends[:-1]  # behind the last one only its own end of the file is known
        last = borders[-1] if borders else 0
        pieces = [*backwards.scans_forwards(file.fileno(), last)]

    assert [end for end, _ in pieces] == borders
    assert [e for _, s in pieces for e in s.entries] == [e for e in found.entries if e.offset < last]
    assert [f for _, s in pieces for f in s.findings] == [f for f in found.findings if f.offset < last]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_record_over_several_lines_is_whole_whatever_length_the_next_has(path: Path, is_shared: bool) -> None:
    rows = conversation().lines()
    record = b'{\n "type": "user",\n "uuid": "u1"' + b',\n "text": "some text"' * 30 + b"\n}\n"
    long_row = b'{"type":"user","uuid":"u2","text":"' + b"x" * 9_000 + b'"}\n'
    path.write_bytes(b"".join(rows[:5]) + record + long_row + b"".join(rows[5:]))

    small = patch.multiple(backwards, BATCH_BYTES=200, _SLACK_BYTES=50, _LONGEST_BYTES=1_000)
    with by_two(), small, patch.object(reader, "can_fork", lambda: is_shared):
        reading = Reading(path, whole=True)
        reading.begin()
        log = waited_for(reading).finish()
    with log:
        assert len(log.entries) == len(rows) + 2
        assert [f.kind for f in log.findings] == ["pretty-printed"]


def test_a_record_that_is_cut_at_the_end_is_so_to_both(path: Path) -> None:
    path.write_bytes(conversation().data() + b'{\n "type": "user",\n' + b" \n" * 500)

    with by_two():
        reading = Reading(path, whole=True)
        reading.begin()
        log = waited_for(reading).finish()
    with log:
        assert [f.kind for f in log.findings] == ["torn-tail"]


def test_the_front_comes_from_the_second_process(path: Path) -> None:
    path.write_bytes(conversation().data())

    with (
        by_two(),
        patch.object(
            backwards.Backwards, "take_front", autospec=True, side_effect=backwards.Backwards.take_front
        ) as took,
    ):
        reading = Reading(path, whole=True)
        reading.begin()
        log = waited_for(reading).finish()
    with log:
        assert len(took.call_args.args[1]) > 0
        assert len(log.entries) == 80
        assert log.whole


def test_what_is_read_before_it_is_known_to_be_long_is_read_once(path: Path) -> None:
    transcript = conversation()
    transcript.prompt("x" * 9_000)
    path.write_bytes(transcript.data())

    with by_two():
        reading = Reading(path, whole=True)
        while reading._backwards.end > 4_000:  # a long line: more was read than the second process leaves
            assert reading._read_on()
        reading.begin()
        log = reading.finish()
    with log:
        assert [e.uuid for e in log.entries] == transcript.uuids()


def test_a_kept_row_in_the_first_half_is_where_the_log_begins(path: Path) -> None:
    transcript = conversation()
    transcript.keeping_compaction(76)
    for n in range(30):
        transcript.prompt(f"new {n}")
    path.write_bytes(transcript.data())

    with patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=200):
        alone = open_log(path)
        with by_two():
            shared = open_log(path)
    with alone, shared:
        assert alone.start > 0
        assert (shared.start, shared.entries) == (alone.start, alone.entries)


def test_a_boundary_in_the_second_half_makes_the_front_needless(path: Path) -> None:
    transcript = conversation()
    transcript.compaction()
    for n in range(15):
        transcript.prompt(f"new {n}")
    path.write_bytes(transcript.data())

    with by_two(), patch.object(backwards, "WHOLE_BYTES", 0):
        log = open_log(path)
    with log:
        assert [e.uuid for e in log.entries] == transcript.uuids()[-32:]


def test_a_second_process_that_fails_is_done_without(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    transcript = conversation()
    path.write_bytes(transcript.data())

    with by_two(), patch.object(reader, "scans_forwards", lambda *_: broken()):
        log = open_log(path, whole=True)
    with log:
        assert [log.raw(e) + b"\n" for e in log.entries] == transcript.lines()
    assert capfd.readouterr().err == ""


def test_a_file_in_which_no_record_begins_is_read_by_one(path: Path) -> None:
    path.write_bytes(b"x" * 5000)

    with by_two(), open_log(path) as log:
        assert [f.kind for f in log.findings] == ["garbage-line"]


def test_a_process_with_threads_is_not_forked() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        done.set()
        thread.join()
    with patch("os.cpu_count", lambda: 2), patch("threading.active_count", lambda: 1):
        assert can_fork()
    with patch("os.cpu_count", lambda: None), patch("threading.active_count", lambda: 1):
        assert not can_fork()


def endless() -> Iterator[tuple[int, Scan]]:
    yield 0, Scan()
    threading.Event().wait()


def test_a_front_that_nobody_waits_for_is_ended() -> None:
    front = Front(endless, 100)

    front.close()

    with pytest.raises(ProcessLookupError):
        os.kill(front._pid, 0)


def test_a_piece_that_is_too_long_ends_the_front(path: Path) -> None:
    transcript = conversation()
    long_row = b'{"type":"user","text":"' + b"x" * 10_000 + b'"}\n'
    path.write_bytes(b"".join(transcript.lines()[:20]) + long_row + transcript.data())

    small = patch.multiple(backwards, BATCH_BYTES=200, _SLACK_BYTES=1, _LONGEST_BYTES=4_100)
    with path.open("rb") as file, small:
        found = list(backwards.scans_forwards(file.fileno(), path.stat().st_size))

    uuids = [e.uuid for _, scan in found for e in scan.entries]
    assert 15 < len(uuids) <= 20
    assert uuids == transcript.uuids()[: len(uuids)]


def test_what_the_front_found_before_it_had_no_room_holds(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scans = [(10, Scan([Entry(0, 1)])), (20, Scan([Entry(10, 1)])), (30, Scan([Entry(20, 1, uuid="x" * 10_000)]))]
    front = Front(lambda: iter(scans), 200)
    os.waitid(os.P_PID, front._pid, os.WEXITED | os.WNOWAIT)

    assert front.reached() == 20
    assert front.scans(20) == [scan for _, scan in scans[:2]]
    assert front.scans(10) == [scans[0][1]]

    front.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("refused", ["os.fork", "mmap.mmap"])
def test_without_a_second_process_one_reads_all(path: Path, refused: str) -> None:
    path.write_bytes(conversation().data())
    descriptors = len(os.listdir("/dev/fd"))

    with (
        by_two(),
        patch(refused, side_effect=OSError("none left")),
        open_log(path, whole=True) as log,
    ):
        assert len(log.entries) == 80
    assert len(os.listdir("/dev/fd")) == descriptors


@pytest.mark.parametrize("whole", [True, False])
def test_a_reading_goes_on_with_what_was_begun(path: Path, whole: bool) -> None:
    path.write_bytes(conversation().data())
    with by_two(), patch.object(backwards, "WHOLE_BYTES", 0):
        alone = open_log(path, whole)
        reading = Reading(path, whole)
        reading.begin()
        with path.open("ab") as file:
            file.write(b"{}\n" * 100)
        log = reading.finish()
    with alone, log:
        assert log.entries == alone.entries
        assert log.size == alone.size


def test_a_reading_knows_its_file(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"{}\n")
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"{}\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)

    with closing(Reading(path)) as reading:
        assert reading.is_of(path)
        assert reading.is_of(link)
        assert not reading.is_of(other)
        assert not reading.is_of(tmp_path / "gone")


def test_a_reading_that_nobody_finishes_leaves_no_process(path: Path) -> None:
    path.write_bytes(conversation().data())
    with by_two(), patch.object(backwards, "WHOLE_BYTES", 0):
        reading = Reading(path)
        reading.begin()
    front = reading._front
    assert front

    reading.close()

    with pytest.raises(ProcessLookupError):
        os.kill(front._pid, 0)
