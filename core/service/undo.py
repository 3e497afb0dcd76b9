"""Take back the newest operation on a session."""

from __future__ import annotations

from pathlib import Path

from core.service.session import Result
from core.transcript import documents
from core.transcript import undo as back
from core.transcript.projects import SessionFile


class UndoResult(Result):
    """What was taken back."""

    path: str
    """The file that was cut, or removed."""
    op: str
    """What was taken back: compact, snip, ..."""
    removed: bool
    """Whether the whole file went."""
    source_path: str
    """The transcript that it was made of; "-" where that was standard input."""


def undoable(file: SessionFile, claude_dir: Path) -> str:
    """Which operation `undo` would take back; raises as it does."""
    if documents.record_of(file.path):
        return documents.undoable(file.path).op
    return back.undoable(file.path, claude_dir).op


def undo(file: SessionFile, claude_dir: Path, lock_dir: Path) -> UndoResult:
    """Takes back the newest operation: byte for byte what was before, rows that were added since stay.

    Raises what `undo` of `core.transcript.undo` and `documents` raise; then nothing was changed.
    """
    if documents.record_of(file.path):
        undone = documents.undo(file.path, lock_dir)
    else:
        undone = back.undo(file.path, claude_dir, lock_dir)
    return UndoResult(
        path=str(file.path), op=undone.record.op, removed=undone.removed, source_path=undone.record.source.path
    )
