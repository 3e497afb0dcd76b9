"""Take back the newest operation on a session."""

from __future__ import annotations

from pathlib import Path

from core.service.session import Result
from core.transcript import records
from core.transcript.projects import SessionFile


class UndoResult(Result):
    """What was taken back; `removed` when that was the whole file, `source` is the transcript it was made of."""

    path: str
    op: str
    removed: bool
    source: str


def undo(file: SessionFile, claude_dir: Path, lock_dir: Path) -> UndoResult:
    """Takes back the newest operation: byte for byte what was before, rows that were added since stay.

    Raises what `core.transcript.records.undo` raises; then nothing was changed.
    """
    undone = records.undo(file.path, claude_dir, lock_dir)
    return UndoResult(
        path=str(file.path), op=undone.record.op, removed=undone.removed, source=undone.record.source.path
    )
