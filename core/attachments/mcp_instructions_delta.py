"""What connected MCP servers say about their use: of those that connected or changed what they say, and who left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from core.attachments.base import World
from core.attachments.delta import Delta, said


class McpInstructionsDelta(Delta, frozen=True, tag="mcp_instructions_delta"):
    """The servers, and the block of each: a heading with its name, and its instructions."""

    added_names: tuple[str, ...] = ()
    added_blocks: tuple[str, ...] = ()
    removed_names: tuple[str, ...] = ()

    @property
    def added(self) -> Mapping[str, str]:
        """By server."""
        return dict(zip(self.added_names, self.added_blocks, strict=False))

    @property
    def removed(self) -> Sequence[str]:
        """By server."""
        return self.removed_names

    @classmethod
    def current(cls, world: World) -> Mapping[str, str] | None:
        """The blocks of all servers that say something."""
        if world.mcp_instructions is None:
            return None
        named = ((name, f"## {name}\n", said) for name, said in world.mcp_instructions.items() if said.strip())
        return {name: said if said.startswith(heading) else heading + said for name, heading, said in named}

    @classmethod
    def of(cls, added: Mapping[str, str], removed: Sequence[str], is_first: bool) -> Self:
        """The announcement of a difference."""
        return cls(tuple(added), tuple(added.values()), tuple(removed))

    def text(self) -> str:
        """The blocks, and who left."""
        new = said("# MCP servers\n\nHow connected servers say that their tools are used:\n", self.added_blocks)
        gone = said(
            "These servers left, what they said does not hold any more:", (f"- {n}" for n in self.removed_names)
        )
        return "\n\n".join([*new, *gone])
