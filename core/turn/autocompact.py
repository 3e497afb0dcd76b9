"""When automatic compaction is due: a pure function of what is known, and what it remembers about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from core.context.tokens.window import Levels
from core.context.tokens.words import tokens as short

MAX_FAILURES = 3
"""After so many failures in a row it stops, until a compaction succeeds or the user acts."""
REFILL_REQUESTS, MAX_REFILLS = 5, 3
"""Full again within so many requests, so many times in a row: what fills the context is not what a compaction takes
out, and it stops for the session."""
MIN_SAVED_TOKENS, MIN_SAVED_SHARE = 4_000, 0.10
"""A compaction that saves less, of the window, is not made unless the API refused the request."""
HEADROOM_SHARE = 0.70
"""Of the threshold: what is larger after a compaction will be full again at once."""
GROWTH_SHARE = 0.10
"""Of the window: so much has to be added before it tries again."""


@dataclass(frozen=True, slots=True)
class AutoState:
    """What automatic compaction knows about itself: a fold of its own events."""

    failures: int = 0
    """In a row."""
    refills: int = 0
    """In a row, each soon after a compaction."""
    since_requests: int | None = None
    """Requests since the last compaction; None where there was none."""
    paused_at_tokens: int | None = None

    @property
    def refills_soon(self) -> bool:
        """Whether the context would be full again soon after a compaction, if it were full now."""
        return self.since_requests is not None and self.since_requests <= REFILL_REQUESTS

    def requested(self) -> AutoState:
        """After a response."""
        return self if self.since_requests is None else replace(self, since_requests=self.since_requests + 1)

    def compacted(self) -> AutoState:
        """After a compaction; refills count in a row."""
        return AutoState(refills=self.refills if self.refills_soon else 0, since_requests=0)

    def failed(self) -> AutoState:
        """After an attempt that came to nothing."""
        return replace(self, failures=self.failures + 1)

    def refilled(self) -> AutoState:
        """After the context was full again so soon."""
        return replace(self, refills=self.refills + 1)

    def paused(self, tokens: int) -> AutoState:
        """After a compaction that left too little room."""
        return replace(self, paused_at_tokens=tokens)


@dataclass(frozen=True, slots=True)
class Question:
    """What the answer depends on; tokens are those of the next request of a turn, usage and estimated tail."""

    tokens: int
    levels: Levels
    auto: AutoState = AutoState()
    compaction: bool = True
    """Whether anything may be compacted at all."""
    automatic: bool = True
    reactive_only: bool = False
    """Only after the API has refused a request."""
    collapse_holds: bool = False
    """Whether context collapse can still make room."""
    snipped_tokens: int = 0
    """What was snipped in front of this request, and that `tokens` counts still."""


_GUARDS: tuple[tuple[Callable[[Question], bool], str], ...] = (
    (lambda q: not q.compaction, "compaction is off"),
    (lambda q: not q.automatic, "automatic compaction is off"),
    (lambda q: q.collapse_holds, "context collapse can still make room"),
    (lambda q: q.reactive_only, "it waits until the API refuses a request"),
    (lambda q: q.auto.failures >= MAX_FAILURES, f"it failed {MAX_FAILURES} times in a row"),
    (lambda q: q.auto.refills >= MAX_REFILLS, f"the context was full again {MAX_REFILLS} times, soon after it"),
    (lambda q: _is_paused(q), "the last one left too little room, and not enough was added since"),
    (lambda q: q.tokens - q.snipped_tokens < q.levels.auto_threshold, "there is room below the threshold"),
)


def why_not(question: Question) -> str:
    """Why not to compact before the next request, by the first guard that holds; "" where it is due."""
    return next((reason for holds, reason in _GUARDS if holds(question)), "")


def _is_paused(question: Question) -> bool:
    at_tokens = question.auto.paused_at_tokens
    return at_tokens is not None and question.tokens < at_tokens + GROWTH_SHARE * question.levels.window


def is_worth_it(before_tokens: int, after_tokens: int, levels: Levels) -> bool:
    """Whether a compaction that nobody is forced to saves enough to be made."""
    return before_tokens - after_tokens >= max(MIN_SAVED_TOKENS, MIN_SAVED_SHARE * levels.window)


def leaves_headroom(after_tokens: int, levels: Levels) -> bool:
    """Whether there is room to work in after a compaction."""
    return after_tokens <= HEADROOM_SHARE * levels.auto_threshold


def warning(after_tokens: int, levels: Levels, largest: list[tuple[str, int]]) -> str:
    """What the user is told, once, when compacting does not help; `largest` are what fills the context, with tokens."""
    named = ", ".join(f"{what} ({short(tokens)})" for what, tokens in largest[:3])
    room = f"{short(after_tokens)} of {short(levels.auto_threshold)} tokens stay"
    return f"compacting makes too little room: {room}. The largest: {named}. Automatic compaction waits."
