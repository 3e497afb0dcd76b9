"""Tokens of blocks without the tokenizer: priors by kind and density, calibrated on what a session was charged.

The priors are fitted (weighted least squares, outliers damped) on 1,500 steps between two requests of eight real
agent sessions, whose usage figures say to the token what each step added.  Their error is 5 % of a step in the median
and 10 % in sum, also on sessions left out of the fit; characters / 4 is some 30 % too low on such text.  For the new
tokenizer they rest on one session of 300 steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import TypeAlias, get_args

from core.context.tokens.models import ImageRule, Model, Tokenizer
from core.transcript.media import Media
from core.transcript.outline import DENSITIES, BlockKind, BlockOutline

CHARS_PER_TOKEN: dict[Tokenizer, dict[BlockKind, tuple[float, float, float]]] = {
    "old": {
        "text": (4.2, 3.55, 3.1),
        "thinking": (3.85, 3.85, 3.85),
        "tool_use": (3.45, 3.2, 2.25),
        "tool_result": (3.0, 2.8, 2.45),
    },
    "new": {
        "text": (2.8, 2.3, 2.0),
        "thinking": (2.75, 2.75, 2.75),
        "tool_use": (2.85, 2.3, 2.05),
        "tool_result": (2.7, 2.3, 1.95),
    },
}
"""For prose, code and dense content, in this order; measured.  Other kinds count as tool results."""

BLOCK_TOKENS: dict[BlockKind, int] = {"tool_use": 75, "tool_result": 10, "text": 14}
"""What the frame of a block costs (measured 80 to 90 for a call with its result); other kinds: nothing."""

WIDE_TOKENS_PER_BYTE = 0.4
"""On top of the characters (measured 0.4 to 0.55): 1.1 tokens for a CJK character, 1.5 for an emoji, 0.7 for an é."""

IMAGE_PATCH_PIXELS = 28
IMAGE_LIMITS: dict[ImageRule, tuple[int, int]] = {"standard": (1568, 1568), "high": (2576, 4784)}
"""Longest side in pixels and most tokens; a picture is shrunk to both before it is counted."""
UNKNOWN_IMAGE_TOKENS = 1500
"""A screenshot at the standard limit; 48 measured steps with a picture grew by 1,183 tokens in the median."""
PDF_PAGE_TOKENS = 2300
"""Text and picture of a page: three pages are some 7,000 tokens."""

GROUPS = ("thinking", "text", "tool_use", "result_text", "result_code", "result_dense", "wide")
"""What is calibrated on its own: a factor each on the priors."""
Features: TypeAlias = "tuple[float, ...]"
"""Tokens by the priors, one figure for each of `GROUPS`."""

_KINDS: tuple[BlockKind, ...] = get_args(BlockKind)
_WIDE, _RESULTS = GROUPS.index("wide"), GROUPS.index("result_text")


@dataclass(frozen=True, slots=True)
class Calibration:
    """How much dearer than the priors each group proved in a session; `PRIOR` where nothing is known."""

    factors: tuple[float, ...] = (1.0,) * len(GROUPS)
    samples: int = 0
    """Steps that it was learned from."""


PRIOR = Calibration()


class Estimator:
    """Tokens of outlines for one model, by priors and a calibration."""

    def __init__(self, model: Model, calibration: Calibration = PRIOR) -> None:
        self.model = model
        self.calibration = calibration
        self._costs = {(kind, density): self._cost(kind, density) for kind in _KINDS for density in DENSITIES}
        self._wide = WIDE_TOKENS_PER_BYTE * calibration.factors[_WIDE]

    def _cost(self, kind: BlockKind, density: float) -> tuple[float, float]:
        """Tokens of a block, and of each of its characters."""
        rates = CHARS_PER_TOKEN[self.model.tokenizer]
        of_kind = rates.get(kind, rates["tool_result"])
        block = char = 0.0
        for level, share in _levels(density):
            factor = share * self.calibration.factors[_group(kind, level)]
            block += BLOCK_TOKENS.get(kind, 0) * factor
            char += factor / of_kind[level]
        return block, char

    def tokens(self, outlines: Iterable[BlockOutline]) -> float:
        """The estimated tokens of blocks, pictures and documents included."""
        total = 0.0
        for outline in outlines:
            block, char = self._costs[outline.kind, outline.density]
            total += block + outline.chars * char
            if outline.wide:
                total += outline.wide * self._wide
            for media in outline.media:
                total += media_tokens(media, self.model.image)
        return total

    def features(self, outlines: Iterable[BlockOutline]) -> Features:
        """The tokens of blocks by group, pictures and documents left out: what a calibration learns from."""
        parts = [0.0] * len(GROUPS)
        for outline in outlines:
            for level, share in _levels(outline.density):
                block, char = self._costs[outline.kind, level]
                parts[_group(outline.kind, level)] += share * (block + outline.chars * char)
            parts[_WIDE] += outline.wide * self._wide
        return tuple(parts)


def _levels(density: float) -> tuple[tuple[int, float], ...]:
    """Prose (0), code (1) or dense content (2): the one or two that a density lies between, each with its share."""
    lower, share = int(density), density % 1
    return ((lower, 1 - share), (lower + 1, share)) if share else ((lower, 1.0),)


def _group(kind: BlockKind, level: int) -> int:
    return GROUPS.index(kind) if kind in GROUPS else _RESULTS + level


def media_tokens(media: Media, rule: ImageRule) -> int:
    """The tokens of one picture or document."""
    if media.pages:
        return media.pages * PDF_PAGE_TOKENS
    if not media.width or not media.height:
        return UNKNOWN_IMAGE_TOKENS
    side, most = IMAGE_LIMITS[rule]
    scale = min(1.0, side / max(media.width, media.height))
    # Shrinking by the root of the excess can leave a part of a patch on each side: then a little more.
    while (tokens := _patches(media.width * scale) * _patches(media.height * scale)) > most:
        scale *= min(math.sqrt(most / tokens), 0.999)
    return tokens


def _patches(pixels: float) -> int:
    return max(1, math.ceil(pixels / IMAGE_PATCH_PIXELS))


@dataclass(frozen=True, slots=True)
class Sample:
    """One step between two requests: what it holds by the priors, and the tokens that it added."""

    features: Features
    tokens: int


PRIOR_STRENGTH = 3_000
"""Weight of the priors, as tokens seen in each group.  On real sessions the fit then costs half a point of accuracy
where the priors are right (10.5 instead of 10.0 % per step) and halves the error where they are those of the other
tokenizer (12 instead of 23 %)."""
MIN_FACTOR, MAX_FACTOR = 0.4, 2.2
"""Bounds of a factor: beyond them the transcript does not show what was sent."""


def calibrate(samples: Sequence[Sample]) -> Calibration:
    """The factors that explain a session's own figures best: ridge regression towards the priors, in two passes.

    Errors weigh by the size of their step.  Steps far off the estimate hold what the transcript does not show
    (injected reminders, thinking that the server dropped) and are left out: first by the priors, then by the fit.
    """
    kept = [s for s in samples if _plausible(s, PRIOR.factors)]
    factors = _fit(kept)
    kept = [s for s in samples if _plausible(s, factors)]
    return Calibration(_fit(kept), len(kept))


def most_plausible(expected_tokens: float) -> float:
    """The most that a step may have added if it holds what the transcript shows, and nothing beside it."""
    return 2.5 * expected_tokens + 400


def _plausible(sample: Sample, factors: Sequence[float]) -> bool:
    expected: float = sum(map(mul, sample.features, factors))
    return max(0.4 * expected - 200, 0) < sample.tokens <= most_plausible(expected)


def _fit(samples: Sequence[Sample]) -> tuple[float, ...]:
    size = len(GROUPS)
    matrix = [[PRIOR_STRENGTH if row == column else 0.0 for column in range(size)] for row in range(size)]
    target = [0.0] * size
    for sample in samples:
        weight = 1 / (sample.tokens + 200)
        rest = (sample.tokens - sum(sample.features)) * weight
        for row, left in enumerate(sample.features):
            if left:
                target[row] += left * rest
                for column, right in enumerate(sample.features):
                    matrix[row][column] += left * right * weight
    return tuple(min(max(1 + change, MIN_FACTOR), MAX_FACTOR) for change in _solve(matrix, target))


def _solve(matrix: list[list[float]], target: list[float]) -> list[float]:
    """Gaussian elimination; the matrix is symmetric and positive definite, so no pivot is zero."""
    size = len(target)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            ratio = matrix[row][pivot] / matrix[pivot][pivot]
            for column in range(pivot, size):
                matrix[row][column] -= ratio * matrix[pivot][column]
            target[row] -= ratio * target[pivot]
    solution = [0.0] * size
    for row in reversed(range(size)):
        known = sum(matrix[row][column] * solution[column] for column in range(row + 1, size))
        solution[row] = (target[row] - known) / matrix[row][row]
    return solution
