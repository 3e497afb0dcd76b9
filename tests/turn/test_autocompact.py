"""When automatic compaction is due: each guard, their order, the breaker, the headroom rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.context.tokens.window import levels
from core.turn.autocompact import (
    AutoState,
    Question,
    is_worth_it,
    leaves_headroom,
    warning,
    why_not,
)
from tests.turn.fake import MODEL

LEVELS = levels(MODEL)
FULL = Question(LEVELS.auto_threshold, LEVELS)


def test_it_is_due_from_the_threshold_on() -> None:
    assert not why_not(FULL)
    assert why_not(replace(FULL, tokens=FULL.tokens - 1))


def test_what_was_snipped_in_front_of_this_request_does_not_count() -> None:
    assert not why_not(replace(FULL, tokens=FULL.tokens + 500, snipped_tokens=500))
    reason = why_not(replace(FULL, tokens=FULL.tokens + 500, snipped_tokens=501))

    assert reason == "there is room below the threshold"


GUARDS = [
    (replace(FULL, compaction=False), "compaction is off"),
    (replace(FULL, automatic=False), "automatic compaction is off"),
    (replace(FULL, collapse_holds=True), "context collapse can still make room"),
    (replace(FULL, reactive_only=True), "it waits until the API refuses a request"),
    (replace(FULL, auto=AutoState(failures=3)), "it failed 3 times in a row"),
    (replace(FULL, auto=AutoState(refills=3)), "the context was full again 3 times, soon after it"),
    (
        replace(FULL, auto=AutoState(paused_at_tokens=FULL.tokens - 19_999)),
        "the last one left too little room, and not enough was added since",
    ),
    (replace(FULL, tokens=0), "there is room below the threshold"),
]


@pytest.mark.parametrize(("question", "reason"), GUARDS, ids=[reason for _, reason in GUARDS])
def test_each_guard_holds_by_itself_and_says_so(question: Question, reason: str) -> None:
    assert why_not(question) == reason


def test_the_first_guard_that_holds_is_the_reason() -> None:
    changes: list[dict[str, Any]] = [
        {"tokens": 0},
        {"auto": AutoState(paused_at_tokens=0)},
        {"auto": AutoState(paused_at_tokens=0, refills=3)},
        {"auto": AutoState(paused_at_tokens=0, refills=3, failures=3)},
        {"reactive_only": True},
        {"collapse_holds": True},
        {"automatic": False},
        {"compaction": False},
    ]
    question, reasons = FULL, []
    for change in changes:
        question = replace(question, **change)
        reasons.append(why_not(question))

    assert len({*reasons}) == len(reasons)
    assert reasons[-1] == "compaction is off"


def test_two_failures_are_not_enough_a_success_and_the_user_begin_anew() -> None:
    failing = AutoState().failed().failed()

    assert not why_not(replace(FULL, auto=failing))
    assert why_not(replace(FULL, auto=failing.failed()))
    assert not why_not(replace(FULL, auto=failing.failed().compacted()))


def test_a_pause_ends_when_a_tenth_of_the_window_was_added() -> None:
    paused = AutoState().paused(FULL.tokens)

    assert why_not(replace(FULL, tokens=FULL.tokens + 19_999, auto=paused))
    assert not why_not(replace(FULL, tokens=FULL.tokens + 20_000, auto=paused))


def after(state: AutoState, requests: int) -> AutoState:
    for _ in range(requests):
        state = state.requested()
    return state


def test_refills_count_in_a_row_and_only_soon_after_a_compaction() -> None:
    assert not AutoState().refills_soon
    assert not after(AutoState(), 3).refills_soon
    once = AutoState().compacted()
    assert after(once, 5).refills_soon
    assert not after(once, 6).refills_soon
    twice = after(once, 5).refilled().compacted()
    assert twice.refills == 1
    assert after(twice, 2).refilled().compacted().refills == 2
    assert after(twice, 6).compacted().refills == 0


@pytest.mark.parametrize(
    ("window", "before", "after_", "worth"),
    [(200_000, 170_000, 150_000, True), (200_000, 170_000, 150_001, False), (40_000, 30_000, 26_000, True),
     (20_000, 15_000, 11_001, False), (20_000, 15_000, 11_000, True)],
)  # fmt: skip
def test_a_compaction_saves_a_tenth_of_the_window_and_four_thousand_tokens(
    window: int, before: int, after_: int, worth: bool
) -> None:
    assert is_worth_it(before, after_, levels(MODEL, window)) is worth


def test_headroom_is_three_tenths_below_the_threshold() -> None:
    most = int(0.7 * LEVELS.auto_threshold)

    assert leaves_headroom(most, LEVELS)
    assert not leaves_headroom(most + 1, LEVELS)


def test_the_warning_names_the_three_largest() -> None:
    parts = [("the result of Read (a.py)", 90_000), ("a prompt", 40_000), ("the summary", 6_000), ("a response", 5_000)]

    said = warning(150_000, LEVELS, parts)

    assert "150k of 167k" in said
    assert "the result of Read (a.py) (90.0k), a prompt (40.0k), the summary (6.0k)" in said
    assert "a response" not in said
