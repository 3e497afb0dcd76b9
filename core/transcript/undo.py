"""Taking back what Foldmark wrote: the newest block of a file, or the whole file that it made.

Others may have gone on behind a block: what they wrote stays.  Nothing is taken back that is not as it was written.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import chain
from pathlib import Path

import msgspec

from core.errors import Changed, FoldmarkError, InputError, Locked, NothingToUndo
from core.transcript.live import FileState, open_in
from core.transcript.locks import locked
from core.transcript.neighbours import leaned_on_beside
from core.transcript.ordinary import open_ordinary
from core.transcript.projects import AGENT_PREFIX, session_file
from core.transcript.reader import Log, open_log
from core.transcript.records import STDIN, Placed, Record, digest_of_ends, find_records, is_cut_off
from core.transcript.store import Store
from core.transcript.writer import remove, replace

_DERIVED = "5"
"""The version that stands in an id that was made of a name; clients make theirs of random numbers (version 4)."""


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back, and whether that was the whole file (with its store)."""

    record: Record
    removed: bool


def undo(path: Path, claude_dir: Path, lock_dir: Path) -> Undone:
    """Take back the newest operation: cut its block out of the file, or remove the file that it made.

    Rows that were written behind a block stay.  Without such rows the file is what it was before, byte for byte and in
    its time; what was stored for the block goes.  A file that Foldmark made is removed, with its store, when nothing
    was added to it and its source is still there, or was standard input.

    A block that was cut off while it was written (the power failed) goes as far as it is there, if nothing came after.

    Raises NothingToUndo, InputError when there is no way back, Locked when the session is open in a client, Changed
    when the block or the file is not as it was written, and what writing raises; then the file is as it was.
    """
    given, path = path, Path(os.path.realpath(path))
    with locked(path, lock_dir), open_log(path, whole=True) as log:
        state = FileState.of(log.file.fileno())
        placed, record = _to_take_back(log, given, claude_dir)
        if placed.offset == 0:
            _remove(log, record, state)
        else:
            _cut(log, placed, record, state)
    return Undone(record, removed=placed.offset == 0)


def undoable(path: Path, claude_dir: Path) -> Record:
    """What `undo` would take back; raises as it does."""
    with open_log(Path(os.path.realpath(path)), whole=True) as log:
        return _to_take_back(log, path, claude_dir)[1]


def _to_take_back(log: Log, given: Path, claude_dir: Path) -> tuple[Placed, Record]:
    """The newest operation, where nothing stands against taking it back; a client names a session as `given`."""
    path = log.path
    if (pid := open_in(claude_dir, given.stem) or open_in(claude_dir, path.stem)) is not None:
        raise Locked(f"{given.name} is open in the client (process {pid})", "end that session first")
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
        raise NothingToUndo(f"{log.path.name} holds nothing that Foldmark wrote")
    if found[-1].record is None:
        raise InputError(
            f"{log.path.name}: the newest record is damaged, or of a newer version of Foldmark", "use that version"
        )
    return found[-1], found[-1].record


def _is_followed(log: Log, placed: Placed) -> bool:
    """Whether others wrote rows behind a record: the rows of its block have ids of rows before it, or derived ones."""
    known = {entry.uuid for entry in log.entries if entry.offset < placed.offset}
    new = (entry.uuid for entry in log.entries if entry.offset > placed.offset)
    return any(uuid and uuid not in known and uuid[14:15] != _DERIVED for uuid in new)


def _must_be_whole(log: Log, placed: Placed, record: Record) -> None:
    digest = hashlib.sha256()
    for piece in log.pieces(placed.start, placed.end):
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
    before = log.pieces(0, placed.offset - added)
    replace(log.path, chain(before, log.pieces(placed.end, log.size)), _read_state(log, state))
    if is_last and isinstance(mtime_ns := record.source.mtime_ns, int):
        with suppress(OSError, OverflowError):  # a session that nobody was at work in is not the newest
            os.utime(log.path, ns=(mtime_ns, mtime_ns))
    others = [p.record for p in find_records(log) if p.record and p.offset != placed.offset]
    needed = {file for other in others for file in other.stored or ()}
    if stored := set(record.stored or ()) - needed:
        with suppress(FoldmarkError, OSError):  # what stays is in nobody's way, and the block is gone
            Store.beside(log.path).forget(stored - (leaned_on_beside(log.path) or set()))


def _remove(log: Log, record: Record, state: FileState) -> None:
    path = log.path
    if FileState.of(path) != _read_state(log, state):
        raise Changed(f"{path.name} was written by another program meanwhile", "run the command again")
    remove(path)
    remove_store(path, record)


def remove_store(path: Path, record: Record, *others: Path) -> None:
    """Removes what was stored for a file that is gone, and other files beside it.

    What a neighbour leans on stays; all of it where that cannot be told, or where the file was written anew meanwhile.
    """
    store = Store.beside(path)
    with suppress(FoldmarkError, OSError), store.locked():  # as of a block: what stays is in nobody's way
        if path.exists():
            return
        if (needed := leaned_on_beside(path)) is not None:
            store.forget(set(record.stored or ()) - needed)
            return
        for other in others:
            remove(other, missing_ok=True)
        store.remove()


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
