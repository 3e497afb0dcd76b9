"""Tools that can be loaded by a tool search: which became available, which are there no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from core.attachments.base import World
from core.attachments.delta import Delta, said


class DeferredToolsDelta(Delta, frozen=True, tag="deferred_tools_delta"):
    """The names, and the line that lists each."""

    added_names: tuple[str, ...] = ()
    added_lines: tuple[str, ...] = ()
    removed_names: tuple[str, ...] = ()

    @property
    def added(self) -> Mapping[str, str]:
        """By name."""
        return dict(zip(self.added_names, self.added_lines, strict=False))

    @property
    def removed(self) -> Sequence[str]:
        """By name."""
        return self.removed_names

    @classmethod
    def current(cls, world: World) -> Mapping[str, str] | None:
        """All of them."""
        return world.deferred_tools

    @classmethod
    def of(cls, added: Mapping[str, str], removed: Sequence[str], is_first: bool) -> Self:
        """The announcement of a difference."""
        return cls(tuple(added), tuple(added.values()), tuple(removed))

    def text(self) -> str:
        """Both lists."""
        new = said("These tools can be loaded by a tool search; before that they cannot be called:", self.added_lines)
        gone = said("These tools are no longer available, do not search for them:", self.removed_names)
        return "\n\n".join([*new, *gone])
