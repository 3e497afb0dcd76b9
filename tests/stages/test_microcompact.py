"""Which old results go, when, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context.decisions import CacheEdited, Decision, Replaced
from core.context.tokens.models import lookup
from core.model import JSON, Message, Usage
from core.service.session import Session, opened
from core.stages.base import Plan, Scene, applied
from core.stages.edits import store_bodies
from core.stages.microcompact import TOOLS, Microcompact, MicrocompactSettings, placeholder
from core.stages.results import tool_results_of
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.disk import stored
from tests.stages.build import History, image, pairs_are_whole, resumed, run, sent, shown, text

CASES = Path(__file__).parent.parent / "data" / "cases"
START = datetime(2026, 3, 1, 10, tzinfo=UTC)
LONG = "line of a file\n" * 900
"""Some 4,500 tokens."""
HOT, PINNED = Microcompact(MicrocompactSettings(life="5m")), Microcompact(MicrocompactSettings(form="pinned"))
PUBLIC = Microcompact(MicrocompactSettings(form="public"))
TIMED = Microcompact(MicrocompactSettings(time_based=True))
ROOM = {"auto_threshold_tokens": 167_000}


def reads(count: int, content: str = LONG, after: int = 0) -> History:
    """So many files read, and so many answers after them."""
    history = History().prompt("Read them all.")
    for n in range(count):
        history.use(f"c{n}", "Read", content, file_path=f"/srv/{n}.py")
    for n in range(after):
        history.prompt(f"And {n}?").answer(f"Yes, {n}.")
    return history


def late(history: History, minutes: float) -> datetime:
    """So many minutes after the last response."""
    last = next(m.timestamp for m in reversed(history.messages) if m.kind == "response")
    return datetime.fromisoformat(last) + timedelta(minutes=minutes)


def gone(plan: Plan) -> list[str]:
    ids: list[str] = []
    for d in plan.decisions:
        ids += [d.id] if isinstance(d, Replaced) else [*d.ids] if isinstance(d, CacheEdited) else []
    return ids


@contextmanager
def case(name: str) -> Iterator[Session]:
    with opened(session_file(CASES / f"{name}.jsonl")) as session:
        yield session


# micro-1: instruction files, a skill, an error, an answer, short results, and three large ones


def micro_case(scene_of: Callable[[Session], Scene], keep_newest: int = 2) -> tuple[Plan, Scene]:
    stage = Microcompact(MicrocompactSettings((*TOOLS, "mcp__*"), time_based=True, keep_newest=keep_newest))
    with case("micro-1") as session:
        return run(stage, scene_of(session))


def long_after(session: Session) -> Scene:
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    return Scene(session.messages, lookup("claude-opus-4-6"), now=now, store_folder="/store")


def test_the_old_large_results_go_and_all_that_guides_the_model_stays() -> None:
    plan, scene = micro_case(long_after)

    assert gone(plan) == ["toolu_c4", "toolu_c5"]
    assert shown(scene, "toolu_c0")["content"] == "RULE: never push."
    assert shown(scene, "toolu_c1")["content"] == "SKILL BODY"
    assert shown(scene, "toolu_c6")["content"] == "User answered: 8443"
    assert shown(scene, "toolu_c2")["is_error"] is True
    assert pairs_are_whole(scene.view().messages)


def test_with_one_to_keep_the_next_oldest_goes_too() -> None:
    assert gone(micro_case(long_after, keep_newest=1)[0]) == ["toolu_c4", "toolu_c5", "toolu_c7"]
    assert gone(micro_case(long_after, keep_newest=0)[0]) == ["toolu_c4", "toolu_c5", "toolu_c7"]


def test_what_is_cleared_is_stored_first_and_found_by_the_id_that_the_placeholder_names(tmp_path: Path) -> None:
    plan, scene = micro_case(long_after)
    store = Store(tmp_path)
    before = {b.id: b.content["content"] for b in plan.bodies}

    assert store_bodies(store, scene, plan) == plan
    for ident in gone(plan):
        assert ident in str(shown(scene, ident)["content"])
        body = stored(store, ident)
        assert body is not None
        assert store.read(body).decode() == before[ident]


def test_a_second_run_clears_nothing_and_counts_nothing() -> None:
    _, scene = micro_case(long_after)
    stage = Microcompact(MicrocompactSettings((*TOOLS, "mcp__*"), time_based=True, keep_newest=2))

    again, after = run(stage, scene)

    assert (again.decisions, again.tokens_freed) == ((), 0)
    assert sent(after) == sent(scene)


def test_a_count_of_calls_is_no_reason() -> None:
    many = reads(60, "tiny").scene(**ROOM, now=late(reads(60, "tiny"), 180))

    for stage in (HOT, PINNED, PUBLIC, TIMED):
        assert stage.plan(many).decisions == ()


# the long pause


def test_after_a_long_pause_all_but_the_newest_five_go() -> None:
    history = reads(9)
    plan, scene = run(TIMED, history.scene(now=late(history, 61)))

    assert gone(plan) == ["c0", "c1", "c2", "c3"]
    assert shown(scene, "c0")["content"] == placeholder("c0")
    assert plan.verdict is not None
    assert (plan.verdict.rewritten_tokens, plan.verdict.pays_after) == (0, 0.0)
    assert plan.tokens_freed == history.scene().total_tokens - scene.total_tokens


@pytest.mark.parametrize("minutes", [-300, 0, 59, 60])
def test_a_pause_that_is_not_long_clears_nothing_by_the_clock(minutes: float) -> None:
    history = reads(7)

    assert Microcompact(MicrocompactSettings(time_based=True, life="1h")).plan(
        history.scene(now=late(history, minutes))
    ) == Microcompact(MicrocompactSettings(life="1h")).plan(history.scene(now=late(history, minutes)))


@pytest.mark.parametrize("now", [None, datetime(2027, 1, 1)])  # noqa: DTZ001 (a clock without a zone says nothing)
def test_without_a_clock_nothing_is_old(now: datetime | None) -> None:
    scene = reads(9).scene(now=now)

    assert TIMED.plan(scene) == HOT.plan(scene)


def test_messages_without_a_time_are_not_old() -> None:
    history = reads(9)
    timeless = [replace(m, timestamp="") for m in history.messages]

    scene = replace(history.scene(), messages=timeless, now=START + timedelta(days=9))
    assert TIMED.plan(scene) == HOT.plan(scene)


def test_nothing_goes_where_nothing_can() -> None:
    history = History().prompt("Hi").answer("Hi")

    assert TIMED.plan(history.scene(now=late(history, 90), forced=True)).reason == "too little to clear: 0 tokens"


def test_images_lists_with_other_things_and_unsolved_errors_stay_solved_errors_go() -> None:
    history = History().prompt("Go.")
    history.use("pic", "Read", [text(LONG), image()], file_path="/a.png")
    history.use("open", "Bash", LONG, error=True, command="make")
    history.use("solved", "Bash", LONG, error=True, command="pytest")
    history.use("good", "Bash", LONG, command="pytest")
    history.use("rules", "Read", LONG, file_path="/srv/.claude/rules/style.md")
    history.use("listed", "Grep", [text(LONG)], pattern="x")
    for n in range(5):
        history.use(f"n{n}", "Read", LONG, file_path=f"/{n}")

    plan, scene = run(TIMED, history.scene(now=late(history, 90)))

    assert gone(plan) == ["solved", "good", "listed"]
    assert shown(scene, "solved")["is_error"] is True
    assert shown(scene, "listed")["content"] == [text(placeholder("listed"))]


def test_a_result_without_its_call_stays() -> None:
    history = History().prompt("Go.").result("lost", LONG)
    for n in range(6):
        history.use(f"n{n}", "Read", LONG, file_path=f"/{n}")

    assert gone(TIMED.plan(history.scene(now=late(history, 90)))) == ["n0"]


# the break-even rule


def test_large_results_with_little_behind_them_go_while_the_cache_is_warm() -> None:
    plan, scene = run(HOT, reads(4, after=6).scene(**ROOM))

    assert gone(plan) == ["c0"]
    assert plan.verdict is not None
    assert plan.verdict.pays
    assert plan.verdict.rewritten_tokens > 3 * 4_000  # the three newest stay, and are cached anew
    assert shown(scene, "c3")["content"] == LONG


def test_the_start_is_where_the_gain_is_greatest_not_the_oldest() -> None:
    history = History().prompt("Go.").use("old", "Read", "word " * 500, file_path="/old")
    history.prompt("A long story. " * 4_000).answer("I see.")
    for n in range(3):
        history.use(f"c{n}", "Read", LONG * 2, file_path=f"/srv/{n}.py")
    history.use("a", "Bash", "ok", command="a").use("b", "Bash", "ok", command="b").use("c", "Bash", "ok", command="c")
    for n in range(6):
        history.prompt(f"And {n}?").answer("Yes.")

    plan = HOT.plan(history.scene(**ROOM))

    assert gone(plan) == ["c0", "c1", "c2"]
    assert gone(HOT.plan(history.scene(**ROOM, forced=True))) == ["old", "c0", "c1", "c2"]


def test_it_says_no_where_it_would_cost_more_than_it_saves_unless_told() -> None:
    history = reads(1).prompt("A long story. " * 20_000).answer("I see.")
    for n in range(3):
        history.use(f"k{n}", "Bash", "ok", command=f"{n}")
    for _ in range(6):
        history.prompt("And?").answer("Yes.")
    scene = history.scene(**ROOM)

    plan = HOT.plan(scene)

    assert plan.decisions == ()
    assert plan.reason == "it would cost more than it saves"
    assert plan.verdict is not None
    assert not plan.verdict.pays
    told = HOT.plan(replace(scene, forced=True))
    assert gone(told) == ["c0"]
    assert told.verdict == plan.verdict
    assert "to cache anew" in str(told.verdict)


def test_nothing_goes_that_is_young_among_the_newest_or_small() -> None:
    assert gone(PINNED.plan(reads(4, after=4).scene(**ROOM))) == ["c0"]
    assert gone(PINNED.plan(reads(6).scene(**ROOM))) == ["c0"]
    assert gone(PINNED.plan(reads(3, after=9).scene(**ROOM))) == []
    assert gone(PINNED.plan(reads(40, "word " * 200, after=9).scene(**ROOM))) == []


def test_a_result_that_a_later_one_shows_again_goes_from_the_second_response_on() -> None:
    history = History().prompt("Go.").use("first", "Read", LONG, file_path="/a", offset=1).use("x", "Bash", "ok")
    early = PINNED.plan(history.scene(**ROOM))
    history.use("whole", "Read", LONG, file_path="/a").use("y", "Bash", "ok").use("z", "Bash", "ok")

    assert gone(early) == []
    assert gone(PINNED.plan(history.scene(**ROOM))) == ["first"]


def test_what_failed_or_was_cleared_shows_nothing_again() -> None:
    history = History().prompt("Go.").use("first", "Read", LONG, file_path="/a")
    history.use("again", "Read", "no such file", file_path="/a", error=True)

    first, _ = tool_results_of(history.messages)
    assert first.repeated_at is None

    history = (
        History().prompt("Go.").use("first", "Read", LONG, file_path="/a").use("again", "Read", LONG, file_path="/a")
    )
    assert [r.repeated_at for r in tool_results_of(history.messages)] == [1, None]
    assert [r.repeated_at for r in tool_results_of(history.messages, {"again"})] == [None, None]


def test_three_requests_lie_between_two_edits_and_a_next_one_needs_new_results() -> None:
    history = reads(5, after=6)
    plan, scene = run(PINNED, history.scene(**ROOM))
    assert gone(plan) == ["c0", "c1"]

    more = [*history.messages]
    soon = PINNED.plan(replace(scene, messages=[*more, *_turns(2)]))
    assert soon.reason == "the last edit was 2 requests ago"
    later = PINNED.plan(replace(scene, messages=[*more, *_turns(9)]))
    assert later.reason == "too little to clear: 0 tokens"


def _turns(count: int) -> list[Message]:
    history = History()
    for n in range(count):
        history.prompt(f"Well, {n}?").answer("Well.")
    return [replace(m, uuids=(f"t-{m.uuid}",)) for m in history.messages]


def test_an_edit_of_before_a_compaction_is_no_reason_to_wait() -> None:
    decided: list[Decision] = [CacheEdited(("old",), "u1", at_request=500)]

    scene = replace(resumed(reads(5, after=6).scene(), decided), auto_threshold_tokens=167_000)
    assert gone(PINNED.plan(scene)) == ["c0", "c1"]


def test_when_the_cache_is_cold_everything_eligible_goes_and_less_is_enough() -> None:
    history = reads(4, "line of a file\n" * 500, after=6)
    scene = history.scene(**ROOM, now=late(history, 6))

    cold = Microcompact(MicrocompactSettings(life="5m")).plan(scene)
    warm = Microcompact(MicrocompactSettings(life="1h")).plan(scene)

    assert gone(cold) == ["c0"]
    assert cold.verdict is not None
    assert (cold.verdict.costs, cold.verdict.pays_after) == (0.0, 0.0)
    assert warm.decisions == ()


def test_the_life_of_the_cache_is_what_the_session_paid_for() -> None:
    history = reads(4, "line of a file\n" * 500, after=6)
    paid = [replace(m, usage=Usage(1, 100, 1_000, 10, 100)) if m.kind == "response" else m for m in history.messages]
    scene = replace(history.scene(**ROOM, now=late(history, 6)), messages=paid)

    assert Microcompact().plan(scene).decisions == ()
    assert gone(Microcompact().plan(history.scene(**ROOM, now=late(history, 6)))) == ["c0"]


def test_in_front_of_the_thinking_of_an_unfinished_loop_only_the_server_clears() -> None:
    history = History().prompt("Go.")
    for n in range(9):
        history.use(f"c{n}", "Read", LONG, thinking="hm", file_path=f"/{n}")
    scene = history.scene(**ROOM)

    assert HOT.plan(scene).reason == "too little to clear behind the thinking of an unfinished tool loop: 0 tokens"
    assert gone(PINNED.plan(scene)) == ["c0", "c1", "c2", "c3"]
    history.prompt("Stop.")
    assert gone(HOT.plan(history.scene(**ROOM))) != []


def test_thinking_behind_a_cleared_result_goes_that_of_later_responses_stays() -> None:
    history = History().prompt("Go.")
    for n in range(9):
        history.use(f"c{n}", "Read", LONG, thinking="hm " * 50, file_path=f"/{n}")
    history.answer("Done.", thinking="at last").prompt("Next.")
    plan, scene = run(HOT, history.scene(**ROOM))
    first = int(gone(plan)[0][1:])

    later = [*history.messages, *History().answer("Yes.", thinking="new").messages]
    seen = replace(scene, messages=later).view().messages

    thinks = [any(b["type"] == "thinking" for b in m.content) for m in seen if m.kind == "response"]
    assert thinks == [n <= first for n in range(10)] + [True]
    assert plan.tokens_freed == history.scene().total_tokens - scene.total_tokens
    assert plan.verdict is not None
    assert plan.tokens_freed > plan.verdict.deleted_tokens


def test_without_a_store_the_content_stays() -> None:
    scene = reads(4, after=6).scene(**ROOM, store_folder="")

    assert HOT.plan(scene).reason == "there is no store for results"
    assert gone(PINNED.plan(scene)) == ["c0"]


def test_a_result_that_another_one_leans_on_stays() -> None:
    history = reads(2, after=9).use("c9", "Read", LONG, file_path="/srv/0.py")
    for n in range(3):
        history.use(f"k{n}", "Bash", "ok", command=f"{n}")
    stub: list[Decision] = [Replaced("c9", "Shown above, by c0.", "unchanged", leans_on="c0")]
    scene = replace(resumed(history.scene(), stub), auto_threshold_tokens=167_000)

    assert gone(PINNED.plan(scene)) == ["c1"]


# what the server does


def test_pinned_edits_change_no_message_and_cost_no_rewriting() -> None:
    history = reads(6, after=6)
    plan, scene = run(PINNED, history.scene(**ROOM))

    assert plan.decisions == (CacheEdited(("c0", "c1", "c2"), history.messages[-2].uuid, at_request=12),)
    assert plan.bodies == ()
    assert sent(scene) == sent(history.scene())
    assert plan.verdict is not None
    assert (plan.verdict.costs, plan.tokens_freed) == (0.0, plan.verdict.deleted_tokens)


def test_the_public_edit_goes_from_the_oldest_on_and_leaves_out_tools_whose_results_have_to_stay() -> None:
    history = History().prompt("Go.").use("rules", "Read", LONG, file_path="/srv/CLAUDE.md")
    history.use("ask", "AskUserQuestion", "8443", q="Port?")
    for n in range(4):
        history.use(f"r{n}", "Read", LONG, file_path=f"/{n}").use(f"b{n}", "Bash", LONG, command=f"{n}")
    history.use("small", "Bash", "ok", command="true")
    for n in range(6):
        history.use(f"k{n}", "Grep", "no", pattern=f"{n}")

    plan = PUBLIC.plan(history.scene(**ROOM))

    assert gone(plan) == ["b0", "b1", "b2", "b3", "small", "k0"]


def test_a_tool_that_was_cleared_before_is_not_left_out_later_the_results_end_there() -> None:
    history = History().prompt("Go.")
    for n in range(3):
        history.use(f"b{n}", "Bash", LONG, command=f"{n}")
    history.use("bad", "Bash", LONG, error=True, command="make")
    history.use("b9", "Bash", LONG, command="9")
    for n in range(9):
        history.use(f"k{n}", "Read", LONG, file_path=f"/{n}")
    before: list[Decision] = [CacheEdited(("b0",), "u1", at_request=1)]
    scene = replace(resumed(history.scene(), before), auto_threshold_tokens=400_000)

    assert gone(PUBLIC.plan(scene)) == ["b1", "b2"]
    assert gone(PUBLIC.plan(replace(scene, forced=True))) == ["b1", "b2"]


# what holds for all


RESULTS: tuple[JSON, ...] = ("", "ok", LONG, LONG * 3, [text(LONG)], [image()], [text("x" * 400), image()])
STEPS = st.tuples(
    st.sampled_from(("Read", "Bash", "Skill", "mcp__x__y", "prompt")),
    st.sampled_from(RESULTS),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(("", "", "hm")),
)


def grown(steps: list[tuple[str, JSON, int, bool, str]]) -> History:
    history = History().prompt("Go.")
    for n, (name, content, place, error, thinking) in enumerate(steps):
        if name == "prompt":
            history.answer("Done.").prompt(f"Next {n}.")
        else:
            history.use(f"c{n}", name, content, thinking=thinking, error=error, file_path=f"/{place}")
    return history


@given(
    st.lists(STEPS, min_size=1, max_size=24),
    st.sampled_from((HOT, PINNED, PUBLIC, TIMED)),
    st.booleans(),
    st.booleans(),
)
def test_decisions_hold_and_nothing_is_lost(
    steps: list[tuple[str, JSON, int, bool, str]], stage: Microcompact, forced: bool, cold: bool
) -> None:
    history = grown(steps)
    decisions: list[Decision] = []
    scene = history.scene(**ROOM, forced=forced)
    for end in range(1, len(history.messages) + 1):
        messages = history.messages[:end]
        now = START + timedelta(days=1) if cold else None
        scene = replace(scene, messages=messages, now=now)
        known = scene.state.replaced
        plan, scene = run(stage, scene)
        decisions += plan.decisions
        assert plan.tokens_freed >= 0
        assert known.items() <= scene.state.replaced.items()
        assert {b.id for b in plan.bodies} == {d.id for d in plan.decisions if isinstance(d, Replaced)}
        assert len(set(gone(plan))) == len(gone(plan))
        assert stage.plan(scene).decisions == ()
    fresh = resumed(scene, decisions)
    assert fresh.state == scene.state
    assert sent(fresh) == sent(scene)
    assert pairs_are_whole(history.messages) == pairs_are_whole(scene.view().messages)
    assert applied(scene, stage.plan(scene)) is scene
