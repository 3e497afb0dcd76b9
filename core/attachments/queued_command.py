"""Input that arrived while the turn ran: it is shown behind the tool results, not kept for the next turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

import msgspec

from core.attachments.base import Attachment, World, of_kind
from core.model import Block, Kind, Role, block_text, text_block


class QueuedCommand(Attachment, frozen=True, tag="queued_command"):
    """One input: texts and images; a person said it, so to the model it is a prompt."""

    role: ClassVar[Role] = "user"
    message_kind: ClassVar[Kind] = "prompt"

    prompt: tuple[dict[str, object], ...] | str
    source: str = msgspec.field(name="source_uuid", default="")

    def text(self) -> str:
        """The texts of the input, and what they are."""
        words = "\n".join(filter(None, map(block_text, self._given())))
        return f"This arrived while you were at work:\n\n{words}\n\nTake it into account as you go on."

    def blocks(self) -> tuple[Block, ...]:
        """The text without the wrapper, and the images."""
        return (text_block(self.text()), *self._media())

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """Each input once."""
        shown = {a.source for a in of_kind(cls, earlier)}
        return [
            cls(cast("tuple[dict[str, object], ...]", queued.prompt), queued.id)
            for queued in world.queued
            if queued.id not in shown
        ]

    def _given(self) -> Sequence[Block]:
        if isinstance(self.prompt, str):
            return (text_block(self.prompt),)
        return cast("tuple[Block, ...]", self.prompt)

    def _media(self) -> list[Block]:
        return [block for block in self._given() if block.get("type") != "text"]
