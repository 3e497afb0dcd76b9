"""Which bytes of a transcript are read next, from its end backwards, and when it is enough.

A file is read in pieces.  They end where the first record begins behind each multiple of `BATCH_BYTES`, from whichever
end they are read: so what is found in them is the same, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from core.errors import Changed, Damaged
from core.model import JSON
from core.transcript.entries import Entry, decode_body
from core.transcript.scanner import Scan, first_record_line, scan

WHOLE_BYTES = 5 << 20
"""Up to this size a file is always read whole: by the client, and so here."""
BATCH_BYTES = 1 << 20
"""What is read and parsed at a time."""
_SLACK_BYTES = 1 << 16
"""How far behind such a multiple a record mostly begins."""
TWO_PROCESSES_BYTES = 64 << 20
"""From this size on a second process is worth its start, some 10 ms."""
_LONGEST_BYTES = 64 << 20
"""A piece is doubled while no record begins in it, up to this size; then any line will do."""
MOST_BYTES = 512 << 20
"""Where no line begins either: the longest text that the client's JavaScript engine holds is no longer."""


def is_large(size: int) -> bool:
    """Whether rows before the last boundary of a file of so many bytes are out of reach for the client."""
    return size > WHOLE_BYTES


class Backwards:
    """Says which bytes to read next, takes them, and stops when the rows after the last boundary are complete."""

    def __init__(self, size: int, whole: bool) -> None:
        self._size = self._end = size
        self.floor = 0
        """Where the first record begins that is to be read: what is in front is read by others."""
        self._whole = whole
        self._mark = _mark_before(size - 1)
        """The last one that the next piece can begin behind."""
        self._marks = 1
        """How many of them are looked at."""
        self._scans: list[Scan] = []
        self._boundary: Entry | None = None
        self._kept: frozenset[str] = frozenset()
        self._missing: set[str] = set()
        """Rows that the boundary keeps and that were not met yet."""

    @property
    def end(self) -> int:
        """Where what was read begins."""
        return self._end

    @property
    def may_be_long(self) -> bool:
        """Whether there is much that may have to be read."""
        return self._end > TWO_PROCESSES_BYTES

    @property
    def is_long(self) -> bool:
        """Whether much is left to read, and no boundary near the end makes an end of it."""
        return self.may_be_long and self._size - self._end >= (1 if self._whole else TWO_PROCESSES_BYTES // 16)

    def wanted(self) -> tuple[int, int] | None:
        """The bytes to read next, from and to; None when it is enough."""
        if self._end <= self.floor or (self._boundary and not self._missing):
            return None
        return self._start, self._end

    @property
    def _start(self) -> int:
        return max(self.floor, (self._mark - self._marks + 1) * BATCH_BYTES)

    def take(self, data: bytes) -> None:
        """The bytes that were wanted.  Raises `Changed` when there are fewer."""
        at = self._start
        if len(data) < self._end - at:
            raise Changed("the file became shorter while it was read", "run the command again")
        first = self._first(data, at)
        if first is None:
            self._double()
            return
        found = scan(data, first, len(data), at, last=self._end == self._size)
        self._end = at + first
        self._mark, self._marks = _mark_before(self._end) - 1, 1
        self._took(found, lambda e: data[e.offset - at : e.offset - at + e.size])

    def _first(self, data: bytes, at: int) -> int | None:
        """Where in the data the last piece begins; None where no piece does."""
        marks = range(self._mark * BATCH_BYTES, at - (at > self.floor), -BATCH_BYTES)
        found = (first_record_line(data, mark - at, len(data) - 1) for mark in marks)
        first = next((each for each in found if each is not None), None)
        if first is not None or at == self.floor:
            return first or 0
        if self._marks * BATCH_BYTES > _LONGEST_BYTES:
            return first_record_line(data, 0, len(data) - 1, any_line=True)
        return None

    def _double(self) -> None:
        if self._marks * BATCH_BYTES >= MOST_BYTES:
            raise Damaged(f"a line of more than {MOST_BYTES >> 20} MiB: no client reads such a row", "take it out")
        self._marks *= 2

    def _took(self, found: Scan, raw: Callable[[Entry], bytes]) -> None:
        self._scans.append(found)
        if self._whole:
            return
        if self._boundary is None:
            # A sidechain's boundary says nothing about the main conversation.
            boundaries = (e for e in reversed(found.entries) if e.is_boundary and e.uuid and not e.sidechain)
            self._boundary = next(boundaries, None)
            if self._boundary:
                self._kept = frozenset(kept_uuids(decode_body(raw(self._boundary))))
                self._missing = set(self._kept)
                for scanned in self._scans[:-1]:
                    self._missing.difference_update(e.uuid for e in scanned.entries)
        self._missing.difference_update(e.uuid for e in found.entries)

    def take_front(self, found: Sequence[Scan], raw: Callable[[Entry], bytes]) -> None:
        """What was found in all that lies in front, in file order; `raw` reads a row."""
        for each in reversed(found):
            if self.wanted():
                self._took(each, raw)
        self._end = 0

    def found(self) -> tuple[int, Scan]:
        """What counts of what was read, in file order, and from which byte on that is."""
        scans = self._scans[::-1]
        entries = [e for s in scans for e in s.entries]
        findings = [f for s in scans for f in s.findings]
        if not self._boundary or self._missing:
            return 0, Scan(entries, findings)
        last_places = {e.uuid: e.offset for e in entries if e.uuid in self._kept}
        start = min([self._boundary.offset, *last_places.values()])
        return start, Scan([e for e in entries if e.offset >= start], [f for f in findings if f.offset >= start])


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


def _mark_before(record: int) -> int:
    """Which multiple of `BATCH_BYTES` is the last one that is not behind the line end in front of a record."""
    return max(record - 1, 0) // BATCH_BYTES


def scans_forwards(fd: int, end: int) -> Iterator[tuple[int, Scan]]:
    """The pieces of a file from its begin on, and where each ends, up to a record that begins at `end`.

    It ends early where a piece is very long.
    """
    at = 0
    while at < end:
        mark = (_mark_before(at) + 1) * BATCH_BYTES
        size, slack = None, _SLACK_BYTES
        while size is None:
            if slack > _LONGEST_BYTES:
                return
            data = os.pread(fd, min(mark + slack, end) - at, at)
            size = first_record_line(data, mark - at, len(data))
            if size is None and at + len(data) == end:
                size = len(data)
            slack *= 16  # a long row is read again, but not often
        yield at + size, scan(data, 0, size, at, last=False)
        at += size
