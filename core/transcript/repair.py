"""The rows of a damaged transcript as they would be without the damage, for a new file.

Rows that nothing is wrong with keep their bytes.  What is repaired gives the same view as before: damage is read
the same way as it is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from core.model import JSON
from core.times import stamp, time_from
from core.transcript.entries import Entry
from core.transcript.links import main_rows
from core.transcript.reader import Log
from core.transcript.recover import wrong_bytes

_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1970, 9000)
"""What counts as a time: no client wrote before, and arithmetic at the ends of the calendar fails."""


@dataclass(slots=True)
class Repairs:
    """What is changed, by the offset of the row."""

    dropped: set[int] = field(default_factory=set)
    """Rows whose id a later row has too, with no compaction between them."""
    parents: dict[int, str | None] = field(default_factory=dict)
    """New parents of rows whose parent is not in the file; None for rows that were their own ancestors."""
    orphans: set[int] = field(default_factory=set)
    """Rows whose parent is not in the file, and that stay so: the row before them is of another session."""
    timestamps: dict[int, str] = field(default_factory=dict)


def repairs_of(log: Log) -> Repairs:
    """What a repair changes in the rows of a transcript that was read whole."""
    repairs = Repairs()
    _drop_duplicates(log.entries, repairs)
    rows, places = main_rows(log.entries)
    parents = _reparented(log, rows, [places.get(row.parent) for row in rows], repairs)
    for at in _cycle_ends(parents):
        repairs.parents[rows[at].offset] = None
    _date(log.entries, repairs)
    return repairs


def repair(log: Log) -> Iterator[bytes]:
    """The rows of the repaired file in order, each with its line end, of a transcript that was read whole.

    Joined records get their own lines, records that are cut and lines that are no rows are left out, bytes that are
    no UTF-8 are replaced.  Of a file without damage it is the same file.
    """
    repairs = repairs_of(log)
    for entry in log.entries:
        if entry.offset in repairs.dropped:
            continue
        changes: dict[str, JSON] = {}
        if entry.offset in repairs.parents:
            changes["parentUuid"] = repairs.parents[entry.offset]
        if entry.offset in repairs.timestamps:
            changes["timestamp"] = repairs.timestamps[entry.offset]
        raw = log.raw(entry)
        if changes or b"\n" in raw or wrong_bytes(raw):
            raw = msgspec.json.encode({**log.row(entry), **changes})
        yield raw + b"\n"


def _drop_duplicates(entries: Sequence[Entry], repairs: Repairs) -> None:
    """Of the rows of one id the last counts; a compaction repeats rows that it keeps, and leaves the old ones."""
    later: dict[tuple[str, bool], Entry] = {}
    for entry in reversed(entries):
        if entry.is_boundary:
            later.clear()
        if not entry.uuid:
            continue
        key = (entry.uuid, entry.sidechain)
        if key in later:
            repairs.dropped.add(entry.offset)
        later[key] = entry


def _reparented(log: Log, rows: Sequence[Entry], parents: list[int | None], repairs: Repairs) -> list[int | None]:
    """The places of the parents, with rows without one hung off the row before them."""
    for i, row in enumerate(rows):
        if i == 0 or parents[i] is not None or not row.parent or row.is_boundary:
            continue
        if log.row(row).get("sessionId") == log.row(rows[i - 1]).get("sessionId"):
            parents[i] = i - 1
            repairs.parents[row.offset] = rows[i - 1].uuid
        else:
            repairs.orphans.add(row.offset)
    return parents


def _cycle_ends(parents: Sequence[int | None]) -> list[int]:
    """One row of each loop of parents: the one that is its root when the walk starts from the newest row."""
    ends = []
    walks: dict[int, int] = {}
    for start in reversed(range(len(parents))):
        at: int | None = start
        before = start
        while at is not None and at not in walks:
            walks[at] = start
            before = at
            at = parents[at]
        if at is not None and walks[at] == start:
            ends.append(before)
    return ends


def _date(entries: Sequence[Entry], repairs: Repairs) -> None:
    """Older clients fail on a row without a timestamp: it gets one between those of its neighbours."""
    after: datetime | None = None
    nexts: list[datetime | None] = []
    for entry in reversed(entries):
        nexts.append(after)
        after = _time(entry.timestamp) or after
    before = (after or _EPOCH) - _MILLISECOND
    for entry, following in zip(entries, reversed(nexts), strict=True):
        if entry.on_chain and not entry.timestamp:
            later = before + _MILLISECOND
            before = min(later, following) if following and following >= before else later
            repairs.timestamps[entry.offset] = stamp(before)
        else:
            before = _time(entry.timestamp) or before


def _time(timestamp: str) -> datetime | None:
    time = time_from(timestamp)
    return time if time and time.year in _YEARS else None
