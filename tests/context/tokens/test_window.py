"""Levels of a context window, and what state a context is in."""

from __future__ import annotations

import pytest

from core.context.tokens.estimate import PRIOR
from core.context.tokens.ledger import ContextSize, Source
from core.context.tokens.models import lookup
from core.context.tokens.window import levels


def size(total: int, tail: int = 0, source: Source = "usage") -> ContextSize:
    return ContextSize(total, source, tail, 0, total, (), PRIOR)


@pytest.mark.parametrize(
    ("model", "auto", "expected"),
    [
        pytest.param("claude-opus-4-5", True, (180_000, 167_000, 147_000, 177_000), id="200 K"),
        pytest.param("claude-opus-5-5", True, (980_000, 967_000, 947_000, 977_000), id="1 M"),
        pytest.param("claude-opus-4-5", False, (180_000, 167_000, 160_000, 177_000), id="automatic off"),
        pytest.param("claude-3-5-haiku", True, (191_808, 178_808, 158_808, 188_808), id="short answers"),
    ],
)
def test_levels_follow_from_window_and_output_limit(model: str, auto: bool, expected: tuple[int, ...]) -> None:
    found = levels(lookup(model), auto_compact=auto)

    assert (found.effective, found.auto_threshold, found.warning, found.blocking) == expected
    assert found.error == found.warning


def test_a_setting_overrides_the_window() -> None:
    assert levels(lookup("claude-opus-5-5"), window_tokens=200_000).auto_threshold == 167_000


def test_a_window_too_small_for_an_answer_has_no_room_at_all() -> None:
    found = levels(lookup("claude-opus-5-5"), window_tokens=10_000)

    assert (found.effective, found.auto_threshold, found.warning, found.blocking) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("tokens", "state", "manual_state"),
    [
        (0, "ok", "ok"),
        (146_999, "ok", "ok"),
        (147_000, "warning", "ok"),
        (160_000, "warning", "warning"),
        (167_000, "compact", "warning"),
        (177_000, "blocked", "blocked"),
    ],
)
def test_the_state_changes_at_the_levels(tokens: int, state: str, manual_state: str) -> None:
    model = lookup("claude-opus-4-5")

    assert levels(model).state(size(tokens)) == state
    assert levels(model, auto_compact=False).state(size(tokens)) == manual_state


def test_a_warning_goes_by_usage_and_the_threshold_by_usage_and_tail() -> None:
    found = levels(lookup("claude-opus-4-5"))

    assert found.state(size(150_000, tail=10_000)) == "ok"
    assert found.state(size(167_000, tail=30_000)) == "compact"


def test_an_estimated_tail_counts_a_fifth_more_where_a_request_would_be_refused() -> None:
    found = levels(lookup("claude-opus-4-5"))

    assert found.state(size(176_000, tail=6_000)) == "blocked"
    assert found.state(size(176_000, tail=4_000)) == "compact"
    assert found.state(size(176_000, tail=140_000, source="estimate")) == "compact"


def test_a_context_that_is_all_estimate_is_shown_by_its_estimate() -> None:
    assert levels(lookup("claude-opus-4-5")).state(size(150_000, tail=110_000, source="estimate")) == "warning"
