"""What Foldmark writes of other clients' conversations: a document, which has no place for a record in it.

The record lies beside it, in the folder that holds the document's store: `<name without suffix>/foldmark.json`.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from core.errors import Changed, FoldmarkError, NothingToUndo, WriteFailed
from core.transcript.locks import locked
from core.transcript.neighbours import neighbours
from core.transcript.ordinary import open_ordinary
from core.transcript.projects import SUFFIX, own_folder
from core.transcript.records import MOST_BYTES, VERSION, Record
from core.transcript.undo import Undone, refuse_only_copy, remove_store
from core.transcript.writer import make_private, remove, write_new

_NAME = "foldmark.json"


def record_path(document: Path) -> Path:
    """Where the record of a document is."""
    return own_folder(document) / _NAME


def record_of(document: Path) -> Record | None:
    """The record of a document; None when Foldmark did not write it, or when this version cannot read the record."""
    if document.suffix == SUFFIX:  # transcripts have their records in them
        return None
    try:
        with open_ordinary(record_path(document), follow_links=False) as file:
            record = msgspec.json.decode(file.read(MOST_BYTES), type=Record)
    except (OSError, ValueError, RecursionError):  # no name, or nothing that can be decoded
        return None
    return record if record.version == VERSION else None


def written_tokens(document: Path) -> int:
    """The tokens that a document was written with, in all; 0 where it has no record or was changed since."""
    record = record_of(document)
    if record is None or hashlib.sha256(document.read_bytes()).hexdigest() != record.sha256:
        return 0
    return record.tokens_after


def write_document(path: Path, record: Record, data: bytes) -> None:
    """Write a new document and its record, which is on the disk first; raises WriteFailed: then neither is there."""
    beside = record_path(path)
    make_private(beside.parent)
    if not path.exists():  # a process that was killed left it
        remove(beside, missing_ok=True)
    write_new(beside, [record.row(data)])
    try:
        write_new(path, [data])
    except FoldmarkError:
        if not path.exists():  # else another process wrote the same
            _forget(path)
        raise


def undo(path: Path, lock_dir: Path) -> Undone:
    """Remove a document that Foldmark wrote, with its record and its store.

    Raises NothingToUndo when it has no record, InputError when its source is gone, Changed when it is not as it was
    written, Locked, WriteFailed; then all is as it was.
    """
    path = Path(os.path.realpath(path))
    with locked(path, lock_dir):
        record = undoable(path)
        remove(path)
        with suppress(OSError):
            if not neighbours(path):  # else one may be a copy
                remove_store(path, record, record_path(path))
    return Undone(record, removed=True)


def undoable(path: Path) -> Record:
    """The record of a document that can be removed; raises as `undo`."""
    record = record_of(path)
    if record is None:
        raise NothingToUndo(f"{path.name} holds nothing that Foldmark wrote")
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise WriteFailed(f"{path}: {error.strerror}") from None
    if digest != record.sha256:
        raise Changed(f"{path.name} was edited since Foldmark wrote it", "remove it yourself if it is not needed")
    refuse_only_copy(path, record)
    return record


def _forget(path: Path) -> None:
    """Removes the record, and the folder that nothing else is in."""
    with suppress(OSError):
        record_path(path).unlink()
        record_path(path).parent.rmdir()
