"""Midnight passed: the fixed context keeps the old date, so that it stays in the cache, and this says the new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from core.attachments.base import Attachment, World, of_kind


class DateChange(Attachment, frozen=True, tag="date_change"):
    """The local date from now on."""

    date: str

    def text(self) -> str:
        """One sentence."""
        return f"The date has changed. Today is {self.date}."

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The date, where it is not the one that was said last."""
        said = [a.date for a in of_kind(cls, earlier)] or [world.prefix_date]
        return (cls(world.date),) if world.date and said[-1] and world.date != said[-1] else ()
