"""Take back the newest operation on a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.errors import NothingToUndo
from core.results import Result
from core.transcript import documents
from core.transcript import undo as back
from core.transcript.projects import SUFFIX, SessionFile
from core.transcript.records import first_record, source_file


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
    with _pointing(file.path):
        if documents.record_of(file.path):
            return documents.undoable(file.path).op
        return back.undoable(file.path, claude_dir).op


def undo(file: SessionFile, claude_dir: Path, lock_dir: Path) -> UndoResult:
    """Takes back the newest operation: byte for byte what was before, rows that were added since stay.

    Raises what `undo` of `core.transcript.undo` and `documents` raise; then nothing was changed.
    """
    with _pointing(file.path):
        if documents.record_of(file.path):
            undone = documents.undo(file.path, lock_dir)
        else:
            undone = back.undo(file.path, claude_dir, lock_dir)
    return UndoResult(
        path=str(file.path), op=undone.record.op, removed=undone.removed, source_path=undone.record.source.path
    )


@contextmanager
def _pointing(path: Path) -> Iterator[None]:
    """Has the error name what was made of a transcript, where that itself holds nothing to take back."""
    try:
        yield
    except NothingToUndo as error:
        made = ", ".join(map(str, _made_of(path)))
        hint = f"name what was made of it: {made}" if made else "there is nothing to undo"
        raise NothingToUndo(str(error), hint) from None


def _made_of(path: Path) -> Iterator[Path]:
    """What Foldmark made of a transcript, in the folder of it."""
    path = path.resolve()
    for other in sorted(filter(Path.is_file, path.parent.glob("*"))):
        with suppress(OSError):
            record = first_record(other) if other.suffix == SUFFIX else documents.record_of(other)
            if record and source_file(other, record.source) == path:
                yield other
