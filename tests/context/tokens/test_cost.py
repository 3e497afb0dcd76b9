"""What requests cost."""

from __future__ import annotations

import pytest

from core.context.tokens.cost import next_request_cost, request_cost
from core.context.tokens.models import SYNTHETIC, lookup
from core.model import Usage

OPUS = lookup("claude-opus-4-5")
MIXED = Usage(1_000, 20_000, 100_000, 2_000, cache_1h_tokens=5_000)
MIXED_DOLLARS = (1_000 * 5 + 15_000 * 6.25 + 5_000 * 10 + 100_000 * 0.5 + 2_000 * 25) / 1e6


def test_every_class_of_tokens_has_its_price() -> None:
    assert request_cost(MIXED, OPUS) == pytest.approx(MIXED_DOLLARS)


def test_hour_long_writes_are_no_more_than_all_writes() -> None:
    assert request_cost(Usage(0, 1_000_000, 0, 0, 2_000_000), OPUS) == pytest.approx(10)


def test_the_tier_goes_by_the_whole_prompt() -> None:
    haiku = lookup("claude-haiku-5-5")

    assert request_cost(Usage(cache_read_tokens=100_000), haiku) == pytest.approx(0.001)
    assert request_cost(Usage(1, 0, 100_000, 0), haiku) == pytest.approx(100_000 * 0.05e-6 + 0.5e-6)


def test_what_was_never_sent_is_free_and_unknown_prices_are_none() -> None:
    assert request_cost(MIXED, lookup(SYNTHETIC)) == 0
    assert request_cost(MIXED, lookup("gpt-9")) is None
    assert next_request_cost(1000, lookup("gpt-9"), warm=True) is None


def test_the_next_request_reads_a_warm_context_and_writes_a_cold_one() -> None:
    assert next_request_cost(100_000, OPUS, warm=True) == pytest.approx(100_000 * 0.5 / 1e6)
    assert next_request_cost(100_000, OPUS, warm=False) == pytest.approx(100_000 * 6.25 / 1e6)


def test_a_context_too_short_for_the_cache_is_plain_input() -> None:
    assert next_request_cost(4_000, OPUS, warm=True) == pytest.approx(4_000 * 5e-6)
