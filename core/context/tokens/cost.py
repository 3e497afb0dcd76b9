"""What requests cost, in US dollars at list prices (no regional, fast-mode or private rates)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from core.context.tokens.models import Model
from core.model import Usage

CacheLife: TypeAlias = Literal["5m", "1h"]

_MILLION = 1_000_000


def request_cost(usage: Usage, model: Model) -> float | None:
    """The price of one request; None where the model's prices are not known.

    Tiers go by the whole prompt: above the limit, all tokens of the request have the dearer rate.
    """
    prices = model.prices_for(usage.prompt_tokens)
    if prices is None:
        return None
    hour = min(usage.cache_1h_tokens, usage.cache_creation_tokens)
    return (
        usage.input_tokens * prices.input
        + (usage.cache_creation_tokens - hour) * prices.write_5m
        + hour * prices.write_1h
        + usage.cache_read_tokens * prices.read
        + usage.output_tokens * prices.output
    ) / _MILLION


def next_request_cost(context_tokens: int, model: Model, warm: bool) -> float | None:
    """The price of the next request on a context: read from the cache while it is warm, written again when it is cold.

    A context below the model's cache minimum is plain input.
    """
    if context_tokens < model.cache_min_tokens:
        return request_cost(Usage(context_tokens), model)
    return request_cost(Usage(cache_read_tokens=context_tokens) if warm else Usage(0, context_tokens), model)
