"""Who says how the notes change, as a protocol; and the one that is always there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from core.memory.cadence import FREE, Cadence
from core.model import Usage

if TYPE_CHECKING:
    from core.memory.operations import Operation
    from core.memory.part import Part

_RULE_PART_TOKENS = 10_000_000
"""Rules take any context at once."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """Operations, what of the answer was none, and what it was paid for."""

    operations: tuple[Operation, ...]
    refused: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    """Of a model."""


class Extractor(Protocol):
    """Whoever turns a part of a conversation into operations."""

    @property
    def name(self) -> str:
        """What settings and results call it."""

    @property
    def cadence(self) -> Cadence:
        """How often it is worth its cost."""

    @property
    def part_tokens(self) -> int:
        """How much of a conversation it takes at once."""

    def extract(self, part: Part) -> Extracted:
        """The operations.  Raises `NothingNoted` for an answer that is none, `ApiError` where there is no answer."""


class ByRule:
    """The offline rules."""

    name = "extractive"
    cadence = FREE
    part_tokens = _RULE_PART_TOKENS

    def extract(self, part: Part) -> Extracted:
        """The operations; never raises on content."""
        from core.memory.offline import by_rule

        return Extracted(tuple(by_rule(part)))
