"""What a session would have cost: reads, writes, compactions, edits, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.context.tokens.models import lookup
from core.model import Block, Usage
from core.stages.microcompact import Microcompact, MicrocompactSettings
from core.turn.policies import KeepNewest, policies
from core.turn.replay import Assumptions, History, Outcome, Policy, Sizes, input_price, replayed
from tests.stages.build import MODEL, image, text
from tests.stages.build import History as Built

NOTHING = Policy("none")
LONG = "line of a file\n" * 900
START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def session(turns: int, gap_minutes: float = 1, content: str = LONG) -> History:
    """Files read, so many minutes apart."""
    built = Built().prompt("Go.")
    for n in range(turns):
        built.use(f"c{n}", "Read", content, file_path=f"/{n}.py")
    messages, time = [], START
    for message in built.messages:
        time += timedelta(minutes=gap_minutes if message.kind == "results" else 0)
        messages.append(replace(message, timestamp=time.isoformat()))
    return History(tuple(messages), MODEL, overhead_tokens=10_000)


def contexts(history: History) -> list[int]:
    """The size of each request, without any compaction."""
    sizes = Sizes(history)
    tokens = [round(sizes.of(m.content)) for m in history.messages]
    return [10_000 + sum(tokens[:i]) for i, m in enumerate(history.messages) if m.kind == "response"]


def test_each_request_reads_what_the_one_before_sent_and_writes_the_rest() -> None:
    history = session(5)
    sent = contexts(history)

    result = replayed(history, NOTHING, Assumptions(167_000))

    assert (result.requests, result.compactions, result.edits, result.cold) == (5, 0, 0, 0)
    assert result.usage.cache_read_tokens == sum(sent[:-1])
    assert result.usage.cache_creation_tokens == sent[-1]
    assert result.usage.input_tokens == result.usage.cache_1h_tokens == 0
    assert result.peak_tokens == sent[-1]
    written, read, output = (
        result.usage.cache_creation_tokens,
        result.usage.cache_read_tokens,
        result.usage.output_tokens,
    )
    assert result.usd == pytest.approx((6.25 * written + 0.5 * read + 25 * output) / 1_000_000)


def test_after_a_pause_longer_than_the_cache_lives_everything_is_written_again() -> None:
    history = session(5, gap_minutes=6)

    short = replayed(history, NOTHING, Assumptions(167_000, "5m"))
    long = replayed(history, NOTHING, Assumptions(167_000, "1h"))

    assert (short.cold, long.cold) == (4, 0)
    assert short.usage.cache_read_tokens == 0
    assert short.usage.cache_creation_tokens == sum(contexts(history))
    assert long.usage.cache_1h_tokens == long.usage.cache_creation_tokens == contexts(history)[-1]


def test_over_the_threshold_it_compacts_and_pays_for_summary_and_what_is_read_again() -> None:
    history = session(12)
    limit = contexts(history)[-2] + 1  # the last request is over it

    result = replayed(history, NOTHING, Assumptions(limit, reread_tokens=5_000))

    before = replayed(History(history.messages[:-2], MODEL, overhead_tokens=10_000), NOTHING, Assumptions(limit))
    assert (result.requests, result.compactions) == (12, 1)
    call = contexts(history)[-1] - contexts(history)[-2]
    assert result.usage.cache_creation_tokens == before.usage.cache_creation_tokens + call + 20_000 + 5_000
    assert result.usage.cache_read_tokens == before.usage.cache_read_tokens + contexts(history)[-2] + 10_000
    assert result.usage.output_tokens > before.usage.output_tokens + 4_000


def test_a_large_fixed_part_leaves_room_for_the_summary() -> None:
    history = replace(session(12), overhead_tokens=60_000)

    result = replayed(history, NOTHING, Assumptions(80_000, reread_tokens=0))

    assert result.compactions > 1
    assert result.peak_tokens < 80_000 + 10_000


def test_what_the_server_clears_is_sent_no_more_and_is_written_anew_unless_the_cache_keeps_it() -> None:
    history = session(12)
    stage = Microcompact(MicrocompactSettings(form="pinned"))

    nothing = replayed(history, NOTHING, Assumptions(167_000))
    kept = replayed(history, Policy("kept", (stage,), keeps_cache=True), Assumptions(167_000))
    lost = replayed(history, Policy("lost", (stage,)), Assumptions(167_000))

    assert kept.edits == lost.edits > 0
    assert kept.usage.prompt_tokens == lost.usage.prompt_tokens < nothing.usage.prompt_tokens
    assert kept.usage.cache_creation_tokens == nothing.usage.cache_creation_tokens
    assert lost.usage.cache_creation_tokens > kept.usage.cache_creation_tokens
    assert kept.usd < lost.usd


def test_edits_of_the_content_are_written_anew_from_the_first_on() -> None:
    history = session(12)
    stage = Microcompact(MicrocompactSettings(life="5m"))

    result = replayed(history, Policy("micro", (stage,)), Assumptions(167_000))
    nothing = replayed(history, NOTHING, Assumptions(167_000))

    assert result.edits > 0
    assert result.usage.cache_creation_tokens > nothing.usage.cache_creation_tokens
    assert result.usage.prompt_tokens < nothing.usage.prompt_tokens


def test_keeping_the_newest_clears_above_a_hundred_thousand_tokens_and_enough_at_a_time() -> None:
    history = replace(session(20), overhead_tokens=95_000)

    often, seldom = (
        replayed(history, Policy("keep", (KeepNewest(least),)), Assumptions(400_000)) for least in (0, 20_000)
    )

    assert often.edits > seldom.edits > 0
    assert often.peak_tokens < seldom.peak_tokens < 130_000
    assert replayed(session(20), Policy("keep", (KeepNewest(0),)), Assumptions(400_000)).edits == 0


def test_every_policy_makes_every_request_and_none_is_the_first() -> None:
    history = session(8)

    results = [replayed(history, p, Assumptions(40_000)) for p in policies("5m")]

    assert results[0].policy == "none"
    assert {r.requests for r in results} == {8}
    assert all(r.usd > 0 for r in results)


def test_work_done_again_has_ids_of_its_own() -> None:
    built = Built().prompt("Go.", image()).use("c1", "Read", LONG, file_path="/a").messages
    twice = History(tuple(built), MODEL).repeated(2)

    assert len(twice.messages) == 2 * len(built)
    assert len({m.uuid for m in twice.messages}) == len(twice.messages)
    assert twice.messages[4].content[0]["id"] == twice.messages[5].content[0]["tool_use_id"] == "c1+1"
    assert twice.messages[4].response_id != twice.messages[1].response_id
    assert twice.messages[3].response_id == ""
    assert replayed(twice, NOTHING, Assumptions(167_000)).requests == 2
    assert History(tuple(built), MODEL).repeated(1).messages == tuple(built)


def test_messages_without_a_time_never_find_a_cold_cache() -> None:
    history = session(3, gap_minutes=90)
    timeless = replace(history, messages=tuple(replace(m, timestamp="") for m in history.messages))

    assert replayed(timeless, NOTHING, Assumptions(167_000)).cold == 0


def test_a_history_that_begins_with_a_response_is_replayed_too() -> None:
    history = session(3)

    assert replayed(replace(history, messages=history.messages[1:]), NOTHING, Assumptions(167_000)).requests == 3


@pytest.mark.parametrize(("model", "price"), [("claude-opus-4-6", 5), ("nobody-knows", 1), ("<synthetic>", 1)])
def test_without_known_prices_the_usual_ratios_count(model: str, price: float) -> None:
    outcome = Outcome("x")

    outcome.add(Usage(1_000_000), lookup(model))

    assert (outcome.usd, input_price(lookup(model))) == (price, price)


class _Counting(Sizes):
    """Counts what is estimated."""

    count = 0

    def _estimated(self, block: Block) -> float:
        self.count += 1
        return super()._estimated(block)


def test_sizes_are_estimated_once() -> None:
    history = session(12)
    sizes = _Counting(history)
    assert sizes.count == sum(len(m.content) for m in history.messages)

    for policy in (*policies("5m")[:3], policies("5m")[6]):
        replayed(history, policy, Assumptions(167_000), sizes)

    placeholders = sizes.count - sum(len(m.content) for m in history.messages)
    assert 0 < placeholders <= 12
    assert sizes.of([text("what a stage wrote")]) > 0


def test_work_done_again_begins_a_day_later_and_finds_no_cache() -> None:
    history = session(4, gap_minutes=600)  # longer than a day
    thrice = history.repeated(3)

    times = [m.timestamp for m in thrice.messages]
    assert times == sorted(times)
    assert len({*times}) == 3 * len({m.timestamp for m in history.messages})
    for life in ("5m", "1h"):
        assert replayed(session(4).repeated(3), NOTHING, Assumptions(400_000, life)).cold == 2


@pytest.mark.parametrize("timestamp", ["", "soon", "9999-12-31T23:59:59Z"])
def test_work_done_again_at_no_time_or_at_the_end_of_all_times_stays_there(timestamp: str) -> None:
    messages = tuple(replace(m, timestamp=timestamp) for m in session(2).messages)

    twice = History(messages, MODEL).repeated(2)

    assert {m.timestamp for m in twice.messages} == {timestamp}
    assert replayed(twice, NOTHING, Assumptions(400_000)).cold == 0
