"""The proposal to take ranges out of the history; what it proposes is the snip stage's to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from core.attachments.base import Attachment, World


class ContextEfficiency(Attachment, frozen=True, tag="context_efficiency"):
    """A proposal as it was shown: with the ids that it names it cannot be made anew."""

    proposal: str = ""

    def text(self) -> str:
        """The proposal."""
        return self.proposal

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The proposal that is due, if there is one."""
        return (cls(world.nudge),) if world.nudge else ()
