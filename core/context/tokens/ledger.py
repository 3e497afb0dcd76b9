"""The size of a context: exact up to the last response that was charged, estimated from there on.

The prompt that a response was charged for is the exact size of everything before it, so the difference between two
responses is the exact size of the first and of what follows it up to the second: the messages in between share it in
proportion to their estimates, unless it is so large that something unseen must have been sent along.  Only what
comes after the last response is an estimate, and it is calibrated on those differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import msgspec

from core.context.tokens.estimate import Calibration, Estimator, Sample, calibrate, most_plausible
from core.context.tokens.models import SYNTHETIC, Model
from core.model import Message, Usage
from core.transcript.outline import BlockOutline, outline_blocks

Source: TypeAlias = Literal["usage", "estimate"]

DEFAULT_OVERHEAD_TOKENS = 42_000
"""System prompt, tools and memory files, which a transcript does not hold: the median of eight real sessions."""
CALIBRATION_STEPS = 200
"""The newest steps that a calibration learns from: enough for seven figures, and the cost has a bound."""
STUB_SHARE = 0.5
"""Clients before 2.1.200 or so often record the output count of the first streamed event (1 to 25 tokens): a
figure below this share of the estimate is no count of the whole response."""
TAIL_MARGIN, TOTAL_MARGIN, ESTIMATE_MARGIN = 0.02, 0.01, 0.15
"""Share of the tail, of an anchored total and of a wholly estimated one that a figure may be off by."""


class LedgerItem(msgspec.Struct, frozen=True, gc=False):
    """One message, or one row of a response: what it holds and what the API said about it."""

    outlines: tuple[BlockOutline, ...]
    usage: Usage | None = None
    response_id: str = ""
    model: str = ""
    stale: bool = False
    """The usage was measured on another context than this one: a kept row of before a compaction."""
    projected: bool = False
    """The usage was not charged but worked out, by whoever rewrote the transcript: what the request would have been."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of a context in tokens; `overhead_tokens` and all `item_tokens` add up to `total_tokens`."""

    total_tokens: int
    source: Source
    tail_tokens: int
    """The estimated part: what comes after the last response with real usage; all messages where there is none."""
    margin_tokens: int
    overhead_tokens: int
    """What is sent but is no message: system prompt, tools, memory files, and injected text that is not recorded."""
    item_tokens: tuple[int, ...]
    calibration: Calibration

    @property
    def usage_tokens(self) -> int:
        """The exact part; 0 where everything is estimated."""
        return self.total_tokens - self.tail_tokens if self.source == "usage" else 0


class _Anchor(msgspec.Struct, gc=False):
    """A response with real usage, at the place of its first item."""

    at: int
    prompt: int
    output: int
    stale: bool
    projected: bool


def items_of(messages: Sequence[Message]) -> tuple[LedgerItem, ...]:
    """The items of decoded messages."""
    return tuple(
        # A summary may carry the usage of the request that made it: that was charged for what it stands for.
        LedgerItem(outline_blocks(m.content), m.usage if m.kind == "response" else None, m.response_id, m.model)
        for m in messages
    )


def measure(items: Sequence[LedgerItem], model: Model, overhead_tokens: int = DEFAULT_OVERHEAD_TOKENS) -> ContextSize:
    """The size of the context that the items make, by usage where there is any.

    Usage of `<synthetic>` messages and of nothing but zeros does not count, nor that of before the prompt shrank:
    something was taken out of the context then.  Projected usage counts where nothing was charged since, and makes an
    estimate.  `overhead_tokens` is used where there is none at all.  Nothing is sent where there are no messages.
    """
    if not items:
        return _estimated(items, Estimator(model), 0)
    anchors = _anchors(items)
    calibration = calibrate(_samples(items, anchors, Estimator(model)))
    estimator = Estimator(model, calibration)
    fresh = _fresh(anchors)
    if not fresh:
        return _estimated(items, estimator, overhead_tokens)
    return _anchored(items, fresh, _least_prompt(anchors, fresh[0]), estimator)


def measure_like(items: Sequence[LedgerItem], model: Model, reference: ContextSize) -> ContextSize:
    """The size of the items by estimate alone, calibrated and with the overhead as in `reference`.

    Two contexts that are compared (before and after a change) are both measured in this way.
    """
    return _estimated(items, Estimator(model, reference.calibration), reference.overhead_tokens)


def fitted(size: ContextSize, total_tokens: int) -> ContextSize:
    """An estimate whose total is known better: what it is short of is sent beside the messages, and was not seen.

    What it is over goes off the messages, in proportion, and off the overhead only when there is nothing else.
    """
    seen = sum(size.item_tokens)
    overhead = min(max(size.overhead_tokens, total_tokens - seen), total_tokens)
    tokens = tuple(shared(size.item_tokens, total_tokens - overhead))
    margin = round(ESTIMATE_MARGIN * total_tokens)
    return ContextSize(total_tokens, "estimate", sum(tokens), margin, overhead, tokens, size.calibration)


def _estimated(items: Sequence[LedgerItem], estimator: Estimator, overhead: int) -> ContextSize:
    tokens = tuple(round(estimator.tokens(item.outlines)) for item in items)
    total = overhead + sum(tokens)
    margin = round(ESTIMATE_MARGIN * total)
    return ContextSize(total, "estimate", sum(tokens), margin, overhead, tokens, estimator.calibration)


def _anchored(
    items: Sequence[LedgerItem], anchors: Sequence[_Anchor], earliest: _Anchor, estimator: Estimator
) -> ContextSize:
    """The size by anchors; `earliest` is the first request of a context that this one grew out of."""
    estimates = [estimator.tokens(item.outlines) for item in items]
    first, last = anchors[0], anchors[-1]
    before = estimates[: first.at]
    overhead = max(0, earliest.prompt - round(sum(estimates[: earliest.at])))
    tokens = shared(before, min(round(sum(before)), first.prompt - overhead))
    for a, b in pairwise(anchors):
        weights, _ = _weighed(items[a.at : b.at], estimates[a.at : b.at], a.output)
        expected = sum(weights)
        exact = b.prompt - a.prompt
        tokens += shared(weights, exact if exact <= most_plausible(expected) else round(expected))
    weights, response = _weighed(items[last.at :], estimates[last.at :], last.output)
    tail_tokens = round(sum(weights) - response)
    since = round(response) + tail_tokens
    tokens += shared(weights, since)
    total = last.prompt + since
    overhead = total - sum(tokens)
    if last.projected:
        margin = round(ESTIMATE_MARGIN * total)
        return ContextSize(total, "estimate", sum(tokens), margin, overhead, tuple(tokens), estimator.calibration)
    margin = round(max(TAIL_MARGIN * tail_tokens, TOTAL_MARGIN * total))
    return ContextSize(total, "usage", tail_tokens, margin, overhead, tuple(tokens), estimator.calibration)


def _weighed(items: Sequence[LedgerItem], estimates: list[float], output_tokens: int) -> tuple[list[float], float]:
    """The estimates of a step, those of its response (the first item) scaled to the output reported; and that."""
    response_id = items[0].response_id
    rows = [i for i, item in enumerate(items) if item.response_id == response_id] if response_id else [0]
    estimate = sum([estimates[i] for i in rows])
    if output_tokens < STUB_SHARE * estimate:
        return estimates, estimate
    weights = list(estimates)
    if not estimate:
        weights[0] = output_tokens
    else:
        scale = output_tokens / estimate
        for i in rows:
            weights[i] *= scale
    return weights, float(output_tokens)


def _anchors(items: Sequence[LedgerItem]) -> list[_Anchor]:
    """The responses with real usage; of several rows of one response the first, with the largest output count."""
    found: list[_Anchor] = []
    place: dict[str, _Anchor] = {}
    for at, item in enumerate(items):
        usage = item.usage
        if usage is None or item.model == SYNTHETIC:
            continue
        known = place.get(item.response_id)
        if known:
            known.output = max(known.output, usage.output_tokens)
        elif prompt_tokens := usage.prompt_tokens:
            anchor = _Anchor(at, prompt_tokens, usage.output_tokens, item.stale, item.projected)
            found.append(anchor)
            if item.response_id:
                place[item.response_id] = anchor
    return found


def _fresh(anchors: Sequence[_Anchor]) -> list[_Anchor]:
    """The anchors that measured this context: those since the last stale one and the last drop of the prompt.

    What was charged and what was projected are not mixed: their difference is the error of the projection.
    """
    start = 0
    for at, (before, anchor) in enumerate(zip([None, *anchors], anchors, strict=False)):
        if anchor.stale:
            start = at + 1
        elif before and (anchor.prompt < before.prompt or anchor.projected != before.projected):
            start = at
    return list(anchors[start:])


def _least_prompt(anchors: Sequence[_Anchor], first: _Anchor) -> _Anchor:
    """The earliest request whose prompt was not larger than that of the `first` fresh one.

    It says how large the system prompt and the tools are.  Later ones do not: something was taken out in between, and
    what is estimated for it can be more than all that was left.  A larger one was of before a compaction.
    """
    return next(a for a in anchors if a is first or not (a.stale or a.prompt > first.prompt))


def _samples(items: Sequence[LedgerItem], anchors: Sequence[_Anchor], estimator: Estimator) -> list[Sample]:
    samples = []
    for a, b in pairwise(anchors[-CALIBRATION_STEPS - 1 :]):
        outlines = [outline for item in items[a.at : b.at] for outline in item.outlines]
        if not any(outline.media for outline in outlines):
            samples.append(Sample(estimator.features(outlines), b.prompt - a.prompt))
    return samples


def shared(weights: Sequence[float], total: int) -> list[int]:
    """Whole numbers in proportion to the weights that add up to `total` exactly; all to the first without weights."""
    weight = sum(weights)
    if not weight:
        return [total] + [0] * (len(weights) - 1) if weights else []
    shares: list[int] = []
    reached = 0.0
    given = 0
    for each in weights:
        reached += each
        shares.append(round(total * reached / weight) - given)
        given += shares[-1]
    return shares
