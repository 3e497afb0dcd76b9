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

from core.errors import Changed
from core.transcript import backwards, reader
from core.transcript.entries import Entry
from core.transcript.halves import Front, can_fork
from core.transcript.reader import Reading, open_log
from core.transcript.scanner import Scan
from tests.rows import Rows, any_rows, damaged


def broken() -> Iterator[Scan]:
    yield Scan()
    raise Changed("gone")


@contextmanager
def halved() -> Iterator[None]:
    """Files of more than 400 bytes are read by two processes."""
    small = patch.multiple(backwards, BATCH_BYTES=200, HALVES_BYTES=400)
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
            with halved():
                shared = open_log(path, whole)
        with alone, shared:
            assert (shared.start, shared.entries) == (alone.start, alone.entries)


def test_the_front_comes_from_the_second_process(path: Path) -> None:
    path.write_bytes(conversation().data())

    with (
        halved(),
        patch.object(
            backwards.Backwards, "take_front", autospec=True, side_effect=backwards.Backwards.take_front
        ) as took,
    ):
        log = open_log(path, whole=True)
    with log:
        assert took.call_count == 1
        assert len(log.entries) == 80
        assert log.whole


def test_what_is_read_before_it_is_known_to_be_long_is_read_once(path: Path) -> None:
    transcript = conversation()
    transcript.prompt("x" * 9_000)
    path.write_bytes(transcript.data())

    with halved():
        reading = Reading(path, whole=True)
        while reading._backwards.end > 4_000:  # a long line: more was read than the second process leaves
            assert reading._read_on()
        reading.begin(head_start_bytes=100_000)
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
        with halved():
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

    with halved(), patch.object(backwards, "WHOLE_BYTES", 0):
        log = open_log(path)
    with log:
        assert [e.uuid for e in log.entries] == transcript.uuids()[-32:]


def test_a_second_process_that_fails_is_done_without(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    transcript = conversation()
    path.write_bytes(transcript.data())

    with halved(), patch.object(reader, "scans_to", lambda *_: broken()):
        log = open_log(path, whole=True)
    with log:
        assert [log.raw(e) + b"\n" for e in log.entries] == transcript.lines()
    assert capfd.readouterr().err == ""


def test_a_file_in_which_no_record_begins_is_read_by_one(path: Path) -> None:
    path.write_bytes(b"x" * 5000)

    with halved(), open_log(path) as log:
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


def endless() -> Iterator[Scan]:
    yield Scan()
    threading.Event().wait()


def test_a_front_that_nobody_waits_for_is_ended() -> None:
    front = Front(endless, 100)

    front.close()

    with pytest.raises(ProcessLookupError):
        os.kill(front._pid, 0)


def test_the_scans_of_a_part_are_those_of_a_file_that_ends_there(path: Path) -> None:
    transcript = conversation()
    path.write_bytes(transcript.data())
    end = len(b"".join(transcript.lines()[:20]))

    with path.open("rb") as file, patch.object(backwards, "BATCH_BYTES", 200):
        found = list(backwards.scans_to(file.fileno(), end))

    assert len(found) > 1
    assert [e.uuid for scan in reversed(found) for e in scan.entries] == transcript.uuids()[:20]
    assert not any(scan.findings for scan in found)


def test_without_room_for_what_it_found_the_front_is_done_without(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    front = Front(lambda: iter([Scan(), Scan([Entry(0, 1, "user", uuid="x" * 10_000)])]), 100)

    assert front.scans() is None

    front.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("refused", ["os.fork", "mmap.mmap"])
def test_without_a_second_process_one_reads_all(path: Path, refused: str) -> None:
    path.write_bytes(conversation().data())
    descriptors = len(os.listdir("/dev/fd"))

    with (
        halved(),
        patch(refused, side_effect=OSError("none left")),
        open_log(path, whole=True) as log,
    ):
        assert len(log.entries) == 80
    assert len(os.listdir("/dev/fd")) == descriptors


@pytest.mark.parametrize("whole", [True, False])
def test_a_reading_goes_on_with_what_was_begun(path: Path, whole: bool) -> None:
    path.write_bytes(conversation().data())
    with halved(), patch.object(backwards, "WHOLE_BYTES", 0):
        alone = open_log(path, whole)
        reading = Reading(path, whole)
        reading.begin(head_start_bytes=1_000)
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
    with halved(), patch.object(backwards, "WHOLE_BYTES", 0):
        reading = Reading(path)
        reading.begin()
    front = reading._front
    assert front

    reading.close()

    with pytest.raises(ProcessLookupError):
        os.kill(front._pid, 0)
