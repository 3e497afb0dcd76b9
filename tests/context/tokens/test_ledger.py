"""Sizes of contexts: exact by usage, estimated behind it."""

from __future__ import annotations

from statistics import mean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.estimate import Session
from core.context.tokens.estimate import PRIOR, Estimator
from core.context.tokens.ledger import DEFAULT_OVERHEAD_TOKENS, LedgerItem, items_of, measure, measure_like
from core.context.tokens.models import SYNTHETIC, lookup
from core.model import Message, Usage
from core.transcript.outline import CODE, BlockOutline
from tests.shared import REAL

MODEL = lookup("claude-opus-4-5")


def said(chars: int) -> LedgerItem:
    return LedgerItem((BlockOutline("text", chars),))


def result(chars: int) -> LedgerItem:
    return LedgerItem((BlockOutline("tool_result", chars, CODE),))


def response(prompt: int, output: int, chars: int, name: str = "m1", stale: bool = False) -> LedgerItem:
    return LedgerItem((BlockOutline("text", chars),), Usage(5, 0, prompt - 5, output), name, "claude-opus-4-5", stale)


def estimate(*items: LedgerItem) -> int:
    return round(Estimator(MODEL).tokens(outline for item in items for outline in item.outlines))


def test_the_total_is_the_last_usage_and_an_estimate_of_what_follows() -> None:
    tail = [result(8_000), said(100)]
    size = measure([said(400), response(50_000, 300, 1_000), *tail], MODEL)

    assert size.source == "usage"
    assert size.tail_tokens == pytest.approx(estimate(*tail), abs=1)
    assert size.total_tokens == 50_300 + size.tail_tokens
    assert size.usage_tokens == 50_300


def test_without_usage_everything_is_estimated_on_top_of_an_overhead() -> None:
    items = [said(4_000), result(20_000)]
    size = measure(items, MODEL)

    assert (size.source, size.usage_tokens) == ("estimate", 0)
    assert size.total_tokens == DEFAULT_OVERHEAD_TOKENS + sum(size.item_tokens)
    assert measure(items, MODEL, overhead_tokens=0).total_tokens == sum(size.item_tokens)
    assert size.margin_tokens == round(0.15 * size.total_tokens)


def test_an_empty_context_sends_nothing() -> None:
    size = measure([], MODEL)

    assert (size.total_tokens, size.overhead_tokens, size.margin_tokens) == (0, 0, 0)


def test_usage_of_made_up_messages_and_of_zeros_does_not_count() -> None:
    real = response(50_000, 300, 1_000)
    made_up = LedgerItem(said(60).outlines, Usage(9, 0, 9, 9), "m2", SYNTHETIC)
    zeros = LedgerItem(said(60).outlines, Usage(), "m3", "claude-opus-4-5")
    size = measure([said(400), real, made_up, zeros], MODEL)

    assert size.usage_tokens == 50_300
    assert size.tail_tokens == pytest.approx(estimate(made_up, zeros), abs=1)


def test_a_response_of_several_rows_counts_once_and_results_between_them_count() -> None:
    rows = [response(50_000, 7, 400, "m1"), result(9_000), response(50_000, 300, 400, "m1"), result(3_000)]
    size = measure([said(400), *rows], MODEL)

    assert size.usage_tokens == 50_300
    assert size.tail_tokens == pytest.approx(estimate(rows[1], rows[3]), abs=1)
    assert size.item_tokens[1] + size.item_tokens[3] == pytest.approx(300, abs=1)


def test_the_output_count_of_a_first_streamed_event_is_no_size() -> None:
    size = measure([said(400), response(50_000, 1, 8_000)], MODEL)

    assert size.total_tokens == 50_000 + estimate(said(8_000))
    assert size.tail_tokens == 0


def test_a_response_without_content_still_has_its_output() -> None:
    size = measure([said(400), LedgerItem((), Usage(50_000, 0, 0, 70), "m1")], MODEL)

    assert size.item_tokens[1] == 70


def test_messages_between_two_responses_share_the_exact_difference() -> None:
    items = [said(400), response(50_000, 300, 1_100), result(2_000), result(6_000), response(53_500, 50, 150, "m2")]
    size = measure(items, MODEL)

    assert sum(size.item_tokens[1:4]) == 3_500
    assert size.item_tokens[3] == pytest.approx(3 * size.item_tokens[2], rel=0.02)


def test_unseen_content_is_no_size_of_a_message() -> None:
    items = [said(400), response(50_000, 300, 1_100), said(40), response(66_000, 50, 150, "m2")]
    size = measure(items, MODEL)

    assert size.total_tokens == 66_050
    assert size.item_tokens[2] < 100
    assert size.overhead_tokens > 49_000 + 15_000


def test_usage_of_before_a_cut_does_not_count() -> None:
    kept = [said(400), response(160_000, 300, 1_000, "m1"), result(400)]
    stale = [said(400), response(160_000, 300, 1_000, "m1", stale=True), result(400)]
    after = response(30_000, 100, 350, "m2")

    assert measure([*kept, after], MODEL).total_tokens == 30_100
    assert measure(stale, MODEL).source == "estimate"
    assert measure([*stale, after], MODEL).total_tokens == 30_100


def test_a_shrunken_prompt_leaves_no_more_to_the_messages_than_it_holds() -> None:
    size = measure([said(400_000), response(1_200, 20, 60)], MODEL)

    assert size.total_tokens == 1_220
    assert size.overhead_tokens == 0


def test_the_overhead_of_the_first_request_holds_after_the_prompt_fell_a_little() -> None:
    items = [said(400), response(40_100, 300, 1_000, "m1"), result(280_000), response(122_000, 300, 1_000, "m2")]
    size = measure([*items, response(121_500, 100, 350, "m3")], MODEL)

    assert size.total_tokens == 121_600
    assert size.overhead_tokens == pytest.approx(40_000, abs=100)


def test_a_request_of_before_a_fall_that_was_larger_says_nothing_about_the_overhead() -> None:
    size = measure([said(400), response(296_000, 300, 1_000, "m1"), response(66_000, 100, 350, "m2")], MODEL)

    assert size.overhead_tokens == pytest.approx(66_000 - 300 - 110, abs=300)


def test_projected_usage_makes_an_estimate_until_a_request_was_charged() -> None:
    written = msgspec.structs.replace(response(30_000, 300, 1_000), projected=True)
    items = [said(400), written, said(200)]
    size = measure(items, MODEL)

    assert (size.source, size.total_tokens) == ("estimate", 30_300 + estimate(said(200)))
    assert size.overhead_tokens == 30_000 - estimate(said(400))
    assert size.tail_tokens == sum(size.item_tokens)
    assert size.margin_tokens == round(0.15 * size.total_tokens)

    charged = measure([*items, response(33_000, 100, 350, "m2")], MODEL)
    assert (charged.source, charged.total_tokens, charged.tail_tokens) == ("usage", 33_100, 0)
    assert charged.margin_tokens == 331


def test_the_margin_is_the_larger_of_a_share_of_the_tail_and_of_the_whole() -> None:
    small = measure([said(400), response(50_000, 300, 1_000)], MODEL)
    large = measure([said(400), response(50_000, 300, 1_000), result(2_800_000)], MODEL)

    assert small.margin_tokens == 503
    assert large.margin_tokens == round(0.02 * large.tail_tokens)


def grown(rate: float, steps: int) -> list[LedgerItem]:
    """A session in which every token costs `rate` times the prior."""
    items: list[LedgerItem] = [said(400)]
    prompt = 40_000
    for at in range(steps):
        items += [response(prompt, 1, 3_000, f"m{at}"), result(9_000)]
        prompt += round(rate * estimate(*items[-2:]))
    return items


def test_the_tail_is_estimated_at_the_rate_of_the_session() -> None:
    plain, dear = measure(grown(1.0, 30), MODEL), measure(grown(1.4, 30), MODEL)

    assert dear.tail_tokens == pytest.approx(1.4 * plain.tail_tokens, rel=0.05)
    assert dear.calibration.samples == 29


def test_two_contexts_are_compared_by_one_estimator() -> None:
    before = grown(1.4, 30)
    reference = measure(before, MODEL)
    full, half = measure_like(before, MODEL, reference), measure_like(before[:31], MODEL, reference)

    assert full.source == "estimate"
    assert full.total_tokens == pytest.approx(reference.total_tokens, rel=0.02)
    assert half.overhead_tokens == full.overhead_tokens == reference.overhead_tokens
    assert half.item_tokens == full.item_tokens[:31]


def test_messages_become_items_with_their_usage() -> None:
    usage = Usage(100, 0, 0, 10)
    messages = [
        Message("user", "prompt", ({"type": "text", "text": "hello"},)),
        Message("assistant", "response", ({"type": "text", "text": "hi"},), (), "m1", "claude-opus-4-5", usage),
    ]

    assert items_of(messages) == (
        LedgerItem((BlockOutline("text", 5),)),
        LedgerItem((BlockOutline("text", 2),), usage, "m1", "claude-opus-4-5"),
    )


def test_the_usage_of_the_request_that_made_a_summary_does_not_count() -> None:
    summary = Message("user", "summary", ({"type": "text", "text": "hi"},), (), "", "", Usage(100_000, 0, 0, 10))

    assert measure(items_of([summary]), MODEL).source == "estimate"


def test_a_calibration_skips_steps_with_pictures() -> None:
    picture = LedgerItem((BlockOutline("image", media=()),))
    items = [said(40), response(1_000, 50, 200), picture, response(1_200, 50, 200, "m2")]

    assert measure(items, MODEL).calibration.samples == 1


contents = st.builds(
    LedgerItem,
    st.lists(st.builds(BlockOutline, st.sampled_from(["text", "tool_use"]), st.integers(0, 9_000)), max_size=3).map(
        tuple
    ),
    st.none() | st.builds(Usage, st.integers(0, 90_000), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3_000)),
    st.sampled_from(["", "m1", "m2", "m3"]),
    st.sampled_from(["", "claude-opus-4-5", SYNTHETIC]),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(contents, max_size=12))
def test_messages_and_overhead_always_add_up_to_the_total(items: list[LedgerItem]) -> None:
    size = measure(items, MODEL)

    assert size.overhead_tokens + sum(size.item_tokens) == size.total_tokens
    assert len(size.item_tokens) == len(items)
    assert all(tokens >= 0 for tokens in size.item_tokens)
    assert min(size.total_tokens, size.tail_tokens, size.margin_tokens) >= 0
    assert size == measure(items, MODEL)


@given(st.lists(st.tuples(st.integers(1, 9_000), st.integers(1, 1_300)), min_size=2, max_size=8))
def test_spans_between_responses_are_exact(steps: list[tuple[int, int]]) -> None:
    items: list[LedgerItem] = []
    prompt = 20_000
    starts, prompts = [], []
    for at, (chars, growth) in enumerate(steps):
        starts.append(len(items))
        prompts.append(prompt)
        items += [response(prompt, 1, 4_000, f"m{at}"), result(chars)]
        prompt += growth
    size = measure(items, MODEL)

    for a, b in zip(range(len(starts)), range(1, len(starts)), strict=False):
        assert sum(size.item_tokens[starts[a] : starts[b]]) == prompts[b] - prompts[a]


def test_a_session_without_usage_keeps_the_priors() -> None:
    assert measure([said(1)], MODEL).calibration == PRIOR


@pytest.mark.real
def test_real_sessions_are_measured_to_within_the_targets() -> None:
    if not REAL:
        pytest.skip("no real transcripts at hand: set FOLDMARK_SHARED to the folder that holds real/")
    sessions = [Session(path) for path in REAL]

    assert mean(abs(error) for session in sessions for error in session.anchored) < 0.01
    assert mean(abs(e) for session in sessions for e in session.cold(DEFAULT_OVERHEAD_TOKENS, cuts=True)) < 0.15
