"""Memory and rule files that apply to a path that was just touched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import ClassVar, Literal, Self

import msgspec

from core.attachments.base import Attachment, World, of_kind
from core.attachments.memory_files import MemoryFile, applies, of_folder, with_imports
from core.model import Role


class Content(msgspec.Struct, frozen=True):
    """What the file says, and whose it is."""

    path: str
    type: Literal["User", "Project", "Local"] = "Project"
    content: str = ""


class NestedMemory(Attachment, frozen=True, tag="nested_memory"):
    """One file."""

    role: ClassVar[Role] = "user"

    path: str
    content: Content
    display_path: str = ""

    def text(self) -> str:
        """The file as it was when it was attached."""
        return f"Contents of {self.path}:\n\n{self.content.content}"

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The files that apply to what was touched, without those that the model has or has read."""
        done = {*world.loaded, *world.known_files, *loaded_by(earlier)}
        found: list[Self] = []
        for path in dict.fromkeys(world.touched):
            for file in _applying(world, path):
                for part in with_imports(file, world.files, world.home, done):
                    shown = os.path.relpath(part.path, world.cwd)
                    found.append(cls(part.path, Content(part.path, part.level, part.shown()), shown))
        return found


def loaded_by(earlier: Iterable[Attachment]) -> frozenset[str]:
    """The files that some attachments brought."""
    return frozenset(a.path for a in of_kind(NestedMemory, earlier))


def _applying(world: World, path: str) -> Iterator[MemoryFile]:
    """From the working folder down to the path, each folder's files that apply to it."""
    try:
        inside = PurePath(os.path.normpath(path)).relative_to(world.cwd)
    except ValueError:
        return
    folder = world.cwd
    for name in ("", *inside.parts[:-1]):
        folder = os.path.join(folder, name) if name else folder
        for file in of_folder(folder, world.files):
            if applies(file, path):
                yield file
