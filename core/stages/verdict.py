"""Whether a change of the history pays: what rewriting the cache costs, what sending less saves.

All figures are input-token equivalents: 1 is the price of one uncached input token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from core.context.tokens.cost import CacheLife
from core.context.tokens.models import Model
from core.model import Message

MAX_REQUESTS = 100
"""Requests still to come are counted up to here: nobody knows more."""
GROWTH_WINDOW = 30
"""Responses over which the growth of the context is averaged."""
DEFAULT_GROWTH_TOKENS = 1_000
"""Growth per request where a session is too young to tell; measured medians are 240 to 870, up to 1,700."""
CAUTION = 1.3
"""Weight on the cost, for the uncertainty of the number of requests to come."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an edit is worth: `deleted_tokens` are gone, `rewritten_tokens` behind them are cached anew.

    `saves` and `costs` are input-token equivalents over `requests` requests to come, `costs` with the caution; it
    breaks even after `pays_after` requests (0: at once; None: never), by the bare prices.
    """

    deleted_tokens: int
    rewritten_tokens: int
    requests: int
    saves: float
    costs: float
    pays_after: float | None

    @property
    def pays(self) -> bool:
        """Whether more is saved than spent."""
        return self.saves > self.costs

    def __str__(self) -> str:
        """One line for a person."""
        when = "never" if self.pays_after is None else f"after {self.pays_after:.0f} requests"
        return f"{self.deleted_tokens} tokens less, {self.rewritten_tokens} to cache anew: pays {when}"


def verdict(
    model: Model,
    deleted_tokens: int,
    rewritten_tokens: int,
    requests: int,
    *,
    cold: bool = False,
    life: CacheLife = "5m",
    rewritten_share: float = 1.0,
) -> Verdict:
    """The verdict on deleting some tokens of which the cache holds `rewritten_tokens` more behind them.

    hot: each later request saves the read price of what is gone; what is behind it is written again instead of read.
    cold: everything is written again anyway, so that what is gone saves its write price at once.
    `rewritten_share` is 1 for edits of the content and near 0 for edits that the server makes in its own cache.
    """
    read, write = rates(model, life)
    if cold:
        saves = (write + (requests - 1) * read) * deleted_tokens
        return Verdict(deleted_tokens, rewritten_tokens, requests, saves, 0.0, 0.0)
    each = read * deleted_tokens
    saves = requests * each
    costs = rewritten_share * (write - read) * rewritten_tokens
    after = costs / each if each > 0 else None
    return Verdict(deleted_tokens, rewritten_tokens, requests, saves, CAUTION * costs, after)


def rates(model: Model, life: CacheLife = "5m") -> tuple[float, float]:
    """Read and write price of the cache relative to input; 0.1 and 1.25 (2 for an hour) where prices are not known."""
    prices = model.prices_for(0)
    if prices is None or not prices.input:
        return 0.1, 2.0 if life == "1h" else 1.25
    return prices.read / prices.input, (prices.write_1h if life == "1h" else prices.write_5m) / prices.input


def requests_to_come(messages: Sequence[Message], context_tokens: int, auto_threshold_tokens: int) -> int:
    """How many requests fit until automatic compaction, at the session's mean growth; at least 1."""
    newest = (m.usage.prompt_tokens for m in reversed(messages) if m.usage and m.usage.prompt_tokens)
    sizes = [*islice(newest, GROWTH_WINDOW + 1)]
    grown = [after - before for after, before in pairwise(sizes) if after > before]
    growth = sum(grown) / len(grown) if grown else DEFAULT_GROWTH_TOKENS
    room = max(0, auto_threshold_tokens - context_tokens)
    return max(1, min(MAX_REQUESTS, int(room / max(1.0, growth))))
