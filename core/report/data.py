"""What a report says about a session before and after something was done to it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from core.results import Result

Place: TypeAlias = Literal["kept", "changed", "stored", "gone"]
"""kept: word for word in the context.  changed: in the context with something shorter in its place, readable on
demand.  stored: out of the context, readable on demand.  gone: neither."""
Standing: TypeAlias = Literal["verbatim", "in part", "stored", "gone"]
"""Of what a person said: all of it, or its beginning, is in the context; or it can be read on demand; or neither."""


class Side(Result):
    """One of the two contexts: what it is made of, in tokens, and what the next request on it costs, in US dollars."""

    id: str
    path: str
    format: str
    title: str
    model: str
    messages: int
    tokens: int
    by_kind: dict[str, int]
    window_tokens: int
    auto_threshold_tokens: int
    next_request_usd: dict[str, float | None]
    """`warm`, `cold`: with what the cache holds then; None where the price is not known."""


class PlaceCount(Result):
    """How much of before is in a place now: its messages, and the tokens that they had."""

    messages: int
    tokens: int


class PartLine(Result):
    """One of the largest parts of before, and where it went; `id` is what `output` takes."""

    id: str
    kind: str
    tool: str
    tokens: int
    tokens_after: int
    place: Place


class Said(Result):
    """A request or a lasting statement of a person; `text` without secrets, cut."""

    id: str
    text: str
    standing: Standing


class NameCoverage(Result):
    """Which of the paths and symbols of what was taken out the context still names; `missing` holds the likeliest."""

    paths: int
    paths_named: int
    symbols: int
    symbols_named: int
    missing: list[str]


class Fidelity(Result):
    """How true and how complete a summary is: the parts of its claims that hold, and of what must be known it says.

    Of a compaction it is what the summariser wrote; of a report, what stands in the context.  Only names, figures,
    quotations, claims that tests pass and orders are looked up, by rule: what else is said may be wrong.
    """

    precision: float
    recall: float
    missing: list[str]
    """What must be known and is not said, each with its kind; the ledger holds it."""
    unverifiable: list[str]
    """Names, figures and quotations that occur nowhere."""
    contradicted: list[str]
    """Claims that tests pass without a run since the last change, and orders that only a tool gave."""
    repaired: bool
    """Whether marks and a ledger made it faithful."""
    ledger_tokens: int


class Report(Result):
    """A comparison of two contexts, all tokens by one estimator."""

    before: Side
    after: Side
    places: dict[Place, PlaceCount]
    largest: list[PartLine]
    requests: list[Said]
    constraints: list[Said]
    names: NameCoverage
    reachable: list[str]
    """Ids of messages and results of before that are not in the context as they were, and that `output` shows."""
    gone: list[str]
    fidelity: Fidelity | None = None
    """Of the summary that the context got; None where it got none."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """That the two share nothing, or are the same."""
