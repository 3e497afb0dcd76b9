"""When notes are due: a pure function of how much they do not tell of.  The figures' reasons: docs/decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from core import defaults

if TYPE_CHECKING:
    from core.memory.part import Unseen

Due: TypeAlias = Literal["", "first", "grown", "pause"]

FAILURES = 3
"""So many updates that failed one after the other, and it pauses."""
PAUSE_TURNS = 2
"""For so many prompts of the user."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """How much may be unseen before an update is worth what it costs; all in tokens or responses."""

    first_tokens: int = defaults.MEMORY_FIRST_TOKENS
    """Of messages, before there are any notes."""
    tokens: int = defaults.MEMORY_UPDATE_TOKENS
    responses: int = defaults.MEMORY_UPDATE_RESPONSES
    pause_tokens: int = 6_000
    pause_responses: int = 6


PAID = Cadence()
"""For notes that a model takes."""
FREE = Cadence(pause_tokens=1, pause_responses=1)
"""For notes that are taken by rule: at every end of a turn."""


def due(seen: Unseen, cadence: Cadence, *, noted: bool, failures: int = 0, failed_turns: int = 0) -> Due:
    """Why an update is due, "" if it is not.

    `noted`: there are notes.  `failures` in a row, the last one when the session had `failed_turns` prompts.
    """
    if not seen.responses or (failures >= FAILURES and seen.turns < failed_turns + PAUSE_TURNS):
        return ""
    if not noted:
        return "first" if seen.tokens >= cadence.first_tokens else ""
    if seen.tokens >= cadence.tokens or seen.responses >= cadence.responses:
        return "grown"
    if seen.pause and (seen.tokens >= cadence.pause_tokens or seen.responses >= cadence.pause_responses):
        return "pause"
    return ""
