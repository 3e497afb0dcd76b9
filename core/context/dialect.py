"""Where versions of the client send different messages for the same rows.

Measured on 2.1.332 and on 2.1.197 (2.0.76 and 1.0.128 are as the latter); the changes lie somewhere between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way of turning rows into messages."""

    notes_are_reminders: bool
    """The client's own notes to the model go out wrapped as reminders."""
    hides_display_only: bool
    """Output of local commands that was for the screen alone is not sent."""
    notifications_are_system: bool
    """Reports of background tasks are system messages, else user messages."""
    sends_queued: bool
    """Prompts that were queued while a turn ran are sent from their attachment rows."""
    completes_last_call: bool
    """A call at the very end without a result gets an error result, else it is left out."""
    results_in_file_order: bool
    """Parallel results stand in file order, else those off the direct path of parents come first."""
    checks_tool_references: bool
    """Tool references whose tool was never loaded are left out."""


NEWEST = Dialect(True, True, True, True, True, True, True)
OLDER = Dialect(False, False, False, False, False, False, False)
_LAST_OLDER = (2, 1, 197)


def dialect_of(version: str) -> Dialect:
    """The dialect of a client version such as "2.1.197"; anything else, and "", is the newest."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    return OLDER if len(numbers) == 3 and numbers <= _LAST_OLDER else NEWEST
