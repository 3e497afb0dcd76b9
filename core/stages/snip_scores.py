"""Which parts of a history are worth least: features of each round, their value, and the ranges that may go.

    value = tokens x (.40 superseded + .25 dead + .20 done + .15 age) x (1 - .8 cited)

superseded: the share of its tokens in results that a later call shows again, or made untrue.  dead: it belongs to an
attempt that was given up.  done: nothing of it is named after the commit or the completed task that it led to.
age: in responses, full after 24 (three quarters of all repeated reads come within that).  cited: how many later rounds
name something that came up here first, full at four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.context.rounds import cut_points
from core.model import Message
from core.stages.base import Scene
from core.stages.round_facts import RoundFacts, facts_of
from core.stages.worth import effective_tokens

SUPERSEDED, DEAD, DONE, AGE, CITED = 0.40, 0.25, 0.20, 0.15, 0.8
FULL_AGE, FULL_CITES = 24, 4
MIN_RATIO = 0.35
"""Value for each token from which on a round may go."""
GAP_TOKENS = 500
"""One round of at most so many tokens may lie between two that may go."""
MIN_TOKENS, MIN_SHARE, MAX_WINDOW_SHARE = 2_000, 0.60, 0.25
"""A range has at least so many tokens, this share of them in rounds that may go, and at most this of the window."""
_WORD_AT = 0.15
"""A feature that adds at least this much to the ratio of a range is named as a reason."""


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for and against taking out one round, each 0 to 1."""

    superseded: float = 0.0
    dead: float = 0.0
    done: float = 0.0
    age: float = 0.0
    cited: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """What speaks for taking it out, by the word for it."""
        return {
            "superseded": SUPERSEDED * self.superseded,
            "dead end": DEAD * self.dead,
            "done": DONE * self.done,
            "old": AGE * self.age,
        }

    @property
    def ratio(self) -> float:
        """Value for each token."""
        return sum(self.parts.values()) * (1 - CITED * self.cited)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A range of messages, from `begin` up to `end`, with the tokens of its rounds and what speaks for it."""

    begin: int
    end: int
    tokens: int
    value: float
    reasons: tuple[str, ...]


def candidates(
    scene: Scene, messages: Sequence[Message], sizes: Sequence[int], protected: int, kept: Collection[str]
) -> list[Candidate]:
    """The ranges in front of `protected` that may go, in order; `kept` are ids of messages that may not."""
    rounds = facts_of(scene, messages, sizes, [*pairwise(cut_points(messages))])
    found = features(rounds)
    ranges = _ranges(rounds, found, MAX_WINDOW_SHARE * effective_tokens(scene), protected, kept, messages)
    return [_candidate(rounds, found, picked) for picked in ranges if _is_enough(rounds, found, picked)]


def features(rounds: Sequence[RoundFacts]) -> list[Features]:
    """The features of each round; rounds without a response have none."""
    responses = sum(r.is_response for r in rounds)
    cites, last_cites = _cites(rounds)
    closings = [i for i, r in enumerate(rounds) if r.closes]
    out: list[Features] = []
    seen = 0
    for at, one in enumerate(rounds):
        if not one.is_response:
            out.append(Features())
            continue
        seen += 1
        closing = next((c for c in closings if c >= at), None)
        out.append(
            Features(
                one.superseded_tokens / max(1, one.tokens),
                float(one.dead),
                float(closing is not None and last_cites[at] <= closing),
                min(1.0, (responses - seen) / FULL_AGE),
                min(FULL_CITES, cites[at]) / FULL_CITES,
            )
        )
    return out


def _cites(rounds: Sequence[RoundFacts]) -> tuple[list[int], list[int]]:
    """For each round, how many later ones name what came up in it first, and the last that names that or its files."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    cites = [0] * len(rounds)
    for at, one in enumerate(rounds):
        for home in sorted({first[n] for n in one.names if n in first}):
            cites[home] += 1
        for name in one.names:
            first.setdefault(name, at)
            last[name] = at
    lasts = [
        max([at, *(last[n] for n in one.names if first[n] == at), *(last.get(p, at) for p in one.paths)])
        for at, one in enumerate(rounds)
    ]
    return cites, lasts


def _ranges(
    rounds: Sequence[RoundFacts],
    found: Sequence[Features],
    most_tokens: float,
    protected: int,
    kept: Collection[str],
    messages: Sequence[Message],
) -> list[list[int]]:
    """Runs of rounds that may go, with at most one small other round in a gap; prompts between them stay anyway."""
    ranges: list[list[int]] = [[]]
    gap: int | None = None
    for at, one in enumerate(rounds):
        if not one.is_response:
            continue
        barred = (
            one.end > protected
            or one.is_open
            or one.loads
            or any(messages[i].uuid in kept for i in range(one.begin, one.end))
        )
        good = not barred and found[at].ratio >= MIN_RATIO
        run = ranges[-1]
        if good and run and sum(rounds[i].tokens for i in (*run, at)) <= most_tokens:
            run.extend([at] if gap is None else [gap, at])
            gap = None
        elif good:
            ranges.append([at])
            gap = None
        elif run and not barred and gap is None and one.tokens <= GAP_TOKENS:
            gap = at
        elif run:
            ranges.append([])
            gap = None
    return [run for run in ranges if run]


def _is_enough(rounds: Sequence[RoundFacts], found: Sequence[Features], picked: Sequence[int]) -> bool:
    tokens = sum(rounds[i].tokens for i in picked)
    good = sum(rounds[i].tokens for i in picked if found[i].ratio >= MIN_RATIO)
    return tokens >= MIN_TOKENS and good >= MIN_SHARE * tokens


def _candidate(rounds: Sequence[RoundFacts], found: Sequence[Features], picked: Sequence[int]) -> Candidate:
    tokens = sum(rounds[i].tokens for i in picked)
    value = sum(rounds[i].tokens * found[i].ratio for i in picked)
    parts: Counter[str] = Counter()
    for i in picked:
        parts.update({word: rounds[i].tokens * gain for word, gain in found[i].parts.items()})
    ranked = sorted(parts, key=lambda word: -parts[word])
    reasons = tuple(word for word in ranked if parts[word] >= _WORD_AT * tokens) or (ranked[0],)
    return Candidate(rounds[picked[0]].begin, rounds[picked[-1]].end, tokens, value, reasons)
