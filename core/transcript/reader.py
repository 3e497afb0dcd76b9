"""From a file to its entries: backwards from its end, in batches, never line by line, never all of it in memory.

Of a large file nothing is read before the last compact boundary: that is all that the next request needs, however
long the history before it is.  The client does the same (measured: it skips what is before the last boundary in
files of more than 5 MiB, but for rows that the boundary names as kept).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from core.errors import Changed, Damaged, InputError
from core.model import JSON
from core.transcript.backwards import BATCH_BYTES, Backwards, is_large, scans_forwards
from core.transcript.entries import Entry, decode_body, decode_row
from core.transcript.findings import Finding
from core.transcript.front import Front, can_fork
from core.transcript.ordinary import open_ordinary

_LEAST_ROOM_BYTES, _ROOM = 1 << 20, 4
"""What is found in a file takes a twentieth of it, or a half where rows are short.  Room is address space, of which
there may be little: so there is room for a quarter, and what does not fit is read by one process."""


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
        return is_large(self.size)

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

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` to `end`, a batch at a time."""
        while start < end and (piece := os.pread(self.file.fileno(), min(BATCH_BYTES, end - start), start)):
            yield piece
            start += len(piece)

    def filled(self, backwards: Backwards) -> Log:
        """The log with what was read."""
        self.start, found = backwards.found()
        self.entries, self.findings = found.entries, found.findings
        return self

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
        self._backwards = Backwards(self._log.size, whole or not self._log.large)
        self._front: Front | None = None

    def is_of(self, path: Path) -> bool:
        """Whether it is this file that is read."""
        with suppress(OSError, ValueError):
            return os.path.samestat(os.fstat(self._log.file.fileno()), path.stat())
        return False

    def begin(self) -> None:
        """Has a second process read a long file from its front, as soon as it is sure that this is needed."""
        backwards = self._backwards
        if not (backwards.may_be_long and can_fork()):
            return
        with failing(self._log):
            while not backwards.is_long and self._read_on():
                pass
            if not backwards.is_long:
                return
            with suppress(OSError):  # no process to be had: then without
                scans = partial(scans_forwards, self._fd, backwards.end)
                self._front = Front(scans, _LEAST_ROOM_BYTES + backwards.end // _ROOM)

    def finish(self) -> Log:
        """Reads the rest, up to what the second process has read by then, and is closed."""
        backwards, front = self._backwards, self._front
        with failing(self._log):
            try:
                while self._read_on():
                    backwards.floor = front.reached() if front else 0
                backwards.floor = 0
                if front and backwards.wanted():
                    front.stop()
                    backwards.take_front(front.scans(backwards.end), self._log.raw)
            finally:
                self._end_front()
        return self._log.filled(backwards)

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
    backwards = Backwards(log.size, whole or not log.large)
    with failing(log):
        file = wrap(log.file)
        while batch := backwards.wanted():
            await file.seek(batch[0])
            await asyncio.to_thread(backwards.take, await file.read(batch[1] - batch[0]))
    return log.filled(backwards)


def _open(path: Path) -> Log:
    try:
        file = open_ordinary(path)
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
