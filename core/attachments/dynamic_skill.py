"""Skills that a folder brings, found because a file in it was touched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Self

from core.attachments.base import Attachment, World, of_kind

_SKILLS = os.path.join(".claude", "skills")


class DynamicSkill(Attachment, frozen=True, tag="dynamic_skill"):
    """The skills of one folder."""

    skill_dir: str
    skill_names: tuple[str, ...]
    display_path: str = ""

    def text(self) -> str:
        """The names, and where they are."""
        return f"{self.display_path or self.skill_dir} brings skills that can be used: {', '.join(self.skill_names)}."

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """Folders between the working folder (whose own skills are known) and what was touched, each name once."""
        announced = {(a.skill_dir, name) for a in of_kind(cls, earlier) for name in a.skill_names}
        found: list[Self] = []
        for folder in _folders(world):
            skills = os.path.join(folder, _SKILLS)
            names = [
                n for n in world.files.names(skills) if (skills, n) not in announced and _is_skill(world, skills, n)
            ]
            if names:
                found.append(cls(skills, tuple(names), os.path.relpath(skills, world.cwd)))
        return found


def _folders(world: World) -> list[str]:
    """The folders below the working folder that lead to what was touched, each once."""
    found: dict[str, None] = {}
    for path in world.touched:
        try:
            parts = PurePath(os.path.normpath(path)).relative_to(world.cwd).parts
        except ValueError:
            continue
        for count in range(1, len(parts)):
            found[os.path.join(world.cwd, *parts[:count])] = None
    return [*found]


def _is_skill(world: World, skills: str, name: str) -> bool:
    return world.files.mtime_ns(os.path.join(skills, name, "SKILL.md")) is not None
