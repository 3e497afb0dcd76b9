"""Where old history is divided into spans that one note each can stand for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from core.context.rounds import cut_points
from core.model import Message
from core.stages.base import Scene
from core.stages.round_facts import RoundFacts, facts_of

MOST_TOKENS = 16_000
"""A span ends here at the latest: one note of 900 tokens says no more."""
LEAST_TOKENS = 3_000
"""A smaller span joins the one before it: its note would be mostly frame."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Messages from `begin` up to `end`; `closed` when what comes next is something new."""

    begin: int
    end: int
    tokens: int
    rounds: int
    closed: bool = True


def segments(
    scene: Scene, messages: Sequence[Message], sizes: Sequence[int], end: int, kept: Collection[str]
) -> list[Segment]:
    """The spans in front of `end`, oldest first; none holds a message of `kept` (ids), or what has to stay.

    A span ends where a person speaks, a task is completed, a commit is made, or it is large enough.  What stays: the
    first prompt, summaries, skills, plans and instructions.
    """
    points = [p for p in cut_points(messages) if p <= end]
    if len(points) < 2:
        return []
    spans = [*pairwise(points)]
    facts = facts_of(scene, messages, sizes, spans)
    first = next((m.uuid for m in messages if m.kind == "prompt"), "")
    barred = {first, *kept, *(m.uuid for m in messages if m.kind == "summary")}
    ends_turn = end < len(messages) and messages[end].kind == "prompt"
    return _merged(_divided(messages, sizes, spans, facts, barred, ends_turn))


def _divided(
    messages: Sequence[Message],
    sizes: Sequence[int],
    spans: Sequence[tuple[int, int]],
    facts: Sequence[RoundFacts],
    barred: Collection[str],
    ends_turn: bool,
) -> Iterator[Segment]:
    now: Segment | None = None
    for (begin, end), fact in zip(spans, facts, strict=True):
        bars = fact.loads or any(m.uuid in barred for m in messages[begin:end])
        if now and (bars or not fact.is_response):
            yield now
            now = None
        if bars:
            continue
        tokens = sum(sizes[begin:end])
        now = now or Segment(begin, begin, 0, 0)
        now = replace(now, end=end, tokens=now.tokens + tokens, rounds=now.rounds + fact.is_response)
        if fact.closes or now.tokens >= MOST_TOKENS:
            yield now
            now = None
    if now:
        yield replace(now, closed=ends_turn)


def _merged(found: Iterator[Segment]) -> list[Segment]:
    out: list[Segment] = []
    for one in found:
        if not one.rounds:  # a prompt whose answer stays
            continue
        if out and one.tokens < LEAST_TOKENS and out[-1].end == one.begin:
            joined = out[-1].tokens + one.tokens
            out[-1] = replace(one, begin=out[-1].begin, tokens=joined, rounds=out[-1].rounds + one.rounds)
        else:
            out.append(one)
    return out
