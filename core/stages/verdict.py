"""Whether a change of the history pays: what rewriting the cache costs, what sending less saves.

All figures are input-token equivalents: 1 is the price of one uncached input token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise

from core.context.tokens.cost import CacheLife
from core.context.tokens.models import Model
from core.context.tokens.words import tokens as short
from core.model import Message, Usage
from core.times import time_from

LIFE: dict[CacheLife, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
"""How long a prefix stays in the cache after the last request that used it."""
MAX_REQUESTS = 100
"""Requests still to come are counted up to here: nobody knows more."""
GROWTH_WINDOW = 30
"""Responses over which the growth of the context is averaged."""
DEFAULT_GROWTH_TOKENS = 1_000
"""Growth per request where a session is too young to tell; measured medians are 240 to 870, means up to 1,700."""
CAUTION = 1.3
"""Weight on the cost, for the uncertainty of the number of requests to come."""
COLD_PRIOR_REQUESTS = 20
"""Requests without a pause that are added to those seen: a few requests say little about the pauses to come."""
AFTER_COMPACTION_TOKENS = 30_000
"""What a compaction leaves, system prompt and tools included, before anything is read again."""
SUMMARY_TOKENS = 4_000
"""What the model writes for it (measured summaries are 12,000 characters in the median)."""
REREAD_TOKENS = 20_000
"""What has to be read again after one (a first request after it holds 53,000 tokens in the measured median)."""
OUTPUT_RATE = 5
"""The price of output relative to input, for every model with known prices."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is likely to come, by what a session did so far."""

    requests: int
    """Before automatic compaction is due; at most `MAX_REQUESTS`, at least 1."""
    growth_tokens: float = DEFAULT_GROWTH_TOKENS
    """By a request."""
    cold_share: float = 0.0
    """How many requests find no cache."""
    threshold_tokens: int = 0
    """Where automatic compaction is due; 0: never."""
    overhead_tokens: int = 0
    """What stays in the cache through a compaction."""


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
    """Less than 0 where it puts off a compaction that would be the cheaper way to the same end."""
    costs: float
    pays_after: float | None
    cold: bool = False
    """Whether the cache is gone anyway."""

    @property
    def pays(self) -> bool:
        """Whether more is saved than spent."""
        return self.saves > self.costs

    def __str__(self) -> str:
        """One line for a person."""
        less, anew = short(self.deleted_tokens), short(self.rewritten_tokens)
        why = " (the cache is cold)" if self.cold else ""
        return f"{less} tokens less, {anew} to cache anew: pays {when_it_pays(self.pays_after)}{why}"


def when_it_pays(after_requests: float | None) -> str:
    """Say after how many requests something has paid: never (None), at once (0), after 3 requests."""
    if not after_requests:
        return "never" if after_requests is None else "at once"
    count = max(1, round(after_requests))
    return f"after {count} request{'s' if count > 1 else ''}"


def verdict(
    model: Model,
    deleted_tokens: int,
    rewritten_tokens: int,
    outlook: Outlook,
    *,
    cold: bool = False,
    life: CacheLife = "5m",
    rewritten_share: float = 1.0,
) -> Verdict:
    """The verdict on deleting some tokens of which the cache holds `rewritten_tokens` more behind them.

    hot: each later request saves the price of what is gone, in most cases that of a read; what is behind it is written
    again instead of read.  cold: everything is written again anyway, so what is gone saves its write price at once.
    `rewritten_share` is 1 for edits of the content and near 0 for edits that the server makes in its own cache.
    """
    read, write = rates(model, life)
    each = read + outlook.cold_share * (write - read)
    saves = outlook.requests * each * deleted_tokens - _put_off(outlook, deleted_tokens, each, read, write)
    if cold:
        saves += (write - each) * deleted_tokens
        return Verdict(deleted_tokens, rewritten_tokens, outlook.requests, saves, 0.0, 0.0, cold=True)
    costs = rewritten_share * (write - read) * rewritten_tokens
    after = costs / (each * deleted_tokens) if each * deleted_tokens > 0 else None
    return Verdict(deleted_tokens, rewritten_tokens, outlook.requests, saves, CAUTION * costs, after)


def _put_off(outlook: Outlook, deleted_tokens: int, each: float, read: float, write: float) -> float:
    """What it costs that the next compaction comes later: more requests with a nearly full context.

    They are compared with the mean request of a session that compacts at the threshold, over and over: its share of
    a compaction, and the price of a context that is half full.
    """
    growth, threshold = outlook.growth_tokens, outlook.threshold_tokens
    more_requests = min(deleted_tokens / growth, MAX_REQUESTS - outlook.requests)
    fresh = max(AFTER_COMPACTION_TOKENS, outlook.overhead_tokens + SUMMARY_TOKENS) + REREAD_TOKENS
    if more_requests <= 0 or threshold <= fresh:
        return 0.0
    compaction = read * threshold + OUTPUT_RATE * SUMMARY_TOKENS + write * (fresh - outlook.overhead_tokens)
    mean = compaction * growth / (threshold - fresh) + each * (fresh + threshold) / 2
    return more_requests * (each * (threshold - deleted_tokens / 2) - mean)


def rates(model: Model, life: CacheLife = "5m") -> tuple[float, float]:
    """Read and write price of the cache relative to input; 0.1 and 1.25 (2 for an hour) where prices are not known."""
    prices = model.prices_for(0)
    if prices is None or not prices.input:
        return 0.1, 2.0 if life == "1h" else 1.25
    return prices.read / prices.input, (prices.write_1h if life == "1h" else prices.write_5m) / prices.input


def outlook_of(
    messages: Sequence[Message], context_tokens: int, threshold_tokens: int, overhead_tokens: int, life: CacheLife
) -> Outlook:
    """What is likely to come: requests up to the threshold at the mean growth of the newest, pauses as often as so far.

    Messages without usage or timestamps say nothing about growth or pauses.
    """
    newest = (usage.prompt_tokens for m in reversed(messages) if (usage := charged(m)) and usage.prompt_tokens)
    sizes = [*islice(newest, GROWTH_WINDOW + 1)]
    grown = [after - before for after, before in pairwise(sizes) if after > before]
    growth = sum(grown) / len(grown) if grown else DEFAULT_GROWTH_TOKENS
    room = max(0, threshold_tokens - context_tokens)
    requests = max(1, min(MAX_REQUESTS, int(room / growth)))
    return Outlook(requests, growth, _cold_share(messages, LIFE[life]), threshold_tokens, overhead_tokens)


def charged(message: Message) -> Usage | None:
    """What a response was charged, also where its session was shortened since: what is to come has full length."""
    return message.charged or message.usage


def _cold_share(messages: Sequence[Message], life: timedelta) -> float:
    """The share of the newest requests that came too late for the cache; a request is made at its newest message."""
    requests = [time_of(a) for a, b in pairwise(messages) if b.kind == "response" and a.kind != "response"]
    pauses = [b - a for a, b in pairwise(filter(None, requests[-MAX_REQUESTS:]))]
    return sum(p > life for p in pauses) / (len(pauses) + COLD_PRIOR_REQUESTS)


def time_of(message: Message) -> datetime | None:
    """When a message was written; None where that is not said."""
    return time_from(message.timestamp)
