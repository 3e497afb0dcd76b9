"""The summary of a compaction under way: kept from when the host has it until it starts the session anew.

The client tells its hooks of a summary, then starts the session anew, and only then writes the summary down.  Who wants
to say what a summary lost needs it in between.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from core.errors import Damaged
from core.transcript.ordinary import refuse_links
from core.transcript.projects import own_folder, read_small

NAME = "compaction.txt"
MOST_CHARS = 20_000
"""Of a summary: clients' own have 2,000 to 15,000."""


def _path(transcript: Path) -> Path:
    folder = own_folder(transcript)
    refuse_links(folder)
    return folder / NAME


def put(transcript: Path, summary: str) -> None:
    """Keep a summary, without secrets, in the session's own folder; raises StorageError."""
    from core.redact.text import redact
    from core.transcript import writer
    from core.transcript.blob import utf8

    writer.put(_path(transcript), utf8(redact(summary[:MOST_CHARS])))


def take(transcript: Path) -> str:
    """The summary, which is not kept any more; "" where there is none."""
    summary = ""
    with suppress(OSError, Damaged):
        path = _path(transcript)
        summary = read_small(path).decode("utf-8", "replace")
        path.unlink()
        path.parent.rmdir()  # unless there is something else in it
    return summary
