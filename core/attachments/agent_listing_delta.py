"""Types of subagents: which can be started now, which cannot any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from core.attachments.base import World
from core.attachments.delta import Delta, said


class AgentListingDelta(Delta, frozen=True, tag="agent_listing_delta"):
    """The types, and the line that lists each."""

    added_types: tuple[str, ...] = ()
    added_lines: tuple[str, ...] = ()
    removed_types: tuple[str, ...] = ()
    is_initial: bool = False

    @property
    def added(self) -> Mapping[str, str]:
        """By type."""
        return dict(zip(self.added_types, self.added_lines, strict=False))

    @property
    def removed(self) -> Sequence[str]:
        """By type."""
        return self.removed_types

    @classmethod
    def current(cls, world: World) -> Mapping[str, str] | None:
        """All of them."""
        return world.agents

    @classmethod
    def of(cls, added: Mapping[str, str], removed: Sequence[str], is_first: bool) -> Self:
        """The announcement of a difference."""
        return cls(tuple(added), tuple(added.values()), tuple(removed), is_first)

    def text(self) -> str:
        """Both lists."""
        head = "These agent types can be started:" if self.is_initial else "More agent types can be started now:"
        gone = said("These agent types are no longer available:", (f"- {name}" for name in self.removed_types))
        return "\n\n".join([*said(head, self.added_lines), *gone])
