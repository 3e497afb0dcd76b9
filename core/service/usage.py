"""What a model was paid for, as results state it."""

from __future__ import annotations

from core.model import Usage
from core.results import Result


class Spent(Result):
    """What a model was, or would be, paid for, in tokens; all zeros where none was asked."""

    input_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0


def spent(usage: Usage) -> Spent:
    """The usage of some calls."""
    return Spent(
        input_tokens=usage.input_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
    )
