"""How large the next request is, and the scene that stages look at: what was measured once is not measured again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from core.context.decisions import State
from core.context.projection import Projected, project
from core.context.tokens.estimate import PRIOR, Calibration, Estimator
from core.context.tokens.ledger import ContextSize, LedgerItem, measure, measure_like
from core.context.tokens.models import Model
from core.model import Block, Message
from core.stages.base import Scene
from core.transcript.outline import BlockOutline, outline_blocks
from core.turn.state import Charged, TurnState

_MOST_BLOCKS, _MOST_VIEWS = 50_000, 8
"""How many outlines and projections are remembered."""


class Memo:
    """What was made once of messages that do not change: the outlines of their blocks, their projections."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Block, tuple[BlockOutline, ...]]] = {}
        self._views: dict[tuple[int, int], tuple[Sequence[Message], State, Projected]] = {}

    def view(self, messages: Sequence[Message], state: State) -> Projected:
        """What the model sees of messages in a state."""
        key = id(messages), id(state)
        if key not in self._views:
            while len(self._views) >= _MOST_VIEWS:
                del self._views[next(iter(self._views))]
            self._views[key] = messages, state, project(messages, state)  # both stay alive: no other has their id
        return self._views[key][2]

    def of(self, blocks: Sequence[Block]) -> tuple[BlockOutline, ...]:
        """The outlines of some blocks, in their order."""
        return tuple(outline for block in blocks for outline in self._of(block))

    def items(self, messages: Sequence[Message], stale: frozenset[str] = frozenset()) -> list[LedgerItem]:
        """The messages as far as their sizes go; the usage of `stale` ones is of another context."""
        return [
            LedgerItem(
                self.of(m.content),
                m.usage if m.kind == "response" else None,
                m.response_id,
                m.model,
                m.uuid in stale,
            )
            for m in messages
        ]

    def _of(self, block: Block) -> tuple[BlockOutline, ...]:
        found = self._known.get(id(block))
        if found is not None and found[0] is block:
            return found[1]
        if len(self._known) >= _MOST_BLOCKS:
            self._known.clear()
        outlines = outline_blocks([block])
        self._known[id(block)] = block, outlines
        return outlines


@dataclass(frozen=True, slots=True)
class Ruler:
    """What sizes are measured with where no usage tells more."""

    model: Model
    overhead_tokens: int
    """System prompt and tools."""
    calibration: Calibration = PRIOR
    memo: Memo = field(default_factory=Memo)

    def size(self, state: TurnState) -> ContextSize:
        """The next request: exact up to the last response, estimated behind it and where something changed since."""
        now = self.memo.view(state.messages, state.decisions).messages
        if state.charged is None:
            reference = ContextSize(0, "estimate", 0, 0, self.overhead_tokens, (), self.calibration)
            return measure_like(self.memo.items(now), self.model, reference)
        before = self.memo.view(state.charged.messages, state.charged.decisions).messages
        if now[: len(before)] == before:
            return measure(self.memo.items(now, state.stale), self.model, self.overhead_tokens)
        return self._changed(state.charged, before, now)

    def _changed(self, charged: Charged, before: Sequence[Message], now: Sequence[Message]) -> ContextSize:
        """The size after something went: what stays keeps its size, what is new is estimated in the same proportion."""
        known = measure(self.memo.items(before, charged.stale), self.model, self.overhead_tokens)
        old = {m.uuid: (m, n) for m, n in zip(before, known.item_tokens, strict=True)}
        estimates = measure_like(self.memo.items(before), self.model, known).item_tokens
        ratio = sum(known.item_tokens) / max(1, sum(estimates))
        tokens: list[int] = []
        tail_tokens = 0
        new = measure_like(self.memo.items(now), self.model, known).item_tokens
        for message, estimate in zip(now, new, strict=True):
            same, exact = old.get(message.uuid, (None, 0))
            tokens.append(exact if same == message else round(estimate * ratio))
            tail_tokens += 0 if same == message else tokens[-1]
        total = known.overhead_tokens + sum(tokens)
        margin = max(known.margin_tokens, total // 50)
        return ContextSize(
            total, known.source, tail_tokens, margin, known.overhead_tokens, tuple(tokens), known.calibration
        )

    def scene(
        self, state: TurnState, size: ContextSize, threshold_tokens: int, store_folder: str, now: datetime | None
    ) -> Scene:
        """What the stages look at."""
        return _Scene(
            state.messages,
            self.model,
            state.decisions,
            size.calibration,
            size.overhead_tokens,
            store_folder,
            now,
            threshold_tokens,
            memo=self.memo,
            estimator=Estimator(self.model, size.calibration),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene(Scene):
    """A scene that remembers what was made of its messages."""

    memo: Memo
    estimator: Estimator

    def view(self) -> Projected:
        """As `Scene.view`, made once for the same messages in the same state."""
        return self.memo.view(self.messages, self.state)

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """As `Scene.tokens`."""
        return [round(self.estimator.tokens(self.memo.of(m.content))) for m in messages]

    def block_tokens(self, blocks: Sequence[Block]) -> int:
        """As `Scene.block_tokens`."""
        return round(self.estimator.tokens(self.memo.of(blocks)))
