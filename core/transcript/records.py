"""Foldmark's own rows in a transcript: what was written, how long it is, and how it is taken out again.

A record stands in front of the block that it describes, off the chain: clients pass over rows of unknown types.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from core.model import UNDECODABLE
from core.transcript.ordinary import open_ordinary
from core.transcript.projects import SessionFile, session_file
from core.transcript.reader import Log

TYPE = "foldmark"
REDACTED = "redact"
"""The operation that made a copy without secrets."""
VERSION = 1
"""Of the record's format; a newer one is left alone."""
_PREFIX = f'{{"type":"{TYPE}"'.encode()
"""How a record begins, as we write it."""
MOST_BYTES = 64 << 20
"""Of a row that may be a record: one of 10,000 decisions with their previews has half of it."""
MOST_BLOCK_BYTES = 128 << 20
"""Of the block behind a record: one context, of which the API takes 32 MB, with its results twice, as clients do."""
END_BYTES = 64 * 1024
STDIN = "-"
"""The path of a source that was standard input: whoever piped it in has it still."""
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """The transcript that the block was made of, and its size when it was read.

    In place that is the file itself: the size tells whether the block had to end a torn row first.
    """

    path: str
    """`STDIN` when it was standard input."""
    session_id: str
    size: _Count = msgspec.field(name="bytes")
    mtime_ns: int | msgspec.UnsetType = msgspec.UNSET
    """In place: the time of the file before, which undo gives back."""
    ends_sha256: str | msgspec.UnsetType = msgspec.UNSET
    """Of a transcript, for a new file: the digest of its ends (see `digest_of_ends`), by which undo knows it again."""


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag=TYPE):
    """What one operation wrote; `size` (bytes) and `sha256` are those of the block behind the record."""

    op: str
    id: str
    version: int = VERSION
    session_id: str
    size: _Count = msgspec.field(name="bytes", default=0)
    sha256: str = ""
    source: Source
    summarizer: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    decisions: tuple[msgspec.Raw, ...] | msgspec.UnsetType = msgspec.UNSET
    """What stages decided; where a block follows, with what was decided before and still holds.  Kept as JSON: a
    record that holds a decision of a newer version can still be undone."""
    stored: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The files of the store that what was written leans on, but for those of the client."""

    def row(self, block: bytes) -> bytes:
        """The row, with its line end, that is written in front of `block`."""
        import hashlib  # 4 ms, which lists of sessions need not wait for

        whole = msgspec.structs.replace(self, size=len(block), sha256=hashlib.sha256(block).hexdigest())
        return msgspec.json.encode(whole) + b"\n"


@dataclass(frozen=True, slots=True)
class Placed:
    """A record in a file: the byte offsets of its row, of its block, and of what is behind the block."""

    record: Record | None
    """None when this version cannot read it; then the block is not known, and counts as empty."""
    offset: int
    start: int
    end: int


def find_records(log: Log) -> list[Placed]:
    """All records of a log, in file order; a log that begins at a boundary does not hold that boundary's record."""
    return [_placed(log.raw(entry), entry.offset) for entry in log.entries if entry.type == TYPE]


def first_record(path: Path) -> Record | None:
    """The record at the front of a transcript; None where Foldmark did not write it, or a newer version did."""
    return _first(path).record


def is_as_made(file: SessionFile) -> bool:
    """Whether Foldmark made the whole of a transcript: nobody went on in it since.  Raises no OSError."""
    with suppress(OSError):
        first = _first(file.path)
        return first.record is not None and first.end == file.size_bytes
    return False


def _first(path: Path) -> Placed:
    """What the first row places; a row that begins as none is not read to its end."""
    with open_ordinary(path) as file:
        raw = file.readline(len(_PREFIX))
        is_one = raw == _PREFIX
        return _placed((raw + file.readline(MOST_BYTES)).removesuffix(b"\n") if is_one else b"", 0)


def decisions_of(log: Log) -> list[msgspec.Raw]:
    """The decisions that may still hold for what the log's next request is made of, oldest first.

    The newest record with a block has all that held before it; those behind it add to them.
    """
    records: list[Record] = []
    for record in _newest_first(log):
        records.append(record)
        if record.size:
            break
    return [decision for record in reversed(records) for decision in record.decisions or ()]


def all_decisions(log: Log) -> list[msgspec.Raw]:
    """The decisions of all records of a log, oldest first: they may say the same again."""
    return [each for placed in find_records(log) if placed.record for each in placed.record.decisions or ()]


def _newest_first(log: Log) -> Iterator[Record]:
    for placed in reversed(find_records(log)):
        if placed.record:
            yield placed.record
    # Decided about a row of the log, but recorded before it: then the row lies in the block behind that record.
    for offset in reversed([*_earlier_offsets(log)]):
        if record := _placed(_row_at(log, offset), offset).record:
            yield record


def _earlier_offsets(log: Log) -> Iterator[int]:
    """Where rows not far before the log are that begin as records do: they are searched for, and nothing is split."""
    length = len(_PREFIX)
    at = max(0, log.start - MOST_BLOCK_BYTES)
    before = b"" if at else b"\n"  # the first row has no line end in front of it
    for piece in log.pieces(at, log.start):
        border = before + piece[:length]  # a row may begin in one piece and go on in the next
        yield from [at - len(before) + end + 1 for end in _line_ends(border[: len(before)], border)]
        yield from [at + end + 1 for end in _line_ends(piece, piece)]
        at += len(piece)
        before = piece[-length:] if len(piece) >= length else (before + piece)[-length:]


def _line_ends(lines: bytes, data: bytes) -> Iterator[int]:
    """The places in `lines`, the front of `data`, of line ends behind which a record begins.

    Looking for one byte is many times as fast as for several, and joining pieces costs more than both.
    """
    end = lines.find(b"\n")
    while end >= 0:
        if data.startswith(_PREFIX, end + 1):
            yield end
        end = lines.find(b"\n", end + 1)


def _row_at(log: Log, offset: int) -> bytes:
    """The row that begins there, without its line end; what is too long for a record is cut off."""
    found = bytearray()
    for piece in log.pieces(offset, min(log.start, offset + MOST_BYTES)):
        row, end, _ = piece.partition(b"\n")
        found += row
        if end:
            break
    return bytes(found)


def _placed(raw: bytes, offset: int) -> Placed:
    start = offset + len(raw) + 1
    try:
        record = msgspec.json.decode(raw, type=Record)
    except UNDECODABLE:
        return Placed(None, offset, start, start)
    if record.version != VERSION:
        return Placed(None, offset, start, start)
    return Placed(record, offset, start, start + record.size)


def is_cut_off(log: Log, placed: Placed) -> bool:
    """Whether the block of an operation in place is longer than what the file still has of it."""
    return placed.offset > 0 and log.size < placed.end


def digest_of_ends(fd: int, size: int) -> str:
    """The SHA-256 of the first and the last `END_BYTES` of the first `size` bytes of a file.

    The whole of a large file would be read for nothing: a transcript only grows, and one that was written anew has
    other rows in front or at its end.
    """
    import hashlib

    digest = hashlib.sha256(os.pread(fd, min(END_BYTES, size), 0))
    start = max(0, size - END_BYTES)
    digest.update(os.pread(fd, size - start, start))
    return digest.hexdigest()


def source_file(transcript: Path, source: Source) -> Path | None:
    """The transcript that another was made of, where that is what the record may lead to; else None.

    A record can be forged: it leads to nothing but a regular file of the session that it names, in the folder of the
    transcript or anywhere below the one that holds that folder (unless that is the root), links followed.
    """
    try:
        path = Path(os.path.realpath(transcript.parent / source.path))
        folder = Path(os.path.realpath(transcript)).parent
        is_near = path.parent == folder or (folder.parent.name != "" and path.is_relative_to(folder.parent))
        is_it = is_near and session_file(path).id == source.session_id
        return path if is_it and path.is_file() else None
    except (OSError, ValueError):  # gone, or no name that a file can have
        return None
