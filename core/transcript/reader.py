"""From a file to its entries: backwards from its end, in batches, never line by line, never all of it in memory.

Of a large file nothing is read before the last compact boundary: that is all that the next request needs, however
long the history before it is.  The client does the same (measured: it skips what is before the last boundary in
files of more than 5 MiB, but for rows that the boundary names as kept).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from core.errors import Changed, Damaged, InputError
from core.model import JSON
from core.transcript.entries import Entry, decode_body, decode_row
from core.transcript.findings import Finding
from core.transcript.halves import Front, can_fork
from core.transcript.scanner import Scan, first_record_line, scan

WHOLE_BYTES = 5 << 20
"""Up to this size a file is always read whole: by the client, and so here."""
BATCH_BYTES = 1 << 20
"""What is read and parsed at a time."""
HALVES_BYTES = 64 << 20
"""From this size on a second process is worth its start, some 10 ms."""
FRONT_SHARE = 0.48
"""What the second process reads of a file: what it found has to be taken over, which costs as much as a tenth of it."""
MOST_SHARE = 0.9
"""As much of a file is read by the second process at most."""
_LONGEST_BYTES = 64 << 20
"""A batch is doubled while no record begins in it, up to this size; then any line will do."""


@dataclass(slots=True)
class Log:
    """The entries of a transcript in file order, and the open file that their bodies are read from.

    A snapshot: what is appended later is not part of it.  `start` is the byte offset from which on the file was
    read: 0, or that of the first row that the last boundary leaves.
    """

    path: Path
    file: BinaryIO
    size: int
    start: int = 0
    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether the file was read from its first byte."""
        return self.start == 0

    @property
    def large(self) -> bool:
        """Whether rows before the last boundary are out of reach for the client."""
        return self.size > WHOLE_BYTES

    def raw(self, entry: Entry) -> bytes:
        """The bytes of a row, exactly as in the file."""
        return os.pread(self.file.fileno(), entry.size, entry.offset)

    def row(self, entry: Entry) -> dict[str, JSON]:
        """A row, decoded; bad bytes and lone surrogates are U+FFFD.

        Raises `Changed` when the row is not in the file any more.
        """
        try:
            return decode_row(self.raw(entry))
        except Damaged:
            raise self._changed() from None

    def body(self, entry: Entry) -> dict[str, JSON]:
        """What a message is made of: as `row`, but only the fields that count for a view."""
        try:
            return decode_body(self.raw(entry))
        except Damaged:
            raise self._changed() from None

    def _changed(self) -> Changed:
        return Changed(f"{self.path}: the file was rewritten while it was read", "run the command again")

    def close(self) -> None:
        """Bodies cannot be read any more."""
        self.file.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Reading:
    """A transcript that is being read: all of it, or the rows that the next request can be made of.

    Raises `InputError` when the file cannot be read.  What is not finished has to be closed.
    """

    def __init__(self, path: Path, whole: bool = False) -> None:
        self._log = _open(path)
        self._backwards = _Backwards(self._log.size, whole or not self._log.large)
        self._front: Front | None = None

    def is_of(self, path: Path) -> bool:
        """Whether it is this file that is read."""
        with suppress(OSError, ValueError):
            return os.path.samestat(os.fstat(self._log.file.fileno()), path.stat())
        return False

    def begin(self, head_start_bytes: int = 0) -> None:
        """Has a second process read the front of a long file, as soon as it is sure that this is needed.

        `head_start_bytes` is how much that one can read before this process goes on with `finish`.
        """
        backwards, size = self._backwards, self._log.size
        if size <= HALVES_BYTES or not can_fork():
            return
        with failing(self._log):
            while not backwards.is_long and self._read_on():
                pass
            if not backwards.is_long:
                return
            at = min(FRONT_SHARE * size + head_start_bytes / 2, MOST_SHARE * size)
            middle = _record_near(self._fd, int(at))
            if middle:
                with suppress(OSError):  # no process to be had: then without
                    self._front = Front(partial(_scans_to, self._fd, middle), room_bytes=middle)
                    backwards.floor = middle

    def finish(self) -> Log:
        """Reads the rest, and is closed."""
        with failing(self._log):
            try:
                while self._read_on():
                    pass
                if self._front:
                    self._backwards.floor = 0
                    if self._backwards.wanted() and (found := self._front.scans()) is not None:
                        self._backwards.take_front(found)
                    while self._read_on():
                        pass
            finally:
                self._end_front()
        return self._backwards.into(self._log)

    def close(self) -> None:
        """Nothing more is read."""
        self._end_front()
        self._log.close()

    @property
    def _fd(self) -> int:
        return self._log.file.fileno()

    def _read_on(self) -> bool:
        """Reads the next batch, if one is wanted."""
        batch = self._backwards.wanted()
        if batch:
            self._backwards.take(os.pread(self._fd, batch[1] - batch[0], batch[0]))
        return bool(batch)

    def _end_front(self) -> None:
        if self._front:
            self._front.close()
            self._front = None


def open_log(path: Path, whole: bool = False) -> Log:
    """Opens a transcript and reads its entries: all of them, or those that the next request can be made of.

    Raises `InputError` when the file cannot be read.
    """
    reading = Reading(path, whole)
    reading.begin()
    return reading.finish()


async def aopen_log(path: Path, whole: bool = False) -> Log:
    """As `open_log`, for a server: reading and parsing leave the event loop free, and can be cancelled in between."""
    import asyncio

    from aiofiles.threadpool import wrap

    log = _open(path)
    backwards = _Backwards(log.size, whole or not log.large)
    with failing(log):
        file = wrap(log.file)
        while batch := backwards.wanted():
            await file.seek(batch[0])
            await asyncio.to_thread(backwards.take, await file.read(batch[1] - batch[0]))
    return backwards.into(log)


def _scans_to(fd: int, end: int) -> Iterator[Scan]:
    """The scans of the file up to the begin of a record, from there backwards."""
    backwards = _Backwards(end, whole=True, ends_file=False)
    while batch := backwards.wanted():
        backwards.take(os.pread(fd, batch[1] - batch[0], batch[0]))
        yield from backwards.drained()


def _record_near(fd: int, at: int) -> int:
    """Where the first record behind an offset begins; 0 if it is far away."""
    block = os.pread(fd, BATCH_BYTES, at)
    first = first_record_line(block, len(block) - 1)
    return at + first if first else 0


def _open(path: Path) -> Log:
    try:
        file = path.open("rb")
        return Log(path, file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise _unreadable(path, error) from None


@contextmanager
def failing(log: Log) -> Iterator[None]:
    """Closes the log when it cannot be read; raises `InputError` for an error of the system."""
    try:
        yield
    except OSError as error:
        log.close()
        raise _unreadable(log.path, error) from None
    except BaseException:
        log.close()
        raise


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: {error.strerror}", "check the path and who may read it")


class _Backwards:
    """Says which bytes to read next, takes them, and stops when the rows after the last boundary are complete."""

    def __init__(self, size: int, whole: bool, ends_file: bool = True) -> None:
        self._size = self._end = size
        self._ends_file = ends_file
        self.floor = 0
        """Where the first record begins that is to be read."""
        self._whole = whole
        self._batch = BATCH_BYTES
        self._scans: list[Scan] = []
        self._boundary: Entry | None = None
        self._kept: frozenset[str] = frozenset()
        self._missing: set[str] = set()
        """Rows that the boundary keeps and that were not met yet."""

    @property
    def is_long(self) -> bool:
        """Whether much is left to read, and no boundary near the end makes an end of it."""
        return self._end > HALVES_BYTES and self._size - self._end >= (0 if self._whole else HALVES_BYTES // 16)

    def wanted(self) -> tuple[int, int] | None:
        """The bytes to read next, from and to; None when it is enough."""
        if self._end <= self.floor or (self._boundary and not self._missing):
            return None
        return max(self.floor, self._end - self._batch), self._end

    def take(self, data: bytes) -> None:
        """The bytes that were wanted.  Raises `Changed` when there are fewer."""
        at = max(self.floor, self._end - self._batch)
        if len(data) < self._end - at:
            raise Changed("the file became shorter while it was read", "run the command again")
        first = first_record_line(data, len(data) - 1, self._batch > _LONGEST_BYTES) if at > self.floor else 0
        if first is None:
            self._batch *= 2
            return
        found = scan(data, first, at, last=self._ends_file and self._end == self._size)
        self._scans.append(found)
        self._end, self._batch = at + first, BATCH_BYTES
        if not self._whole:
            self._look_for_boundary(found, data, at)

    def _look_for_boundary(self, found: Scan, data: bytes, at: int) -> None:
        if self._boundary is None:
            # A sidechain's boundary says nothing about the main conversation.
            boundaries = (e for e in reversed(found.entries) if e.is_boundary and e.uuid and not e.sidechain)
            self._boundary = next(boundaries, None)
            if self._boundary:
                begin = self._boundary.offset - at
                self._kept = frozenset(kept_uuids(decode_body(data[begin : begin + self._boundary.size])))
                self._missing = set(self._kept)
                for scanned in self._scans[:-1]:
                    self._missing.difference_update(e.uuid for e in scanned.entries)
        self._missing.difference_update(e.uuid for e in found.entries)

    def take_front(self, found: Iterable[Scan]) -> None:
        """All that was still wanted, from the end backwards."""
        self._scans += found
        self._end = 0
        self._boundary = None

    def drained(self) -> list[Scan]:
        """What was read since the last call; it is not kept."""
        scans, self._scans = self._scans, []
        return scans

    def scan(self) -> Scan:
        """What was read, in file order."""
        scans = self._scans[::-1]
        return Scan([e for s in scans for e in s.entries], [f for s in scans for f in s.findings])

    def into(self, log: Log) -> Log:
        """The log with what was read."""
        found = self.scan()
        entries = found.entries
        if self._boundary and not self._missing:
            last_places = {e.uuid: e.offset for e in entries if e.uuid in self._kept}
            log.start = min([self._boundary.offset, *last_places.values()])
        log.entries = [e for e in entries if e.offset >= log.start] if log.start else entries
        log.findings = [f for f in found.findings if f.offset >= log.start]
        return log


def kept_uuids(boundary: dict[str, JSON]) -> list[str]:
    """The ids of the rows that a boundary keeps, each once, in order; of a mere segment its first and its last."""
    metadata = boundary.get("compactMetadata")
    if not isinstance(metadata, dict):
        return []
    named, segment = metadata.get("preservedMessages"), metadata.get("preservedSegment")
    listed = named.get("uuids") if isinstance(named, dict) else None
    if isinstance(listed, list):
        return list(dict.fromkeys(uuid for uuid in listed if isinstance(uuid, str)))
    ends = [segment.get("headUuid"), segment.get("tailUuid")] if isinstance(segment, dict) else []
    named_ends = [uuid for uuid in ends if isinstance(uuid, str)]
    return named_ends if len(named_ends) == len(ends) else []
