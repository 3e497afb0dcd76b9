"""List the sessions of all folders, or of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from core.results import Result
from core.times import stamp
from core.transcript.listing import SessionInfo, State, described, sessions
from core.transcript.live import open_sessions
from core.transcript.locate import leads_into
from core.transcript.projects import session_files


class SessionLine(Result):
    """One session, as a list shows it."""

    id: str
    path: str
    project: str
    """The folder that it was started in, or the client's name for it."""
    title: str
    updated: str
    """ISO 8601, UTC."""
    size_bytes: int
    tokens: int | None
    """What the last response was charged for, or would be in what Foldmark wrote; `context` adds an estimate of what it
    does not count.  None when the end of the file holds no figure."""
    version: str
    model: str
    state: State
    format: str
    """`claude-code`, or what a foreign one is."""


class SessionList(Result):
    """The sessions, the newest first; `more` when the limit left some out."""

    sessions: list[SessionLine]
    """Of all folders, or of the one that was asked for."""
    more: bool
    """Whether there are others."""
    total: int
    """How many there are, with those."""


def list_sessions(
    claude_dir: Path, folder: Path | None = None, limit: int | None = None, inside: Sequence[Path] | None = ()
) -> SessionList:
    """List at most `limit` sessions; those of `folder` if it is given.

    `folder` is a folder that sessions were started in; it need not exist any more.  Where none was, it stands
    for the transcripts right in it, as far as they lie in one of the folders `inside`; None stands for all folders.
    """
    live = open_sessions(claude_dir)
    found = sessions(claude_dir, str(folder) if folder else None, live)
    if folder and inside != ():
        lying = (file for file in session_files(claude_dir, [folder]) if leads_into(file.path, inside))
        found = iter([*found] or [*described(lying, live)])
    lines = [_line(info) for info in islice(found, limit)]
    # Of all folders, those that are not shown are not looked into: there may be thousands.
    looked_into = folder is not None or limit is None
    total = len(lines) + sum(1 for _ in found) if looked_into else len(session_files(claude_dir))
    return SessionList(sessions=lines, more=total > len(lines), total=total)


def _line(info: SessionInfo) -> SessionLine:
    return SessionLine(
        id=info.file.id,
        path=str(info.file.path),
        project=info.project,
        title=info.title,
        updated=stamp(datetime.fromtimestamp(info.updated, UTC), "seconds"),
        size_bytes=info.file.size_bytes,
        tokens=info.usage_tokens,
        version=info.version,
        model=info.model,
        state=info.state,
        format=info.format,
    )
