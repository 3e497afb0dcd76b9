"""Transcripts that share one folder for what is stored: files beside each other that differ in their suffix alone."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import Damaged
from core.transcript.projects import own_folder
from core.transcript.reader import open_log
from core.transcript.records import find_records


def neighbours(path: Path) -> list[Path]:
    """The other ordinary files that share the folder of a transcript, which need not be there any more.

    Raises OSError.
    """
    with os.scandir(path.parent) as entries:
        files = [path.parent / entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    return [file for file in files if file.name != path.name and own_folder(file) == own_folder(path)]


def leaned_on_beside(path: Path) -> set[str] | None:
    """The files of the store that the neighbours of a transcript lean on; None where it has none that are transcripts.

    Raises OSError and FoldmarkError where that cannot be told.
    """
    found = [files for other in neighbours(path) if (files := _leaned_on(other)) is not None]
    return set[str]().union(*found) if found else None


def _leaned_on(path: Path) -> set[str] | None:
    """The files of the store that a file leans on; None for what is no transcript."""
    with open_log(path, whole=True) as log:
        records = [placed.record for placed in find_records(log)]
        is_one = bool(log.entries)
    if None in records:
        raise Damaged(f"{path.name} holds a record that cannot be read", "use the version of Foldmark that wrote it")
    return {file for record in records if record for file in record.stored or ()} if is_one else None
