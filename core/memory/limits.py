"""How large notes may be, when they are due, and how long another update of the same ones is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.memory.cadence import Cadence


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """What a person may set about the notes of a session."""

    most_tokens: int = 12_000
    window_tokens: int | None = None
    """In place of that of the session's model."""
    models_file: Path | None = None
    wait_s: float = 15.0
    """For an update by another process: as long as a compaction can wait."""
    cadence: Cadence | None = None
    """None: that of whoever takes the notes."""


DEFAULT_LIMITS = MemoryLimits()
