"""Foldmark's own rows in a transcript: what was written, how long it is, and how it is taken out again.

A record stands in front of the block that it describes, off the chain: clients pass over rows of unknown types.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import chain
from pathlib import Path

import msgspec

from core.errors import Changed, FoldmarkError, InputError, Locked
from core.transcript.live import FileState, open_in
from core.transcript.ordinary import open_ordinary
from core.transcript.projects import AGENT_PREFIX, SessionFile, session_file
from core.transcript.reader import BATCH_BYTES, Log, open_log
from core.transcript.store import Store
from core.transcript.writer import locked, remove, replace

TYPE = "foldmark"
REDACTED = "redact"
"""The operation that made a copy without secrets."""
VERSION = 1
"""Of the record's format; a newer one is left alone."""
_PREFIX = f'{{"type":"{TYPE}"'.encode()
"""How a record begins, as we write it."""
END_BYTES = 64 * 1024
_DERIVED = "5"
"""The version that stands in an id that was made of a name; clients make theirs of random numbers (version 4)."""
STDIN = "-"
"""The path of a source that was standard input: whoever piped it in has it still."""


class Source(msgspec.Struct, frozen=True, rename="camel"):
    """The transcript that the block was made of, and its size when it was read.

    In place that is the file itself: the size tells whether the block had to end a torn row first.
    """

    path: str
    """`STDIN` when it was standard input."""
    session_id: str
    size: int = msgspec.field(name="bytes")
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
    size: int = msgspec.field(name="bytes", default=0)
    sha256: str = ""
    source: Source
    summarizer: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    decisions: tuple[msgspec.Raw, ...] | msgspec.UnsetType = msgspec.UNSET
    """What stages decided; a new file's has what was decided about its source too.  Kept as JSON: a record that
    holds a decision of a newer version can still be undone."""
    stored: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """In place: the files of the store that what was written leans on, but for those of the client."""

    def row(self, block: bytes) -> bytes:
        """The row, with its line end, that is written in front of `block`."""
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


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back, and whether that was the whole file (with its store)."""

    record: Record
    removed: bool


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
    with path.open("rb") as file:
        is_one = file.peek(len(_PREFIX)).startswith(_PREFIX)
        return _placed(file.readline().removesuffix(b"\n") if is_one else b"", 0)


def decisions_of(log: Log) -> list[msgspec.Raw]:
    """All decisions of a file, oldest first, also those before the part of it that the log holds."""
    records = [record for raw in _earlier_rows(log) if (record := _placed(raw, 0).record)]
    records += [placed.record for placed in find_records(log) if placed.record]
    return [decision for record in records for decision in record.decisions or ()]


def _earlier_rows(log: Log) -> Iterator[bytes]:
    """The rows before the start of the log that begin as records do; other rows are not decoded."""
    held: list[bytes] = []  # of one row, which may have very many pieces
    for piece in _pieces(log, 0, log.start):
        first, *rows = piece.split(b"\n")
        held.append(first)
        if rows:
            *whole, last = (b"".join(held), *rows)
            yield from (row for row in whole if row.startswith(_PREFIX))
            held = [last]


def _placed(raw: bytes, offset: int) -> Placed:
    start = offset + len(raw) + 1
    try:
        record = msgspec.json.decode(raw, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Placed(None, offset, start, start)
    if record.version != VERSION or record.size < 0:
        return Placed(None, offset, start, start)
    return Placed(record, offset, start, start + record.size)


def undo(path: Path, claude_dir: Path, lock_dir: Path) -> Undone:
    """Take back the newest operation: cut its block out of the file, or remove the file that it made.

    Rows that were written behind a block stay.  Without such rows the file is what it was before, byte for byte and in
    its time; what was stored for the block goes.  A file that Foldmark made is removed, with its store, when nothing
    was added to it and its source is still there, or was standard input.

    A block that was cut off while it was written (the power failed) goes as far as it is there, if nothing came after.

    Raises InputError when there is nothing to undo, Locked when the session is open in a client, Changed when the
    block or the file is not as it was written, and what writing raises; then the file is as it was.
    """
    path = Path(os.path.realpath(path))
    with locked(path, lock_dir), open_log(path, whole=True) as log:
        state = FileState.of(log.file.fileno())
        placed, record = _to_take_back(log, claude_dir)
        if placed.offset == 0:
            _remove(log, state)
        else:
            _cut(log, placed, record, state)
    return Undone(record, removed=placed.offset == 0)


def undoable(path: Path, claude_dir: Path) -> Record:
    """What `undo` would take back; raises as it does."""
    with open_log(Path(os.path.realpath(path)), whole=True) as log:
        return _to_take_back(log, claude_dir)[1]


def _to_take_back(log: Log, claude_dir: Path) -> tuple[Placed, Record]:
    """The newest operation, where nothing stands against taking it back."""
    path = log.path
    if (pid := open_in(claude_dir, path.stem)) is not None:
        raise Locked(f"{path.name} is open in the client (process {pid})", "end that session first")
    placed, record = _newest(log)
    if is_cut_off(log, placed) and not _is_followed(log, placed):
        return changed(placed, end=log.size), record
    _must_be_whole(log, placed, record)
    if placed.offset == 0:
        if placed.end < log.size:
            raise Changed(
                f"the session went on in {path.name}: {log.size - placed.end} bytes were added since it was written",
                f"{_way_back(path, record)}remove the file yourself if they are not needed",
            )
        refuse_only_copy(path, record)
    return placed, record


def _newest(log: Log) -> tuple[Placed, Record]:
    found = find_records(log)
    if not found:
        raise InputError(f"{log.path.name} holds nothing that Foldmark wrote", "there is nothing to undo")
    if found[-1].record is None:
        raise InputError(
            f"{log.path.name}: the newest record is damaged, or of a newer version of Foldmark", "use that version"
        )
    return found[-1], found[-1].record


def is_cut_off(log: Log, placed: Placed) -> bool:
    """Whether the block of an operation in place is longer than what the file still has of it."""
    return placed.offset > 0 and log.size < placed.end


def _is_followed(log: Log, placed: Placed) -> bool:
    """Whether others wrote rows behind a record: the rows of its block have ids of rows before it, or derived ones."""
    known = {entry.uuid for entry in log.entries if entry.offset < placed.offset}
    new = (entry.uuid for entry in log.entries if entry.offset > placed.offset)
    return any(uuid and uuid not in known and uuid[14:15] != _DERIVED for uuid in new)


def _must_be_whole(log: Log, placed: Placed, record: Record) -> None:
    digest = hashlib.sha256()
    for piece in _pieces(log, placed.start, placed.end):
        digest.update(piece)
    if digest.hexdigest() != record.sha256:
        raise Changed(
            f"{log.path.name}: what Foldmark wrote was edited since, and cannot be told from other rows any more",
            "take it out by hand, or go on from a copy",
        )


def _cut(log: Log, placed: Placed, record: Record, state: FileState) -> None:
    """Cuts record and block out, and the line end before them when it was added for them alone."""
    is_last = placed.end == log.size
    added = is_last and placed.offset == record.source.size + 1
    before = _pieces(log, 0, placed.offset - added)
    replace(log.path, chain(before, _pieces(log, placed.end, log.size)), _read_state(log, state))
    if is_last and isinstance(mtime_ns := record.source.mtime_ns, int):
        with suppress(OSError, OverflowError):  # a session that nobody was at work in is not the newest
            os.utime(log.path, ns=(mtime_ns, mtime_ns))
    others = [p.record for p in find_records(log) if p.record and p.offset != placed.offset]
    needed = {file for other in others for file in other.stored or ()}
    if stored := set(record.stored or ()) - needed:
        with suppress(FoldmarkError):  # what stays is in nobody's way, and the block is gone
            Store.beside(log.path).forget(stored)


def _remove(log: Log, state: FileState) -> None:
    path = log.path
    if FileState.of(path) != _read_state(log, state):
        raise Changed(f"{path.name} was written by another program meanwhile", "run the command again")
    remove(path)
    with suppress(FoldmarkError):  # as of a block: what stays is in nobody's way
        Store.beside(path).remove()


def refuse_only_copy(path: Path, record: Record) -> None:
    """Raises InputError when what a file was made of is nowhere else."""
    if record.source.path != STDIN and not _source_is_whole(path, record):
        raise InputError(
            f"{path.name} cannot be removed: its source, {path.parent / record.source.path}, is gone or another "
            "one now, and this is the only copy",
            "remove the file yourself if it is not needed",
        )


def _source_is_whole(path: Path, record: Record) -> bool:
    """Whether the source is there, with all bytes that were read of it; rows may stand behind them."""
    source = record.source
    try:
        file = open_ordinary(path.parent / source.path)
    except (OSError, ValueError):
        return False
    with file:
        fd = file.fileno()
        found = os.fstat(fd)
        if os.path.samestat(found, path.stat()) or found.st_size < source.size:
            return False
        return source.ends_sha256 in (msgspec.UNSET, digest_of_ends(fd, source.size))


def digest_of_ends(fd: int, size: int) -> str:
    """The SHA-256 of the first and the last `END_BYTES` of the first `size` bytes of a file.

    The whole of a large file would be read for nothing: a transcript only grows, and one that was written anew has
    other rows in front or at its end.
    """
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


def _way_back(path: Path, record: Record) -> str:
    """How to go on from the source, as the begin of a hint; "" when it is not there."""
    if record.source.path == STDIN or not _source_is_whole(path, record):
        return ""
    source = session_file(path.parent / record.source.path)
    if source.parent or source.id.startswith(AGENT_PREFIX):  # clients resume no subagents
        return f"its source is intact: {source.path}; "
    return f"its source is intact, go on from there with: claude --resume {record.source.session_id}; "


def _read_state(log: Log, state: FileState) -> FileState:
    """The state in which the log was read: rows that came between opening and looking count as a change."""
    return FileState(log.size, state.mtime_ns, state.inode)


def _pieces(log: Log, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a file from `start` to `end`, a batch at a time."""
    while start < end and (piece := os.pread(log.file.fileno(), min(BATCH_BYTES, end - start), start)):
        yield piece
        start += len(piece)
