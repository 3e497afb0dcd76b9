"""From what a person typed to a transcript: a path, an id, the start of an id, a title, or `latest`.

Nothing is guessed: several answers are an error that lists them.  The folder that a session was started in need
not exist any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from core.errors import SessionNotFound
from core.times import stamp
from core.transcript.listing import SessionInfo, sessions
from core.transcript.projects import (
    AGENT_PREFIX,
    SUFFIX,
    SessionFile,
    agent_files,
    as_text,
    session_file,
    session_files,
    transcripts,
)
from core.transcript.records import is_as_made

LATEST = "latest"
_LISTED = 10
_SHOWN_CHARS = 200
"""Of a name in a message: whoever gave it knows the rest."""
_HINT = "{sessions} lists what there is"

T = TypeVar("T")


def locate(name: str, claude_dir: Path, folder: Path, roots: Sequence[Path] | None = None) -> SessionFile:
    """Find the one transcript that `name` stands for.

    In this order: `latest` (the newest with a conversation, of `folder`, else of all; what Foldmark made counts from
    when it was made, so it stands for its source until somebody goes on there), a file's path (relative to
    `folder`), an id, the start of an id, a title, the start of one, a part of one (of what Foldmark made only where no
    other has it).  Subagents are found by their ids.  What is absolute, or ends in .jsonl or .json, is
    a path and nothing else.
    With `roots`, what is found must lie in one of them, or in the client's own projects, links followed; nothing is
    said of other paths, not even whether they are there.

    Raises SessionNotFound when there is none, or several: then it lists them.
    """
    inside = None if roots is None else (claude_dir / "projects", *roots)
    found = _located(name, claude_dir, folder, inside)
    if not leads_into(found.path, inside):
        raise _outside(name)
    return found


def leads_into(path: Path, folders: Iterable[Path] | None) -> bool:
    """Whether a path, links followed, lies in one of the folders; None stands for all that there are."""
    if folders is None:
        return True
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):  # NUL in it
        return False
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _located(name: str, claude_dir: Path, folder: Path, inside: Sequence[Path] | None) -> SessionFile:
    if name == LATEST:
        return latest(claude_dir, folder)
    path = folder / name
    is_path = _is_path(name)
    # Anything else may be a title as well as a file of the folder: one that is out of reach is not looked at.
    is_within = leads_into(path, inside)
    if is_within and name and _is_file(path):
        return session_file(path)
    if is_within and name and _is_dir(path):
        raise SessionNotFound(
            f"{name} is a folder",
            f"name one of its sessions: {{sessions}} {name} lists them",
        )
    if not is_path and (found := _by_id(name, claude_dir) or _by_title(name, claude_dir)):
        return found
    if not (is_path or len(Path(name).parts) > 1):
        raise SessionNotFound(f"there is no session {name!r}", _HINT)
    if not is_within:
        raise _outside(name)
    raise SessionNotFound(f"there is no file {name}", "give the path of a transcript, or the id of a session")


def expand(names: Iterable[str], claude_dir: Path, folder: Path) -> list[SessionFile]:
    """Find all transcripts that the names stand for: as `locate`, but a folder stands for those right in it (where
    there are none, for the sessions that were started there; it may be gone), and a pattern (`*`, `?`, `[`) for the
    files that match it.  Each transcript once, in the order of the names.

    Raises SessionNotFound for a name that stands for none.
    """
    found: dict[Path, SessionFile] = {}
    for name in names:
        for file in _expanded(name, claude_dir, folder):
            found.setdefault(file.path.resolve(), file)
    return list(found.values())


def _expanded(name: str, claude_dir: Path, folder: Path) -> list[SessionFile]:
    path = folder / name
    if name and _is_dir(path):
        files = list(transcripts(path)) or _started_in(str(path), claude_dir)
        if not files:
            raise SessionNotFound(f"there is no transcript in {name}, and no session was started there", _HINT)
        # Old clients put subagents beside the sessions: a folder of sessions stands for those.
        return [file for file in files if not file.path.name.startswith(AGENT_PREFIX)] or files
    if any(mark in name for mark in "*?[") and not _is_file(path):
        files = [session_file(match) for match in _matches(name, folder) if match.is_file()]
        if not (files or _is_path(name)) and (titled := _by_title(name, claude_dir)):
            files = [titled]
        if not files:
            raise SessionNotFound(f"no file matches {name!r}", _HINT)
        return files
    # A folder that sessions were started in may be gone.
    if Path(name).is_absolute() and not _is_file(path) and (started := _started_in(name, claude_dir)):
        return started
    return [locate(name, claude_dir, folder)]


def _started_in(folder: str, claude_dir: Path) -> list[SessionFile]:
    return [info.file for info in sessions(claude_dir, os.path.abspath(folder))]


def _matches(pattern: str, folder: Path) -> list[Path]:
    start = Path(pattern)
    try:
        if start.is_absolute():
            return sorted(Path(start.anchor).glob(str(start.relative_to(start.anchor))))
        return sorted(folder.glob(pattern))
    except (ValueError, NotImplementedError, OSError):  # no pattern, such as a**b
        return []


def _is_path(name: str) -> bool:
    """Whether a name can be that of a file and nothing else."""
    return Path(name).is_absolute() or name.endswith((SUFFIX, ".json")) or name in (os.curdir, os.pardir)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a path, or NUL in it
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _outside(name: str) -> SessionNotFound:
    shown = name if len(name) <= _SHOWN_CHARS else name[:_SHOWN_CHARS] + "…"
    return SessionNotFound(
        f"{shown!r} lies outside the folders that may be read",
        "name a session by its id or title, or add the folder to the setting allowed_roots",
    )


def latest(claude_dir: Path, folder: Path, but: str = "") -> SessionFile:
    """The newest session with a conversation, of `folder`, else of all; not the one whose id (in lower case) is `but`.

    Raises SessionNotFound.
    """
    for where in (str(folder), None):
        for info in sessions(claude_dir, where):
            if info.state not in ("empty", "damaged") and info.file.id.casefold() != but:
                return info.file
    raise no_sessions(claude_dir, "other " if but else "")


def no_sessions(claude_dir: Path, other: str = "") -> SessionNotFound:
    """What is said where the client has no session, or no other one."""
    return SessionNotFound(
        f"there is no {other}session in {claude_dir}",
        "give the path of a transcript, such as examples/session.jsonl in Foldmark's source",
    )


def _by_id(name: str, claude_dir: Path) -> SessionFile | None:
    """Letter case does not count in ids; a whole id wins over those that begin with it."""
    wanted = name.casefold()
    files = session_files(claude_dir)
    if wanted.startswith(AGENT_PREFIX):
        files += agent_files(claude_dir)
    hits = [file for file in files if wanted and as_text(file.path.stem).casefold().startswith(wanted)]
    whole = [file for file in hits if as_text(file.path.stem).casefold() == wanted]
    return _only(name, whole or hits, _file_line)


def _by_title(name: str, claude_dir: Path) -> SessionFile | None:
    wanted = " ".join(name.split()).casefold()
    hits = [info for info in sessions(claude_dir) if wanted and wanted in info.title.casefold()]
    whole = [info for info in hits if info.title.casefold() == wanted]
    begin = [info for info in hits if info.title.casefold().startswith(wanted)]
    own = [info for info in hits if not is_as_made(info.file)]  # the title of a copy holds that of its source
    info = _only(name, whole or begin or own or hits, _info_line)
    return info.file if info else None


def _only(name: str, hits: Sequence[T], line: Callable[[T], str]) -> T | None:
    if len(hits) < 2:
        return hits[0] if hits else None
    lines = [line(hit) for hit in hits[:_LISTED]]
    if len(hits) > _LISTED:
        lines.append(f"and {len(hits) - _LISTED} more")
    raise SessionNotFound(f"{len(hits)} sessions answer to {name!r}", "name one of them:\n" + "\n".join(lines))


def _file_line(file: SessionFile) -> str:
    return f"  {file.path}"


def _info_line(info: SessionInfo) -> str:
    """What tells sessions of one title apart: when they were written, and how large they are."""
    updated = stamp(datetime.fromtimestamp(info.updated, UTC), "minutes")
    size = "" if info.usage_tokens is None else f"{info.usage_tokens:,} tokens  "
    return f"  {info.file.id}  {updated}  {size}{info.title}"
