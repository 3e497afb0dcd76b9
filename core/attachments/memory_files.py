"""Memory files: what a folder tells an agent, with the files that they import, and rules for some paths only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from typing import Literal, TypeAlias

from core.attachments.base import Files
from core.redact.text import redact

Level: TypeAlias = Literal["User", "Project", "Local"]
"""Whose they are: the person's for all projects, the project's for all persons, or of one person for one project."""

FILE_CHARS = 40_000
"""Of one file: the client warns from this size on; it is cut, and says so."""
IMPORTS_DEEP = 5
"""As in the client: deeper ones are a mistake, or a circle by another name."""
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s`@]{1,1024})")
_INLINE_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?\n|)---[ \t]*(?:\n|\Z)", re.DOTALL)
_PATHS = re.compile(r"^paths[ \t]*:[ \t]*(.*)\n?((?:[ \t]*-[ \t].*(?:\n|\Z))*)", re.MULTILINE)
_BRACES = re.compile(r"\{([^{}]*)\}")
_PATTERNS = 64
"""Of one rule, braces opened."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One file; `globs` are the paths that it is for, none where it is for all."""

    path: str
    level: Level
    text: str
    globs: tuple[str, ...] = ()

    def shown(self) -> str:
        """The text as a model gets it: without secrets, and bounded."""
        text = redact(self.text)
        note = f"\n[cut: the file has {len(text):,} characters]"
        return text if len(text) <= FILE_CHARS else text[:FILE_CHARS] + note


def of_folder(folder: str, files: Files) -> Iterator[MemoryFile]:
    """What a folder says: CLAUDE.md (AGENTS.md where there is none), its rules, CLAUDE.local.md; no imports yet."""
    named = [*_read(files, "Project", folder, "CLAUDE.md"), *_read(files, "Project", folder, ".claude", "CLAUDE.md")]
    yield from named or _read(files, "Project", folder, "AGENTS.md")
    yield from rules_of(os.path.join(folder, ".claude"), "Project", files)
    yield from _read(files, "Local", folder, "CLAUDE.local.md")


def rules_of(folder: str, level: Level, files: Files) -> Iterator[MemoryFile]:
    """The rule files below `rules/` of a client's folder, by name."""
    rules = os.path.join(folder, "rules")
    for name in files.names(rules):
        if name.endswith(".md"):
            yield from _read(files, level, rules, name)


def _read(files: Files, level: Level, *parts: str) -> list[MemoryFile]:
    path = os.path.join(*parts)
    text = files.read(path)
    return [] if text is None else [_parsed(path, level, text)]


def _parsed(path: str, level: Level, text: str) -> MemoryFile:
    front = _FRONT.match(text)
    if front is None:
        return MemoryFile(path, level, text)
    return MemoryFile(path, level, text[front.end() :], _globs(front[1]))


def _globs(front: str) -> tuple[str, ...]:
    """The patterns of a `paths:` key: a list in either form, or words with commas between."""
    found = _PATHS.search(front)
    if found is None:
        return ()
    listed = [line.strip()[1:] for line in found[2].splitlines()]
    bare = found[1].strip().removeprefix("[").removesuffix("]")
    # A comma inside braces separates nothing.
    words = listed or re.split(r",(?![^{]*\})", bare)
    return tuple(filter(None, (word.strip().strip("'\"") for word in words)))


def with_imports(file: MemoryFile, files: Files, home: str, done: set[str]) -> Iterator[MemoryFile]:
    """A file and what it imports, each once: `done` holds the paths of those that were given before, and grows."""
    yield from _expanded(file, files, home, done, IMPORTS_DEEP)


def _expanded(file: MemoryFile, files: Files, home: str, done: set[str], deep: int) -> Iterator[MemoryFile]:
    if file.path in done:
        return
    done.add(file.path)
    yield file
    for name in imports_in(file.text) if deep else ():
        for path in _candidates(name, file.path, home):
            text = None if path in done else files.read(path)
            if text is not None:
                yield from _expanded(_parsed(path, file.level, text), files, home, done, deep - 1)
                break


def imports_in(text: str) -> list[str]:
    """The paths that a text imports (`@docs/style.md`), in order; what stands in code is none."""
    found: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line[mark.end() :].strip() else fence
        elif mark:
            fence = mark[1]
        else:
            found += _IMPORT.findall(_INLINE_CODE.sub(" ", line))
    return found


def _candidates(name: str, importer: str, home: str) -> list[str]:
    """What an import may mean: the path as it stands, and without the punctuation of its sentence."""
    plain = name.rstrip(".,;:!?)]}'\"")
    named = [n for n in dict.fromkeys((name, plain)) if n and (home or not n.startswith("~"))]
    folder = os.path.dirname(importer)
    return [os.path.normpath(os.path.join(*((home, n[2:]) if n.startswith("~/") else (folder, n)))) for n in named]


def applies(file: MemoryFile, path: str) -> bool:
    """Whether a file is for a path: all paths, or one of its patterns, from the folder that holds `.claude` on."""
    if not file.globs:
        return True
    root = os.path.dirname(file.path.rpartition(f"{os.sep}.claude{os.sep}")[0] + os.sep)
    try:
        inside = PurePath(path).relative_to(root).as_posix()
    except ValueError:
        return False
    return any(_pattern(glob).match(inside) for glob in file.globs)


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    """As in ignore files: a pattern without a slash is about names anywhere, a folder stands for what is in it."""
    alternatives = "|".join(map(_translated, _opened(glob)))
    return re.compile(rf"(?:{alternatives})(?:/.*)?\Z")


def _opened(glob: str) -> list[str]:
    opened = [glob]
    while len(opened) < _PATTERNS and (braces := _BRACES.search(opened[0])):
        first = opened.pop(0)
        opened += [first[: braces.start()] + part + first[braces.end() :] for part in braces[1].split(",")]
    return opened[:_PATTERNS]


def _translated(glob: str) -> str:
    glob = glob.removeprefix("./").rstrip("/")
    anywhere = "/" not in glob
    out = "(?:.*/)?" if anywhere else ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", glob.lstrip("/")):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part) or re.escape(part)
    return out
