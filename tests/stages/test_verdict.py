"""What an edit is worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.context.tokens.cost import CacheLife
from core.context.tokens.models import lookup
from core.model import Message, Usage
from core.stages.verdict import Outlook, outlook_of, rates, time_of, verdict, when_it_pays

OPUS = lookup("claude-opus-4-6")
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("model", "life", "rate"),
    [
        ("claude-opus-4-6", "5m", (0.1, 1.25)),
        ("claude-opus-4-6", "1h", (0.1, 2.0)),
        ("claude-opus-5-5", "5m", (0.05, 1.25)),
        ("claude-fable-5-2", "1h", (0.025, 2.0)),
        ("claude-haiku-5-5", "5m", (0.1, 1.25)),
        ("nobody-knows", "5m", (0.1, 1.25)),
        ("nobody-knows", "1h", (0.1, 2.0)),
        ("<synthetic>", "5m", (0.1, 1.25)),
    ],
)
def test_the_prices_of_the_cache_are_those_of_the_model(model: str, life: CacheLife, rate: tuple[float, float]) -> None:
    assert rates(lookup(model), life) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("rest", "deleted", "model", "life", "after"),
    [
        (3_000, 20_000, "claude-opus-4-6", "5m", 1.725),
        (80_000, 30_000, "claude-opus-4-6", "5m", 30.67),
        (80_000, 30_000, "claude-opus-4-6", "1h", 50.67),
        (3_000, 20_000, "claude-opus-5-5", "5m", 3.6),
        (3_000, 20_000, "claude-fable-5-2", "5m", 7.35),
    ],
)
def test_it_breaks_even_when_the_reads_saved_have_paid_for_what_is_written_anew(
    rest: int, deleted: int, model: str, life: CacheLife, after: float
) -> None:
    found = verdict(lookup(model), deleted, rest, Outlook(100), life=life)

    assert found.pays_after == pytest.approx(after, abs=0.01)
    assert found.pays
    assert f"after {after:.0f} requests" in str(found)


def test_caution_is_asked_for_before_it_pays() -> None:
    assert not verdict(OPUS, 30_000, 80_000, Outlook(39)).pays
    assert verdict(OPUS, 30_000, 80_000, Outlook(40)).pays


def test_what_deletes_nothing_never_pays() -> None:
    found = verdict(OPUS, 0, 1_000, Outlook(100))

    assert (found.pays, found.pays_after) == (False, None)
    assert str(found) == "0 tokens less, 1.0k to cache anew: pays never"


def test_a_cold_cache_is_written_anyway_so_it_pays_at_once() -> None:
    found = verdict(OPUS, 2_000, 50_000, Outlook(1), cold=True)

    assert found.saves == pytest.approx(2_500)
    assert (found.costs, found.pays_after) == (0.0, 0.0)
    assert str(found) == "2.0k tokens less, 50.0k to cache anew: pays at once (the cache is cold)"


def test_nothing_pays_after_no_requests() -> None:
    assert [*map(when_it_pays, (None, 0.0, 0.2, 1.6))] == ["never", "at once", "after 1 request", "after 2 requests"]


def test_an_edit_in_the_servers_own_cache_rewrites_nothing() -> None:
    assert verdict(OPUS, 2_000, 50_000, Outlook(1), rewritten_share=0.0).costs == 0.0


def test_pauses_to_come_make_what_is_gone_worth_more() -> None:
    assert verdict(OPUS, 1_000, 0, Outlook(10, cold_share=0.1)).saves == pytest.approx(10 * 1_000 * (0.1 + 0.1 * 1.15))


def test_near_the_threshold_putting_off_the_compaction_costs_more_than_it_saves() -> None:
    ahead = Outlook(5, 800, threshold_tokens=167_000, overhead_tokens=20_000)

    assert verdict(OPUS, 10_000, 0, ahead).saves < 0
    assert verdict(OPUS, 10_000, 0, replace(ahead, requests=100)).saves == pytest.approx(100_000)
    assert verdict(OPUS, 10_000, 0, replace(ahead, threshold_tokens=40_000)).saves == pytest.approx(5_000)


def test_where_a_compaction_is_due_every_few_requests_putting_it_off_pays() -> None:
    ahead = Outlook(5, 12_000, threshold_tokens=167_000, overhead_tokens=20_000)

    assert verdict(OPUS, 10_000, 0, ahead).saves > 5 * 1_000


def responses(*prompts: int, minutes: float = 1) -> list[Message]:
    """A prompt and a response for each size of the prompt in tokens; so many minutes between them."""
    out = []
    for n, size in enumerate(prompts):
        stamp = (NOW + timedelta(minutes=minutes * n)).isoformat()
        out.append(Message("user", "prompt", (), (f"u{n}",), timestamp=stamp))
        out.append(Message("assistant", "response", (), (f"a{n}",), usage=Usage(size), timestamp=stamp))
    return out


def test_the_requests_to_come_fit_into_the_room_at_the_growth_of_the_newest() -> None:
    sizes = [10_000, 90_000, *range(50_000, 81_000, 1_000)]  # what shrank, and what grew long ago, do not count

    ahead = outlook_of(responses(*sizes), 100_000, 167_000, 20_000, "5m")

    assert ahead == Outlook(67, 1_000.0, 0.0, 167_000, 20_000)


def test_a_session_that_was_shortened_grows_as_it_did() -> None:
    grown = responses(*range(50_000, 60_000, 1_000))
    short = [replace(m, usage=Usage(9_000), charged=m.usage) if m.usage else m for m in grown]

    assert outlook_of(short, 0, 0, 0, "5m") == outlook_of(grown, 0, 0, 0, "5m")


def test_nobody_knows_more_than_a_hundred_requests_and_there_is_always_one() -> None:
    assert outlook_of([], 0, 1_000_000, 0, "5m").requests == 100
    assert outlook_of([], 170_000, 167_000, 0, "5m").requests == 1
    assert outlook_of([], 0, 0, 0, "5m") == Outlook(1)


def test_the_share_of_requests_that_come_late_is_that_of_the_newest() -> None:
    late = responses(*[1_000] * 21, minutes=6)

    assert outlook_of(late, 0, 0, 0, "5m").cold_share == pytest.approx(20 / 40)
    assert outlook_of(late, 0, 0, 0, "1h").cold_share == 0.0
    assert outlook_of([replace(m, timestamp="") for m in late], 0, 0, 0, "5m").cold_share == 0.0


@pytest.mark.parametrize("stamp", ["", "yesterday"])
def test_a_time_that_is_none_is_not_known(stamp: str) -> None:
    assert time_of(Message("user", "prompt", (), timestamp=stamp)) is None
