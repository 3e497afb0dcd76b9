"""Where the client keeps its transcripts: `<claude dir>/projects/<slug of the folder>/<session id>.jsonl`.

Different folders share a slug (`/a/b-c`, `/a/b/c`), and one folder has several (symlinks, drive letters, accents):
a slug finds candidates, it identifies nothing.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.transcript.ordinary import open_ordinary

SUFFIX = ".jsonl"
AGENT_PREFIX = "agent-"
"""Subagent files: beside the main file (2.0), or in `<session id>/subagents/` (2.1)."""
_SLUG_UNITS = 200
"""Longer slugs are cut here by the client, and get a hash of the whole path."""
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)
_SMALL_BYTES = 64 << 10
"""The files with one title, or one process, have less than a thousand."""
_FOLDER_SUFFIX = ".foldmark"
"""Of the folder beside a transcript without a suffix: clients have no such transcripts, and look for no folder."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A transcript on disk.  `parent` is the session that a subagent worked for, "" for a session itself."""

    path: Path
    id: str
    parent: str = ""
    mtime: float = 0.0
    """When it was last written, in seconds since 1970."""
    size_bytes: int = 0
    pick: str = ""
    """Which conversation, of a file that holds several: its id, the start of it, its title, its number."""
    piped: bool = False
    """It was standard input, and is on disk for one command alone."""


def session_file(path: Path) -> SessionFile:
    """Describe the transcript at `path` by its name and place; raises OSError when it is not there."""
    stat = path.stat()
    return SessionFile(path, session_id(path), _parent(path), stat.st_mtime, stat.st_size)


def _parent(path: Path) -> str:
    return as_text(path.parent.parent.name) if path.parent.name == "subagents" else ""


def as_text(name: str) -> str:
    r"""A name, or a path, as JSON can hold it: bytes in it that are no UTF-8 become `\xff` and the like."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def own_folder(transcript: Path) -> Path:
    """Where what belongs to a transcript is kept, beside it; of one given by a link, beside the file itself."""
    path = Path(os.path.realpath(transcript)) if transcript.is_symlink() else transcript
    return path.with_suffix("" if path.suffix else _FOLDER_SUFFIX)


def session_id(path: Path) -> str:
    """The id that a file name holds: the whole stem, or the UUID that it ends in (`rollout-<time>-<uuid>`)."""
    ending = _UUID.search(path.stem)
    return ending.group() if ending else as_text(path.stem)


def project_slug(folder: str) -> str:
    """The client's name for the project folder of an absolute path.

    Every UTF-16 unit but ASCII letters and digits becomes "-"; beyond 200 units the rest is replaced by a hash.
    """
    encoded = folder.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(encoded[i : i + 2], "little") for i in range(0, len(encoded), 2)]
    slug = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    if len(slug) <= _SLUG_UNITS:
        return slug
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return f"{slug[:_SLUG_UNITS]}-{_base36(abs(signed))}"


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits


def spellings(folder: str) -> list[str]:
    """The ways in which one folder may have been written down: as given, without symlinks, composed and
    decomposed accents, `D:\\x` and `/d/x` and `/mnt/d/x`."""
    plain = folder.rstrip("/\\") or folder
    found = [os.path.realpath(plain), plain]
    if drive := re.match(r"([A-Za-z]):[\\/]|/(?:mnt/)?([A-Za-z])/", plain):
        letter, rest = drive.group(1) or drive.group(2), plain[drive.end() :]
        found += [f"{letter.upper()}:\\{rest}", f"{letter.lower()}:\\{rest}", f"/{letter.lower()}/{rest}"]
        found.append(f"/mnt/{letter.lower()}/{rest}")
    found += [unicodedata.normalize(form, path) for path in tuple(found) for form in ("NFC", "NFD")]
    return list(dict.fromkeys(found))


def project_folders(claude_dir: Path, folder: str) -> list[Path]:
    """The project folders that exist for `folder`, in any spelling; letter case counts only where it decides."""
    existing = _subfolders(claude_dir / "projects")
    slugs = {project_slug(path) for path in spellings(folder)}
    exact = [path for path in existing if path.name in slugs]
    if exact:
        return exact
    folded = {slug.casefold() for slug in slugs}
    return [path for path in existing if path.name.casefold() in folded]


def session_files(claude_dir: Path, folders: Iterable[Path] | None = None) -> list[SessionFile]:
    """All sessions of all (or the given) project folders, the newest first; no subagents."""
    if folders is None:
        folders = _subfolders(claude_dir / "projects")
    found = [file for folder in folders for file in transcripts(folder) if not file.path.name.startswith(AGENT_PREFIX)]
    return sorted(found, key=lambda file: (-file.mtime, str(file.path)))


def agent_files(claude_dir: Path) -> list[SessionFile]:
    """All subagents of all sessions, by path."""
    found: list[SessionFile] = []
    for project in _subfolders(claude_dir / "projects"):
        found += [file for file in transcripts(project) if file.path.name.startswith(AGENT_PREFIX)]
        for session in _subfolders(project):
            found += transcripts(session / "subagents")
    return found


def read_small(path: Path) -> bytes:
    """Read a small file that a client keeps beside its transcripts; raises OSError, also for what is no file.

    A huge one must not fill the memory: of that the beginning comes back.
    """
    with open_ordinary(path) as file:
        return file.read(_SMALL_BYTES)


def transcripts(folder: Path) -> Iterator[SessionFile]:
    """The `.jsonl` files right in a folder, by name; nothing for a folder that is not there or cannot be read."""
    for entry in _entries(folder):
        try:
            if entry.name.endswith(SUFFIX) and entry.is_file():
                stat = entry.stat()
                path = folder / entry.name
                yield SessionFile(path, session_id(path), _parent(path), stat.st_mtime, stat.st_size)
        except OSError:  # deleted meanwhile, or a loop of links
            continue


def _subfolders(folder: Path) -> list[Path]:
    return [folder / entry.name for entry in _entries(folder) if os.path.isdir(entry.path)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
