"""How large notes may be, when they are due, and how long another update of the same ones is waited for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.context.tokens.window import AS_FOUND, Measuring
from core.defaults import MEMORY_TOKENS
from core.memory.cadence import FREE, Cadence

if TYPE_CHECKING:
    from core.settings import Settings


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """What a person may set about the notes of a session."""

    most_tokens: int = MEMORY_TOKENS
    measuring: Measuring = AS_FOUND
    wait_s: float = 15.0
    """For an update by another process: as long as a compaction can wait."""
    cadence: Cadence | None = None
    """None: that of whoever takes the notes."""


DEFAULT_LIMITS = MemoryLimits()


def limits_of(settings: Settings) -> MemoryLimits:
    """What a user's settings say about the size of notes."""
    return MemoryLimits(settings.memory_tokens, Measuring.of(settings))


def timed_limits(settings: Settings, usual: Cadence) -> MemoryLimits:
    """The same for updates that a timer asks for: when they are due is set, too, and none waits for another process.

    `usual` is the cadence of whoever takes the notes.
    """
    tokens, responses = settings.memory_update_tokens, settings.memory_update_responses
    cadence = replace(usual, first_tokens=settings.memory_first_tokens, tokens=tokens, responses=responses)
    if usual != FREE:
        cadence = replace(cadence, pause_tokens=tokens // 2, pause_responses=max(1, responses // 2))
    return replace(limits_of(settings), wait_s=0.0, cadence=cadence)
