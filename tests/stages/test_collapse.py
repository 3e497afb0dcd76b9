"""Context collapse: where spans end, what is staged, when it is committed, how notes merge, and the way back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.context.decisions import Collapsed, Committed, Decision, Snipped, State, Withdrawn, fold
from core.errors import IdNotFound, InputError
from core.model import Message, block_text
from core.service.session import opened
from core.stages.base import Plan, Scene, applied
from core.stages.collapse import (
    MAX_NOTE_SHARE,
    MAX_NOTES,
    MAX_NOTES_TOKENS,
    MERGED_TOKENS,
    MIN_NOTE_TOKENS,
    RETAINED_TOKENS,
    Collapse,
)
from core.stages.segments import LEAST_TOKENS, MOST_TOKENS, segments
from core.stages.snip import Snip
from core.stages.stand_in import shown_by
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.transcript.projects import session_file
from tests.stages.build import MODEL, History, pairs_are_whole, resumed, sent

CASES = Path(__file__).parents[1] / "data" / "cases"
BIG = "some words of a file\n" * 700
"""About 5,000 tokens."""
WINDOW = 100_000
LATER = datetime(2026, 3, 2, tzinfo=UTC)
"""A day after the histories were written: the cache has gone."""


def turns(count: int, rounds: int = 1, size: str = BIG) -> History:
    """Turns of so many large rounds each, and an answer at the end."""
    history = History()
    for n in range(count):
        history.prompt(f"Step {n}.")
        for k in range(rounds):
            history.use(f"t{n}_{k}", "Read", size, file_path=f"/srv/m{n}_{k}.py")
        history.answer(f"Module {n} is fine.")
    return history


def scene(history: History, **more: Any) -> Scene:
    return history.scene(**{"auto_threshold_tokens": WINDOW, **more})


def spans(found: Scene, end: int | None = None, kept: frozenset[str] = frozenset()) -> list[tuple[int, int, bool]]:
    messages = found.messages
    sizes = found.tokens(messages)
    return [(s.begin, s.end, s.closed) for s in segments(found, messages, sizes, end or len(messages), kept)]


def of(plan: Plan, kind: type[Decision]) -> list[Any]:
    return [d for d in plan.decisions if isinstance(d, kind)]


# Where spans end


def test_a_span_ends_with_its_turn_and_never_holds_the_first_prompt() -> None:
    assert spans(scene(turns(3)), end=8) == [(1, 4, True), (4, 8, True)]
    assert spans(scene(turns(3)), end=7) == [(1, 4, True), (4, 7, False)]


def test_a_span_ends_when_it_is_large_enough() -> None:
    found = spans(scene(turns(1, rounds=8)), end=17)

    assert [end - begin for begin, end, _ in found] == [8, 8]
    history = turns(1, rounds=8)
    assert scene(history).block_tokens([b for m in history.messages[1:9] for b in m.content]) >= MOST_TOKENS


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Bash", {"command": "git commit -m x"}),
        ("TodoWrite", {"todos": [{"content": "One", "status": "completed"}]}),
    ],
)
def test_a_span_ends_with_a_commit_and_with_a_completed_task(name: str, fields: dict[str, Any]) -> None:
    history = History().prompt("Go.").use("a", "Read", BIG, file_path="/a").use("b", name, "ok", **fields)
    history.use("c", "Read", BIG, file_path="/c").prompt("Next.")

    assert spans(scene(history), end=7) == [(1, 5, True), (5, 7, True)]


def test_a_small_span_joins_the_one_before_it_but_not_across_what_stays() -> None:
    history = turns(2).prompt("Small.").answer("Yes.").prompt("Also.").answer("Yes.").prompt("Next.")
    found = scene(history)
    assert sum(found.tokens(found.messages[8:12])) < LEAST_TOKENS
    assert spans(found, end=12) == [(1, 4, True), (4, 12, True)]

    assert spans(found, end=12, kept=frozenset({"u9"})) == [(1, 4, True), (4, 8, True), (9, 12, True)]


def test_skills_instructions_summaries_and_pinned_messages_are_in_no_span() -> None:
    history = turns(1).prompt("Go.").use("s", "Skill", BIG, skill="x").use("r", "Read", BIG, file_path="/CLAUDE.md")
    history.use("a", "Read", BIG, file_path="/a").prompt("Next.")
    summary = Message("user", "summary", ({"type": "text", "text": "So far."},), ("s",))
    history.messages.insert(0, summary)

    covered = {i for begin, end, _ in spans(scene(history), end=12) for i in range(begin, end)}
    assert covered == {2, 3, 4, 10, 11}
    assert spans(scene(turns(3)), end=8, kept=frozenset({"u6"})) == [(1, 4, True), (7, 8, True)]


def test_without_rounds_there_is_no_span() -> None:
    assert spans(scene(History().prompt("Go.").prompt("Go.").prompt("Go.")), end=3) == []
    assert spans(scene(History().prompt("Go.").answer("Yes.")), end=1) == []
    assert Collapse().plan(scene(History())).decisions == ()


# Staging


def test_what_is_old_is_staged_with_a_note_and_changes_nothing() -> None:
    now = scene(turns(12))
    plan = Collapse().plan(now)

    staged = of(plan, Collapsed)
    assert len(staged) == len(plan.decisions) >= 4
    assert plan.tokens_freed == 0
    assert applied(now, plan).view() == now.view()
    for span in staged:
        assert span.note.startswith("[")
        assert f"folded; {shown_by(f'span-{span.id[:8]}')}, as does /store/tool-results/compacted-span-" in span.note
        assert "is fine." in span.note
        assert MIN_NOTE_TOKENS * 0.5 < span.note_tokens <= MAX_NOTE_SHARE * span.tokens
        assert span.at_request == 24
    tail = sum(now.tokens([m for m in now.messages if not any(m.uuid in s.uuids for s in staged)]))
    assert tail >= RETAINED_TOKENS


def test_staging_waits_until_enough_is_old_and_enough_of_it_is_new() -> None:
    assert Collapse().plan(scene(turns(6))).decisions == ()
    now = scene(turns(12))
    after = applied(now, Collapse().plan(now))
    assert Collapse().plan(after).decisions == ()

    grown = scene(turns(13), state=after.state)
    assert Collapse().plan(grown).decisions == ()
    grown = scene(turns(14), state=after.state)
    more = of(Collapse().plan(grown), Collapsed)
    assert more
    assert not {u for s in more for u in s.uuids} & {u for s in after.state.staged for u in s.uuids}


def test_a_note_that_would_take_too_much_of_its_span_is_rejected() -> None:
    history = History().prompt("First.").answer("x")
    for n in range(3):
        history.prompt(f"Say {n}.").answer("y")
    history.use("a", "Skill", "s", skill="x")
    for n in range(12):
        history.use(f"b{n}", "Read", BIG, file_path=f"/srv/m{n}.py")

    staged = of(Collapse().plan(scene(history, forced=True)), Collapsed)
    assert "u4" not in {u for s in staged for u in s.uuids}
    assert all(s.note_tokens <= MAX_NOTE_SHARE * s.tokens for s in staged)


# Commitment


def staged(count: int = 12, **more: Any) -> Scene:
    now = scene(turns(count), **more)
    return applied(now, Collapse().plan(replace(now, auto_threshold_tokens=10_000_000)))


def pressed(count: int = 16, share: float = 0.85) -> Scene:
    """A scene whose spans are staged, at this share of the automatic threshold."""
    now = scene(turns(count))
    quiet = replace(now, auto_threshold_tokens=0, model=MODEL)
    plan = Collapse()._staged(replace(quiet, auto_threshold_tokens=WINDOW))
    now = applied(now, Plan("collapse", tuple(plan)))
    return replace(now, auto_threshold_tokens=round(now.total_tokens / share))


def test_below_the_line_nothing_is_committed() -> None:
    plan = Collapse().plan(pressed(share=0.79))

    assert of(plan, Committed) == []


def test_above_the_line_one_batch_is_committed_until_there_is_room() -> None:
    now = pressed()
    plan = Collapse().plan(now)

    (batch,) = of(plan, Committed)
    after = applied(now, plan)
    assert after.total_tokens <= 0.60 * now.auto_threshold_tokens
    assert plan.tokens_freed == now.total_tokens - after.total_tokens > 0
    assert plan.verdict is not None
    ids = [s.id for s in now.state.staged]
    assert list(batch.ids) == [i for i in ids if i in batch.ids]
    last = next(s for s in now.state.staged if s.id == batch.ids[-1])
    without = after.total_tokens + last.tokens - last.note_tokens
    assert without > 0.60 * now.auto_threshold_tokens, "no more than needed"


def test_where_the_goal_is_out_of_reach_all_is_committed() -> None:
    now = replace(pressed(), overhead_tokens=1_000_000)
    now = replace(now, auto_threshold_tokens=now.total_tokens)
    (batch, *_) = of(Collapse().plan(now), Committed)

    assert set(batch.ids) >= {s.id for s in now.state.staged}
    assert applied(now, Collapse().plan(now)).total_tokens > 0.60 * now.auto_threshold_tokens


def test_a_cold_cache_commits_all_that_is_staged_and_a_warm_one_waits() -> None:
    now = pressed(share=0.5)
    assert of(Collapse().plan(now), Committed) == []

    plan = Collapse().plan(replace(now, now=LATER))
    assert set(of(plan, Committed)[0].ids) == {s.id for s in now.state.staged}
    assert plan.verdict is not None
    assert plan.verdict.costs == 0


def test_there_is_one_batch_in_eight_responses_unless_forced() -> None:
    now = pressed()
    last = sum(m.kind == "response" for m in now.messages) - 7
    waiting = replace(now, state=replace(now.state, last_commit_request=last))

    assert of(Collapse().plan(waiting), Committed) == []
    assert of(Collapse().plan(replace(waiting, forced=True)), Committed)
    rested = replace(now, state=replace(now.state, last_commit_request=last - 1))
    assert of(Collapse().plan(rested), Committed)
    written_anew = replace(now, state=replace(now.state, last_commit_request=last + 100))
    assert of(Collapse().plan(written_anew), Committed)


def test_nothing_happens_in_front_of_an_unfinished_tool_loop_that_holds_thinking() -> None:
    history = turns(12).prompt("Go.").use("x", "Bash", "ok", thinking="Hm.", command="make")

    for plan in (Collapse().plan(scene(history)), Collapse().drain(scene(history), 10)):
        assert plan.decisions == ()
        assert "thinking" in plan.reason


def test_a_span_that_was_snipped_meanwhile_is_withdrawn_and_its_marker_is_in_no_other() -> None:
    now = pressed()
    span = now.state.staged[1]
    snipped = applied(now, Snip().plan_range(now, span.uuids[1], span.uuids[2]))
    plan = Collapse().plan(snipped)

    assert of(plan, Withdrawn)[0].ids == (span.id,)
    after = applied(snipped, plan)
    marker = snipped.state.snips[0].id
    assert marker in {m.uuid for m in after.view().messages}
    assert all(marker not in s.uuids for s in (*after.state.staged, *after.state.committed))


def test_pinned_messages_are_in_no_note() -> None:
    plan = Collapse(pinned=frozenset({"u6"})).plan(scene(turns(12)))

    assert of(plan, Collapsed)
    assert all("u6" not in s.uuids for s in of(plan, Collapsed))


# Drain


def test_a_drain_frees_what_is_needed_oldest_first() -> None:
    now = scene(turns(16))
    plan = Collapse().drain(now, 8_000)

    assert 8_000 <= plan.tokens_freed < 20_000
    places = [now.messages.index(next(m for m in now.messages if m.uuid == s.uuids[0])) for s in of(plan, Collapsed)]
    assert places == sorted(places)


def test_a_drain_writes_no_more_notes_than_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scene(turns(20))
    folded = len(of(Collapse().drain(found, 5_000), Collapsed))
    summarize, notes = Extractive.summarize, list[str]()

    def counted(self: Extractive, request: SummaryRequest) -> Summary:
        notes.append("")
        return summarize(self, request)

    monkeypatch.setattr(Extractive, "summarize", counted)
    Collapse().drain(found, 5_000)
    assert len(notes) <= 2 * (folded + 1)  # a second try each


def test_a_span_of_no_messages_is_passed_over() -> None:
    found = scene(turns(10), now=LATER)
    damaged = applied(
        found, Plan("x", (Collapsed("x", (), "a note"), Committed(("x",)), Collapsed("y", (), "another")))
    )

    assert Collapse().plan(damaged) == Collapse().plan(found)
    assert damaged.view() == found.view()


def test_a_drain_commits_what_is_staged_and_leaves_the_last_turn_at_most() -> None:
    now = staged()
    plan = Collapse().drain(now, 10_000_000)
    after = applied(now, plan)

    assert after.state.staged == ()
    left = [m.uuid for m in after.view().messages]
    last = next(i for i, m in enumerate(now.messages) if m.uuid == "u45")
    assert left[-4:] == [m.uuid for m in now.messages[last:]]
    assert left[0] == "u1"
    assert pairs_are_whole(after.view().messages)
    assert Collapse().drain(after, 10_000_000).decisions == ()


def test_compaction_waits_while_a_drain_could_free_a_tenth() -> None:
    assert Collapse().holds_headroom(scene(turns(16)))
    assert not Collapse().holds_headroom(scene(turns(1)))


# Merging


def notes(now: Scene) -> list[Collapsed]:
    return list(now.state.committed)


def drained(count: int) -> Scene:
    now = scene(turns(count, rounds=2))
    return applied(now, Collapse().drain(now, 10_000_000))


def test_many_notes_become_few_in_tiers_and_the_originals_are_covered_once() -> None:
    now = drained(24)

    found = notes(now)
    assert len(found) <= MAX_NOTES
    assert sum(s.note_tokens for s in found) <= MAX_NOTES_TOKENS
    assert max(s.tier for s in found) >= 1
    assert all(s.note_tokens <= MERGED_TOKENS for s in found)
    covered = [u for s in found for u in s.uuids]
    assert len(covered) == len(set(covered))
    assert "Step 0." in block_text(now.view().messages[0].content[0])


def test_notes_that_were_written_out_as_rows_merge_without_loss() -> None:
    before = drained(12)
    written = replace(before, messages=before.view().messages)
    rows = {s.id for s in notes(before)}
    more = History()
    for n in range(100, 130):
        more.prompt(f"Step {n}.").use(f"x{n}", "Read", BIG, file_path=f"/srv/x{n}.py").answer("Fine.")
    new = [replace(m, uuids=(f"new {m.uuid}",)) for m in more.messages]
    now = replace(written, messages=(*written.messages, *new))
    after = applied(now, Collapse().drain(now, 10_000_000))

    merged = [s for s in notes(after) if set(s.uuids) & rows]
    assert merged
    assert "Step 1." in merged[0].note
    left = {m.uuid for m in after.view().messages}
    assert all(left.isdisjoint(s.uuids) for s in merged)
    assert pairs_are_whole(after.view().messages)


def test_notes_with_something_between_them_do_not_merge() -> None:
    history = History()
    for n in range(12):
        history.prompt(f"Step {n}.").use(f"t{n}", "Read", BIG, file_path=f"/srv/m{n}.py").answer("Fine.")
        history.use(f"s{n}", "Skill", "how to", skill="x")
    now = scene(history)
    after = applied(now, Collapse().drain(now, 10_000_000))

    assert len(notes(after)) > MAX_NOTES
    assert {s.tier for s in notes(after)} == {0}


# The way back


def committed(cold: bool = False, written: bool = False) -> Scene:
    now = pressed()
    after = applied(now, Collapse().plan(now))
    after = replace(after, messages=after.view().messages) if written else after
    return replace(after, now=LATER) if cold else after


def test_a_span_is_expanded_when_the_cache_has_gone() -> None:
    now = committed()
    span = now.state.committed[0]
    name = f"span-{span.id[:8]}"

    assert "waits for a pause" in Collapse().expand(now, name).reason
    cold = committed(cold=True)
    for after in (
        applied(cold, Collapse().expand(cold, span.id)),
        applied(now, Collapse().expand(replace(now, forced=True), name)),
    ):
        assert span not in after.state.committed
        assert set(span.uuids) <= {m.uuid for m in after.view().messages}


def test_an_unknown_span_and_one_that_is_gone_are_refused() -> None:
    with pytest.raises(IdNotFound, match="no span has the id 'x'") as caught:
        Collapse().expand(scene(turns(1)), "x")
    assert caught.value.hint == "there are none"
    with pytest.raises(IdNotFound, match="ids begin with span"):
        Collapse().expand(committed(), "span-")
    written = committed(written=True)
    with pytest.raises(InputError, match="not in this transcript any more"):
        Collapse().expand(written, written.state.committed[0].id)


# The cases


@pytest.mark.parametrize("name", ["thrash-1", "snip-1"])
def test_of_a_session_that_is_short_since_its_last_boundary_nothing_is_folded(name: str) -> None:
    with opened(session_file(CASES / f"{name}.jsonl")) as session:
        now = Scene(session.messages, MODEL)

    assert Collapse().plan(now).decisions == ()
    assert [m.kind for m in applied(now, Collapse().drain(now, 10**9)).view().messages].count("summary") == (
        1 if name == "thrash-1" else 0
    )


# Properties

_turn = st.tuples(
    st.integers(0, 4), st.sampled_from(["x" * 40, BIG[:3_000], BIG]), st.sampled_from(["", "skill", "meta"])
)
_acts = st.lists(st.tuples(st.sampled_from(["plan", "cold", "drain", "forced", "snip"]), _turn), min_size=1, max_size=6)


def grow(history: History, turn: tuple[int, str, str]) -> None:
    rounds, size, extra = turn
    first = len(history.messages)
    history.prompt(f"Ask {first}.")
    for n in range(rounds):
        history.use(f"c{first}_{n}", "Read", size, file_path=f"/srv/p{first}_{n}.py")
    if extra == "skill":
        history.use(f"s{first}", "Skill", "how to", skill="x")
    elif extra == "meta":
        history._add("user", "meta", ({"type": "text", "text": "A note of the client."},))
    history.answer("Done.", "Hm.")


def decide(now: Scene, act: str) -> Plan:
    if act == "drain":
        return Collapse().drain(now, 5_000)
    if act == "snip":
        chosen = Snip().suggest(now)
        return chosen[0].plan if chosen else Plan("snip")
    return Collapse().plan(replace(now, now=LATER if act == "cold" else None, forced=act == "forced"))


@settings(max_examples=40)
@given(st.lists(_turn, min_size=4, max_size=10), _acts)
def test_pairs_stay_whole_memory_equals_resume_and_each_message_is_covered_once(
    start: list[tuple[int, str, str]], acts: list[tuple[str, tuple[int, str, str]]]
) -> None:
    history = History()
    for turn in start:
        grow(history, turn)
    decisions: list[Decision] = []
    state = State()
    for act, turn in acts:
        now = scene(history, state=state)
        plan = decide(now, act)
        assert plan.tokens_freed >= 0
        after = applied(now, plan)
        decisions += plan.decisions
        state = after.state
        assert sent(resumed(now, decisions)) == sent(after)
        shown = after.view().messages
        assert pairs_are_whole(shown)
        covered = [u for s in state.committed for u in s.uuids]
        assert len(covered) == len(set(covered))
        gone = {m.uuid for m in now.messages} - {m.uuid for m in shown}
        assert gone <= {*covered, *(u for s in state.snips for u in s.uuids)}
        marks = {s.id for s in state.committed} | {s.id for s in state.snips}
        for mark in (m for m in shown if m.uuid in marks):
            assert f"-{mark.uuid[:8]}" in block_text(mark.content[0])
        again = decide(after, act) if act in ("cold", "plan") else Plan("collapse")
        assert not of(again, Snipped) + of(again, Committed) + of(again, Collapsed)
        grow(history, turn)
    for count in range(len(decisions) + 1):
        now = scene(history, state=fold(decisions[:count]))
        assert sent(resumed(now, decisions[:count])) == sent(now)
