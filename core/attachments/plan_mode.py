"""Only planning is allowed: said in full once, and then briefly every few responses, because models forget it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from core.attachments.base import Attachment, World, of_kind

EVERY_RESPONSES = 5
"""Between two reminders: some two minutes of work, in which nothing but reading may happen."""
FULL_EVERY = 5
"""So many reminders in a row, the first of them in full."""


class PlanMode(Attachment, frozen=True, tag="plan_mode"):
    """The reminder, and where the plan is."""

    reminder_type: Literal["full", "sparse"]
    plan_file_path: str
    plan_exists: bool
    is_sub_agent: bool = False
    """The client's rows have it; nothing here plans in a subagent."""
    at_response: int = 0

    def text(self) -> str:
        """What is allowed, and where the plan goes."""
        if self.reminder_type == "sparse":
            return f"Still planning: change nothing but the plan file, {self.plan_file_path}."
        plan = "it is there: read it, and work on it" if self.plan_exists else "it does not exist yet"
        return (
            "Planning is all that is allowed now. Change nothing: no edits, no commits, no settings, no command that "
            "does more than read.\n"
            f"The one exception is the plan file, {self.plan_file_path} ({plan}).\n"
            "Look into what the task touches, ask where it is unclear, and write down what is to be done, in which "
            "order, and how it will be checked. Then ask the person whether to go ahead."
        )

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The reminder that is due."""
        if world.planning is None:
            return ()
        shown = of_kind(cls, earlier)
        if shown and world.responses - shown[-1].at_response < EVERY_RESPONSES:
            return ()
        plan = world.planning
        kind: Literal["full", "sparse"] = "sparse" if len(shown) % FULL_EVERY else "full"
        return (cls(kind, plan.path, plan.exists, at_response=world.responses),)
