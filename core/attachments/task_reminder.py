"""The task list, when the task tool was not used for long: work goes on, and nobody ticks it off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from core.attachments.base import Attachment, Task, World, of_kind

IDLE_RESPONSES = 10
"""Without a use of the task tool, and between two reminders: a task takes some ten calls."""
_SHOWN = 30
_SUBJECT_CHARS = 200


class TaskReminder(Attachment, frozen=True, tag="task_reminder"):
    """The list as it stood."""

    content: tuple[Task, ...] = ()
    item_count: int = 0
    at_response: int = 0

    def text(self) -> str:
        """A gentle hint, and the list."""
        hint = (
            "The task list has not been touched for a while. If it helps with the work at hand, bring it up to date; "
            "if not, go on. Do not mention this reminder."
        )
        lines = [f"- #{task.id} [{task.status}] {task.subject[:_SUBJECT_CHARS]}" for task in self.content]
        more = self.item_count - len(self.content)
        return "\n".join([hint, *lines, *([f"- and {more} more"] if more > 0 else [])])

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The reminder, when the tool was idle for long and nothing was said about that for as long."""
        if world.tasks is None:
            return ()
        last = max([world.last_task_response, *(a.at_response for a in of_kind(cls, earlier))])
        if world.responses - last < IDLE_RESPONSES:
            return ()
        return (cls(tuple(world.tasks[:_SHOWN]), len(world.tasks), world.responses),)
