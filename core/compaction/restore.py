"""The files that a session was working on, put back behind its summary as they are on disk now.

A summary is no substitute for them.  What a transcript names is not trusted: only files below the session's own
folder are read, never secrets and binaries, and never more than the limits allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core import defaults
from core.model import REMINDER, Message, call_id, mapping, string, tool_results, tool_uses
from core.redact.paths import may_hold_secrets
from core.redact.text import redact
from core.times import time_from
from core.transcript.ordinary import open_ordinary

CHARS_PER_TOKEN = 3
"""Code and text of agent sessions, on the safe side for both tokenizers."""
_TOOLS = {
    "Read": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
}
_OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
"""What stands in files there is no file's content: reading can block, empty a queue, or tell what other programs do."""
_PATH_CHARS = 4_096
"""PATH_MAX: no longer one can be opened."""
_MOST_BYTES_A_CHAR = 4
_CLOCK_S = 1
"""How far the clock of a disk and that of a transcript, which counts milliseconds, may be apart."""


@dataclass(frozen=True, slots=True)
class RestoreLimits:
    """How much is put back."""

    files: int = defaults.RESTORE_FILES
    file_tokens: int = defaults.RESTORE_FILE_TOKENS
    total_tokens: int = defaults.RESTORE_TOTAL_TOKENS
    plans: Path | None = None
    """The client's folder of plans: the only files outside the session's own folder that are read."""
    home: Path | None = None
    """The user's home folder: a session that claims to work in it, or above it, gets nothing (a transcript of someone
    else's may name any folder)."""


@dataclass(frozen=True, slots=True)
class Restored:
    """One file, or one part of the state: the text that the model gets, and whether its content is part of it."""

    path: str
    """Of a file; what else is put back has a name."""
    text: str
    has_content: bool


@dataclass(frozen=True, slots=True)
class _Use:
    path: str
    timestamp: str


def restore(messages: Sequence[Message], kept: Sequence[Message], cwd: str, limits: RestoreLimits) -> list[Restored]:
    """The files used last before `kept` and not in it, newest use first; nothing where `cwd` is not on this machine.

    Deleted, binary, secret and oversized files are named, with the reason, instead of their content.
    """
    root = Path(cwd)
    if not is_project(root, limits.home):
        return []
    done = {_inside(root, use.path) for use in _uses(kept)}
    out: list[Restored] = []
    left_chars = limits.total_tokens * CHARS_PER_TOKEN
    for use in _uses(messages):
        if len(out) == limits.files:
            break
        path = _inside(root, use.path)
        if path is None or path in done:
            continue
        done.add(path)
        restored = _restored(path, use, min(limits.file_tokens * CHARS_PER_TOKEN, left_chars))
        left_chars -= len(restored.text)
        if left_chars < 0:
            break
        out.append(restored)
    return out


def files_of(cwd: str, limits: RestoreLimits) -> Callable[[str], bool]:
    """What tells whether a path is a file below the session's folder, as it is on disk now."""
    root = Path(cwd)
    here = is_project(root, limits.home)

    def is_there(path: str) -> bool:
        found = _inside(root, path) if here else None
        try:
            return found is not None and found.is_file()
        except OSError:  # too long a name, not ours to look at
            return False

    return is_there


def is_project(root: Path, home: Path | None) -> bool:
    """Whether a folder is here and may be one of a project: not the system's, nor the home folder or one above it."""
    try:
        if not root.is_absolute() or not root.is_dir():
            return False
        real = root.resolve()
    except (OSError, ValueError, RuntimeError):  # too long, not ours to look into, no path at all
        return False
    return (
        real != real.parent
        and not any(real.is_relative_to(folder) for folder in _OF_THE_SYSTEM)
        and not (home is not None and home.resolve().is_relative_to(real))
    )


def _uses(messages: Sequence[Message]) -> list[_Use]:
    """The last use of each file, newest first, at the time when it was over."""
    ended = {call_id(b): m.timestamp for m in messages for b in tool_results(m)}
    seen: dict[str, _Use] = {}
    for message in reversed(messages):
        for block in reversed(tool_uses(message)):
            path = string(mapping(block.get("input")).get(_TOOLS.get(str(block.get("name")), "")))
            if 0 < len(path) <= _PATH_CHARS and "\0" not in path:
                seen.setdefault(path, _Use(path, ended.get(call_id(block), message.timestamp)))
    return list(seen.values())


def _inside(root: Path, path: str) -> Path | None:
    """The file, links resolved, if it lies below the session's folder."""
    try:
        real = (root / path).resolve()
        return real if real.is_relative_to(root.resolve()) else None
    except (OSError, RuntimeError):
        return None


def _restored(path: Path, use: _Use, room_chars: int) -> Restored:
    if may_hold_secrets(path.as_posix()) or may_hold_secrets(use.path):
        return _named(use.path, "not shown: it may hold secrets; read it only if the task needs it")
    try:
        with open_ordinary(path) as file:
            state = os.fstat(file.fileno())
            head = file.read(room_chars * _MOST_BYTES_A_CHAR)
    except FileNotFoundError:
        return _named(use.path, "deleted since it was last used")
    except OSError as error:
        return _named(use.path, f"cannot be read now: {error.strerror}")
    if b"\0" in head:
        return _named(use.path, "a binary file, not shown")
    if state.st_size > len(head):
        return _named(use.path, f"too large to show ({state.st_size} bytes); read the part that is needed")
    text = redact(head.decode("utf-8", "replace"))
    changed = state.st_mtime > _seconds(use.timestamp) + _CLOCK_S
    age = "changed on disk since it was last used here" if changed else "as it is on disk now"
    whole = framed(f"{use.path} ({age}):\n{text}")
    if len(whole) <= room_chars:
        return Restored(use.path, whole, True)
    note = f"\n[cut: the file has {len(text)} characters]"
    room = max(0, room_chars - (len(whole) - len(text)) - len(note))
    cut = text[:room].rpartition("\n")[0] or text[:room]
    return Restored(use.path, framed(f"{use.path} ({age}):\n{cut}{note}"), bool(cut))


def _named(path: str, reason: str) -> Restored:
    return Restored(path, framed(f"{path}: {reason}"), False)


def framed(text: str) -> str:
    """How a text that is put back stands in front of the model."""
    return REMINDER.format(f"Restored after the compaction. {text}")


def _seconds(timestamp: str) -> float:
    time = time_from(timestamp)
    return time.timestamp() if time else 0.0
