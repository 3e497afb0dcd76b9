"""What requests cost, in US dollars at list prices (no regional, fast-mode or private rates)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from core.context.tokens.models import Model
from core.model import Usage

CacheLife: TypeAlias = Literal["5m", "1h"]

BATCH_FACTOR = 0.5
"""The Message Batches API halves every class of tokens."""
_MILLION = 1_000_000


def request_cost(usage: Usage, model: Model, batch: bool = False) -> float | None:
    """The price of one request; None where the model's prices are not known.

    Tiers go by the whole prompt: above the limit, all tokens of the request have the dearer rate.
    """
    prices = model.prices_for(usage.prompt_tokens)
    if prices is None:
        return None
    hour = min(usage.cache_1h_tokens, usage.cache_creation_tokens)
    dollars = (
        usage.input_tokens * prices.input
        + (usage.cache_creation_tokens - hour) * prices.write_5m
        + hour * prices.write_1h
        + usage.cache_read_tokens * prices.read
        + usage.output_tokens * prices.output
    ) / _MILLION
    return dollars * BATCH_FACTOR if batch else dollars


def next_request_cost(
    context_tokens: int, model: Model, warm: bool, life: CacheLife = "5m", new_tokens: int = 0, output_tokens: int = 0
) -> float | None:
    """The price of the next request on a context: read from the cache while it is warm, written again when it is cold.

    `new_tokens` are added to the context by that request and written in both cases.  A context below the model's
    cache minimum is plain input.
    """
    total = context_tokens + new_tokens
    if total < model.cache_min_tokens:
        return request_cost(Usage(input_tokens=total, output_tokens=output_tokens), model)
    read = context_tokens if warm else 0
    written = total - read
    usage = Usage(0, written, read, output_tokens, written if life == "1h" else 0)
    return request_cost(usage, model)
