"""A finished session, replayed request by request under a policy: what it would have cost.

The history is the whole of it, as if it had never been compacted; the replay compacts when it has to.  A request
reads what it has in common with the one before from the cache, unless that has gone, and writes the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from core.context.decisions import State
from core.context.projection import Projected, project
from core.context.tokens.cost import CacheLife, request_cost
from core.context.tokens.estimate import PRIOR, Calibration, Estimator
from core.context.tokens.models import Model, Prices
from core.model import Block, Message, Usage, call_id, tool_results
from core.stages.base import Scene, Stage
from core.stages.verdict import AFTER_COMPACTION_TOKENS, LIFE, REREAD_TOKENS, SUMMARY_TOKENS, time_of
from core.times import stamp
from core.transcript.outline import outline_blocks
from core.turn.pipeline import run

UNKNOWN_PRICES = Prices(input=1, output=5, write_5m=1.25, write_1h=2, read=0.1)
"""The ratios of most models, where the table has no prices."""
CLEARED_TOKENS = 25
"""What the server leaves in the place of a result that it cleared."""


@dataclass(frozen=True, slots=True)
class History:
    """All messages of a session in the order of time, and what is known of their sizes."""

    messages: tuple[Message, ...]
    model: Model
    calibration: Calibration = PRIOR
    overhead_tokens: int = 0

    def repeated(self, times: int) -> History:
        """The same work done several times in one session, each time beginning a day after the time before ended."""
        known = [time for m in self.messages if (time := time_of(m))]
        each = max(known) - min(known) + timedelta(days=1) if known else timedelta()
        return replace(self, messages=tuple(m for n in range(times) for m in _copies(self.messages, n, each)))


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the replay takes for granted."""

    auto_threshold_tokens: int
    life: CacheLife = "5m"
    reread_tokens: int = REREAD_TOKENS
    """What is read again after a compaction, in the request behind it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is done in front of each request."""

    name: str
    stages: tuple[Stage, ...] = ()
    keeps_cache: bool = False
    """Whether results that the server deletes leave the cache behind them as it is."""


@dataclass(slots=True)
class Outcome:
    """What a policy came to."""

    policy: str
    requests: int = 0
    compactions: int = 0
    edits: int = 0
    cold: int = 0
    """Requests that found no cache."""
    usage: Usage = field(default_factory=Usage)
    peak_tokens: int = 0
    usd: float = 0.0
    """At the model's prices, or at those of `UNKNOWN_PRICES`."""

    def add(self, usage: Usage, model: Model) -> None:
        """Counts one call."""
        self.usd += request_cost(usage, priced(model)) or 0.0
        self.peak_tokens = max(self.peak_tokens, usage.prompt_tokens)
        self.usage += usage


@dataclass(frozen=True, slots=True)
class _Sent:
    """One message of a request: which, its tokens as sent, and as they count once the server has cleared results."""

    uuid: str
    tokens: int
    counted_tokens: int


class Sizes:
    """The tokens of blocks, each estimated once for all policies."""

    def __init__(self, history: History) -> None:
        self._estimator = Estimator(history.model, history.calibration)
        self._known = {id(b): self._estimated(b) for m in history.messages for b in m.content}
        self._replaced: dict[tuple[str, str], float] = {}
        self._results = {
            call_id(b): (m.uuid, max(0, round(self._known[id(b)]) - CLEARED_TOKENS))
            for m in history.messages
            for b in tool_results(m)
        }

    def of(self, blocks: Sequence[Block]) -> float:
        """Tokens of blocks: from memory for those of the history, estimated for what a stage made."""
        known = self._known
        return sum([known[id(b)] if id(b) in known else self._made(b) for b in blocks])

    def cleared(self, ids: Iterable[str]) -> Counter[str]:
        """What each message has less once the server has cleared some results, by the message's id."""
        counts: Counter[str] = Counter()
        for uuid, tokens in (self._results[i] for i in ids if i in self._results):
            counts[uuid] += tokens
        return counts

    def _estimated(self, block: Block) -> float:
        return self._estimator.tokens(outline_blocks([block]))

    def _made(self, block: Block) -> float:
        """A block that a stage made: most are results with the same text over and over."""
        call, text = block.get("tool_use_id"), block.get("content")
        if not isinstance(call, str) or not isinstance(text, str):
            return self._estimated(block)
        if (call, text) not in self._replaced:
            self._replaced[call, text] = self._estimated(block)
        return self._replaced[call, text]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene(Scene):
    """A scene that remembers sizes, and what the model sees in each state."""

    sizes: Sizes
    memory: dict[tuple[int, int], tuple[Scene, Projected, list[int]]] = field(default_factory=dict)

    def view(self) -> Projected:
        return self._seen()[0]

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        seen, tokens = self._seen()
        return tokens if messages is seen.messages else self._measured(messages)

    def _seen(self) -> tuple[Projected, list[int]]:
        key = id(self.messages), id(self.state)
        if key not in self.memory:
            seen = project(self.messages, self.state)
            self.memory[key] = self, seen, self._measured(seen.messages)
        return self.memory[key][1:]

    def _measured(self, messages: Sequence[Message]) -> list[int]:
        return [round(self.sizes.of(m.content)) for m in messages]

    def block_tokens(self, blocks: Sequence[Block]) -> int:
        return round(self.sizes.of(blocks))


def replayed(history: History, policy: Policy, assumptions: Assumptions, sizes: Sizes | None = None) -> Outcome:
    """The outcome of a policy over all requests of a history."""
    return _Replay(history, policy, assumptions, sizes or Sizes(history)).outcome()


class _Replay:
    def __init__(self, history: History, policy: Policy, assumptions: Assumptions, sizes: Sizes) -> None:
        self.history = history
        self.policy = policy
        self.assumptions = assumptions
        self.sizes = sizes
        self.state = State()
        self.start = 0
        self.carried: list[_Sent] = []
        self.cached: list[_Sent] = []
        self.last: datetime | None = None
        self.result = Outcome(policy.name)

    def outcome(self) -> Outcome:
        """Every response is one request; what came before it is the context."""
        for at, message in enumerate(self.history.messages):
            if message.kind == "response":
                self._request(at)
        return self.result

    def _request(self, at: int) -> None:
        messages = self.history.messages
        now = time_of(messages[at - 1]) if at else None
        warm = self._is_warm(now)
        sent = self._prepared(at, now)
        if self._total(sent) > self.assumptions.auto_threshold_tokens:
            self._bill(sent, warm, SUMMARY_TOKENS)
            self._compacted(at)
            sent, warm = [*self.carried], True
        self.result.requests += 1
        self.result.cold += not warm
        self._bill(sent, warm, round(self.sizes.of(messages[at].content)))
        self.last = now or self.last

    def _is_warm(self, now: datetime | None) -> bool:
        return self.last is None or now is None or now - self.last <= LIFE[self.assumptions.life]

    def _prepared(self, at: int, now: datetime | None) -> list[_Sent]:
        """The messages of the request, after the stages had their say."""
        carried_tokens = sum(c.tokens for c in self.carried)
        scene = _Scene(
            self.history.messages[self.start : at],
            self.history.model,
            self.state,
            self.history.calibration,
            self.history.overhead_tokens + carried_tokens,
            "tool-results",
            now,
            self.assumptions.auto_threshold_tokens,
            sizes=self.sizes,
        )
        after, plans = run(scene, self.policy.stages)
        self.state = after.state
        self.result.edits += sum(p.tokens_freed > 0 for p in plans)
        view = after.view().messages
        gone = self.sizes.cleared(self.state.cleared_on_server)
        sizes = zip(view, scene.tokens(view), strict=True)
        return self.carried + [_Sent(m.uuid, n, n - gone[m.uuid]) for m, n in sizes]

    def _total(self, sent: Sequence[_Sent]) -> int:
        return self.history.overhead_tokens + sum(s.counted_tokens for s in sent)

    def _bill(self, sent: list[_Sent], warm: bool, output_tokens: int) -> None:
        total = self._total(sent)
        read = 0
        if warm and self.last is not None:
            read = self.history.overhead_tokens + sum(s.counted_tokens for s in self._common(sent))
        written = total - read
        hour = written if self.assumptions.life == "1h" else 0
        self.result.add(Usage(0, written, read, output_tokens, hour), self.history.model)
        self.cached = sent

    def _common(self, sent: Sequence[_Sent]) -> Iterator[_Sent]:
        """What the request begins with that the one before began with too."""
        for now, before in zip(sent, self.cached, strict=False):
            same = (
                now.tokens == before.tokens if self.policy.keeps_cache else now.counted_tokens == before.counted_tokens
            )
            if now.uuid != before.uuid or not same:
                return
            yield now

    def _compacted(self, at: int) -> None:
        left = max(AFTER_COMPACTION_TOKENS - self.history.overhead_tokens, SUMMARY_TOKENS)
        tokens = left + self.assumptions.reread_tokens
        self.result.compactions += 1
        self.start = at
        self.state = State()
        self.carried = [_Sent(f"summary {self.result.compactions}", tokens, tokens)]


def input_price(model: Model) -> float:
    """The price of a million tokens of input; 1 where it is not known."""
    return priced(model).prices[0].input


def priced(model: Model) -> Model:
    """The model with prices, where the table has none."""
    known = model.prices and model.prices[0].input
    return model if known else msgspec.structs.replace(model, prices=(UNKNOWN_PRICES,))


def _copies(messages: Sequence[Message], number: int, each: timedelta) -> Iterator[Message]:
    """The messages once more, with ids of their own, and so many times `each` later."""
    for message in messages if number else ():
        yield replace(
            message,
            uuids=tuple(f"{u}+{number}" for u in message.uuids),
            timestamp=_later(message, number, each),
            response_id=message.response_id and f"{message.response_id}+{number}",
            content=tuple(_copy(b, number) for b in message.content),
        )
    if not number:
        yield from messages


def _later(message: Message, number: int, each: timedelta) -> str:
    try:
        time = time_of(message)
        return stamp(time + number * each) if time else message.timestamp
    except OverflowError:  # a transcript may say any time, the calendar has an end
        return message.timestamp


def _copy(block: Block, number: int) -> Block:
    ids: Mapping[str, str] = {k: f"{v}+{number}" for k, v in block.items() if k in ("id", "tool_use_id")}
    return {**block, **ids}
