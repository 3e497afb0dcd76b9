"""Which bytes of a transcript are read next, from its end backwards, and when it is enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from core.errors import Changed, Damaged
from core.model import JSON
from core.transcript.entries import Entry, decode_body
from core.transcript.scanner import Scan, first_record_line, scan

WHOLE_BYTES = 5 << 20
"""Up to this size a file is always read whole: by the client, and so here."""
BATCH_BYTES = 1 << 20
"""What is read and parsed at a time."""
HALVES_BYTES = 64 << 20
"""From this size on a second process is worth its start, some 10 ms."""
_LONGEST_BYTES = 64 << 20
"""A batch is doubled while no record begins in it, up to this size; then any line will do."""
MOST_BYTES = 512 << 20
"""Where no line begins either: the longest text that the client's JavaScript engine holds is no longer."""


def is_large(size: int) -> bool:
    """Whether rows before the last boundary of a file of so many bytes are out of reach for the client."""
    return size > WHOLE_BYTES


class Backwards:
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
    def end(self) -> int:
        """Where what was read begins."""
        return self._end

    @property
    def may_be_long(self) -> bool:
        """Whether there is much that may have to be read."""
        return self._end > HALVES_BYTES

    @property
    def is_long(self) -> bool:
        """Whether much is left to read, and no boundary near the end makes an end of it."""
        return self.may_be_long and self._size - self._end >= (0 if self._whole else HALVES_BYTES // 16)

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
            self._double()
            return
        found = scan(data, first, at, last=self._ends_file and self._end == self._size)
        self._end, self._batch = at + first, BATCH_BYTES
        self._took(found, lambda e: data[e.offset - at : e.offset - at + e.size])

    def _double(self) -> None:
        if self._batch >= MOST_BYTES:
            raise Damaged(f"a line of more than {MOST_BYTES >> 20} MiB: no client reads such a row", "take it out")
        self._batch *= 2

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

    def take_front(self, found: Iterable[Scan], raw: Callable[[Entry], bytes]) -> None:
        """All that lies in front, from the end backwards; `raw` reads a row."""
        for each in found:
            if self.wanted():
                self._took(each, raw)
        self._end = 0

    def drained(self) -> list[Scan]:
        """What was read since the last call; it is not kept."""
        scans, self._scans = self._scans, []
        return scans

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


def scans_to(fd: int, end: int) -> Iterator[Scan]:
    """The scans of the file up to the begin of a record, from there backwards."""
    backwards = Backwards(end, whole=True, ends_file=False)
    while batch := backwards.wanted():
        backwards.take(os.pread(fd, batch[1] - batch[0], batch[0]))
        yield from backwards.drained()


def record_near(fd: int, at: int) -> int:
    """Where the first record behind an offset of a file begins; 0 if it is far away."""
    block = os.pread(fd, BATCH_BYTES, at)
    first = first_record_line(block, len(block) - 1)
    return at + first if first else 0
