"""From what a person typed to a transcript: a path, an id, the start of an id, a title, or `latest`.

Nothing is guessed: several answers are an error that lists them.  The folder that a session was started in need
not exist any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from core.errors import SessionNotFound
from core.transcript.listing import SessionInfo, sessions
from core.transcript.projects import (
    AGENT_PREFIX,
    SUFFIX,
    SessionFile,
    agent_files,
    session_file,
    session_files,
    transcripts,
)

LATEST = "latest"
_LISTED = 10
_HINT = "foldmark sessions lists what there is"

T = TypeVar("T")


def locate(name: str, claude_dir: Path, folder: Path, roots: Sequence[Path] | None = None) -> SessionFile:
    """Find the one transcript that `name` stands for.

    In this order: `latest` (the newest with a conversation: of `folder`, else of all), a file's path (relative to
    `folder`), an id, the start of an id, a title, a part of one.  Subagents are found by their ids.
    With `roots`, a path must lead into one of them, or into the client's own projects.

    Raises SessionNotFound when there is none, or several: then it lists them.
    """
    if name == LATEST:
        return _latest(claude_dir, folder)
    path = folder / name
    if name and _is_file(path):
        return session_file(_allowed(path, claude_dir, roots))
    if name and _is_dir(path):
        raise SessionNotFound(
            f"{name} is a folder",
            f"name a session: foldmark sessions {name} lists them, foldmark compact {name} takes all",
        )
    if len(Path(name).parts) > 1 or name.endswith((SUFFIX, ".json")):
        raise SessionNotFound(f"there is no file {name}", "give the path of a transcript, or the id of a session")
    return _by_id(name, claude_dir) or _by_title(name, claude_dir)


def expand(names: Iterable[str], claude_dir: Path, folder: Path) -> list[SessionFile]:
    """Find all transcripts that the names stand for: as `locate`, but a folder stands for those right in it, and a
    pattern (`*`, `?`, `[`) for the files that match it.  Each transcript once, in the order of the names.

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
        files = list(transcripts(path))
        if not files:
            raise SessionNotFound(f"there is no transcript in {name}", f"transcripts end in {SUFFIX}")
        # Old clients put subagents beside the sessions: a folder of sessions stands for those.
        return [file for file in files if not file.path.name.startswith(AGENT_PREFIX)] or files
    is_pattern = any(mark in name for mark in "*?[") and not _is_file(path)
    if is_pattern and (files := [session_file(match) for match in _matches(name, folder) if match.is_file()]):
        return files
    return [locate(name, claude_dir, folder)]


def _matches(pattern: str, folder: Path) -> list[Path]:
    start = Path(pattern)
    try:
        if start.is_absolute():
            return sorted(Path(start.anchor).glob(str(start.relative_to(start.anchor))))
        return sorted(folder.glob(pattern))
    except (ValueError, NotImplementedError, OSError):  # no pattern, such as a**b
        return []


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


def _allowed(path: Path, claude_dir: Path, roots: Sequence[Path] | None) -> Path:
    real = path.resolve()
    if roots is not None and not any(real.is_relative_to(root.resolve()) for root in (claude_dir / "projects", *roots)):
        raise SessionNotFound(f"{path} lies outside the folders that may be read", "add its folder to allowed_roots")
    return path


def _latest(claude_dir: Path, folder: Path) -> SessionFile:
    for where in (str(folder), None):
        for info in sessions(claude_dir, where):
            if info.state not in ("empty", "damaged"):
                return info.file
    raise SessionNotFound(f"there is no session in {claude_dir}", "give the path of a transcript")


def _by_id(name: str, claude_dir: Path) -> SessionFile | None:
    """Letter case does not count in ids; a whole id wins over those that begin with it."""
    wanted = name.casefold()
    files = session_files(claude_dir)
    if wanted.startswith(AGENT_PREFIX):
        files += agent_files(claude_dir)
    hits = [file for file in files if wanted and file.path.stem.casefold().startswith(wanted)]
    whole = [file for file in hits if file.path.stem.casefold() == wanted]
    return _only(name, whole or hits, _file_line)


def _by_title(name: str, claude_dir: Path) -> SessionFile:
    wanted = " ".join(name.split()).casefold()
    hits = [info for info in sessions(claude_dir) if wanted and wanted in info.title.casefold()]
    whole = [info for info in hits if info.title.casefold() == wanted]
    if info := _only(name, whole or hits, _info_line):
        return info.file
    raise SessionNotFound(f"there is no session {name!r}", _HINT)


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
    return f"  {info.file.id}  {info.title}"
