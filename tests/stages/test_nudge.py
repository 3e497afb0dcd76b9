"""When a snip is proposed, and when it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.context.decisions import Decision, Nudged, Snipped, fold
from core.context.short_ids import ShortIds
from core.model import Message
from core.stages.base import Scene, applied
from core.stages.nudge import Nudge, nudge
from core.stages.snip import Snip
from tests.stages.build import History

BIG = "some words of a file\n" * 700
"""About 5,000 tokens."""
WINDOW = 167_000
OVERHEAD = 40_000


def grown(history: History, rounds: int, mark: str) -> History:
    """Rounds that are superseded by what comes behind them."""
    for n in range(rounds):
        history.use(f"{mark}{n}", "Read", BIG, file_path=f"/srv/{mark}{n}.py")
    for n in range(rounds):
        history.use(f"{mark}w{n}", "Write", "ok", file_path=f"/srv/{mark}{n}.py", content="x")
    return history.answer("All of it is written.")


def scene(history: History, *decisions: Decision, **more: int) -> Scene:
    fields = {"auto_threshold_tokens": WINDOW, "overhead_tokens": OVERHEAD, **more}
    return history.scene(state=fold(decisions), **fields)


def full() -> History:
    return grown(History().prompt("Go."), 8, "a").prompt("Go on.").answer("Yes.").prompt("And on.")


def shown(found: Scene) -> Nudge:
    proposal = nudge(Snip(), found)
    assert proposal is not None
    return proposal


def at(history: History) -> Nudged:
    """A nudge that was shown behind what there is now."""
    return Nudged(1, 1, history.messages[-1].uuid)


def test_the_first_comes_at_two_fifths_of_the_window_and_names_ids_tokens_and_reasons() -> None:
    now = scene(full())
    found = shown(now)

    (decision,) = found.plan.decisions
    assert decision == Nudged(now.total_tokens, 18, now.messages[-1].uuid)
    (proposal,) = found.proposals
    ids = ShortIds.of(now.messages)
    line = f"- {ids.short(proposal.from_id)} to {ids.short(proposal.to_id)}: {proposal.tokens:,} tokens, "
    assert line in found.text
    assert "(superseded)" in found.text
    assert ids.find(ids.short(proposal.from_id)) == proposal.from_id
    assert nudge(Snip(), scene(full(), overhead_tokens=0)) is None


def test_showing_it_changes_nothing_of_the_view() -> None:
    now = scene(full())

    assert applied(now, shown(now).plan).view() == now.view()


def test_it_waits_for_the_end_of_a_turn_or_of_a_task() -> None:
    history = full().use("x", "Bash", "running", command="make")
    assert nudge(Snip(), scene(history)) is None

    done = {"content": "One", "status": "completed"}
    assert shown(scene(history.use("y", "TodoWrite", "ok", todos=[done]))).proposals
    assert shown(scene(full().answer("Done."))).proposals
    assert nudge(Snip(), scene(History())) is None


def test_the_next_comes_after_growth_rest_and_a_new_turn() -> None:
    history = full()
    nudged = at(history)
    assert nudge(Snip(), scene(history, nudged)) is None

    history = grown(history, 5, "b").prompt("Next.").answer("Yes.").prompt("Next.")
    assert shown(scene(history, nudged)).proposals

    assert nudge(Snip(), scene(grown(full(), 5, "b"), nudged)) is None, "no new turn"
    few = full()
    assert nudge(Snip(), scene(few.answer(BIG * 4).prompt("Next."), at(full()))) is None, "too few responses"
    small = full()
    for _ in range(9):
        small.answer("On.")
    assert nudge(Snip(), scene(small.prompt("Next."), at(full()))) is None, "too little growth"


@pytest.mark.parametrize(("ignored", "rounds"), [(1, 4), (2, 7), (4, 13), (9, 13)])
def test_ignored_ones_double_the_step_twice_at_most(ignored: int, rounds: int) -> None:
    """A round brings 5,000 tokens: 15,000 ask for four, 30,000 for seven, 60,000 for thirteen."""

    def after(count: int) -> Scene:
        history = full()
        nudges = [replaced_at(history, n) for n in range(ignored)]
        return scene(grown(history, count, "b").prompt("Next."), *nudges, auto_threshold_tokens=267_000)

    assert shown(after(rounds)).proposals
    assert nudge(Snip(), after((rounds + 1) // 2 - 1)) is None


def replaced_at(history: History, back: int) -> Nudged:
    """A nudge that was shown behind one of the newest messages."""
    return Nudged(1, 1, history.messages[-1 - back].uuid)


def test_a_snip_starts_the_count_anew_and_ends_a_row_of_ignored_ones() -> None:
    history = full()
    nudges = [replaced_at(history, n) for n in range(1, 5)]
    snip = Snipped("1" * 36, ("u2", "u3"), "[2 messages]", after=history.messages[-1].uuid)
    grown(history, 5, "b").prompt("Next.")

    assert nudge(Snip(), scene(history, *nudges, auto_threshold_tokens=267_000)) is None
    assert shown(scene(history, *nudges, snip, auto_threshold_tokens=267_000)).proposals
    assert nudge(Snip(), scene(full(), snip)) is None


def test_a_compaction_starts_with_the_first_again() -> None:
    history = full()
    summary = Message("user", "summary", ({"type": "text", "text": "So far."},), ("s",))
    history.messages.insert(0, summary)

    assert shown(scene(history, Nudged(1, 1, "of before"))).proposals
    assert nudge(Snip(), scene(history, Nudged(1, 1, "of before"), overhead_tokens=0)) is None


@pytest.mark.parametrize(
    "poorer",
    [
        lambda s: replace(s, auto_threshold_tokens=50_000),
        lambda s: replace(s, messages=tuple(m for m in s.messages if "b" not in m.uuid)[-6:], overhead_tokens=90_000),
    ],
)
def test_it_is_silent_when_too_little_would_pay(poorer: Callable[[Scene], Scene]) -> None:
    assert nudge(Snip(), poorer(scene(full()))) is None
