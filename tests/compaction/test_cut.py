"""What goes: the tail, a part named by a message, and where neither can be cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.compaction.cut import Cut, all_but_the_tail, onwards_from, up_to
from core.context.rounds import cut_points
from core.context.short_ids import ShortIds
from core.context.view import messages_of
from core.errors import CompactionError, IdNotFound, NothingToCompact
from core.model import Message, call_id, tool_results, tool_uses
from core.testing import Transcript
from core.transcript.chain import load
from tests.disk import on_disk
from tests.sessions import transcripts


def messages_in(made: Transcript) -> tuple[Message, ...]:
    with on_disk(made) as path:
        log, chain = load(path)
        with log:
            return messages_of(log, chain)


def session() -> Transcript:
    made = Transcript().prompt("First").answer("Yes.").prompt("Second").call("Read", "Grep", file_path="a.py")
    return made.result("one", made.calls[-2]).result("two").answer("Done.").prompt("Third").answer("Good.")


SHOWN = messages_in(session())
KINDS = [m.kind for m in SHOWN]


def test_the_session_is_as_these_tests_take_it() -> None:
    assert KINDS == ["prompt", "response"] * 1 + ["prompt", "response", "results", "results", "response"] + [
        "prompt",
        "response",
    ]


def test_up_to_a_message_what_is_before_it_goes() -> None:
    assert up_to(SHOWN, SHOWN[2].uuid) == Cut(0, 2, "up_to")


def test_from_a_message_on_it_and_what_follows_goes() -> None:
    assert onwards_from(SHOWN, SHOWN[7].uuid) == Cut(7, len(SHOWN), "from")


@pytest.mark.parametrize("at", [4, 5])
def test_a_result_is_not_parted_from_its_call(at: int) -> None:
    assert up_to(SHOWN, SHOWN[at].uuid) == Cut(0, 3, "up_to")
    assert onwards_from(SHOWN, SHOWN[at].uuid).start == 3


def test_a_message_has_several_names() -> None:
    short = ShortIds.of(SHOWN).short(SHOWN[7].uuid)

    assert {up_to(SHOWN, name) for name in (SHOWN[7].uuid, f"[id:{short}]", short)} == {Cut(0, 7, "up_to")}
    assert up_to(SHOWN, session().calls[0]) == Cut(0, 3, "up_to")


@pytest.mark.parametrize("choose", [up_to, onwards_from])
def test_a_name_of_nothing_is_refused(choose: object) -> None:
    with pytest.raises(IdNotFound):
        choose(SHOWN, "zzzz")  # type: ignore[operator]


def test_nothing_before_and_nothing_but_a_summary_is_nothing_to_do() -> None:
    with pytest.raises(NothingToCompact):
        up_to(SHOWN, SHOWN[0].uuid)
    again = messages_in(session().boundary("So far.").prompt("More"))
    with pytest.raises(NothingToCompact, match="nothing but a summary"):
        up_to(again, again[1].uuid)
    assert onwards_from(again, again[1].uuid) == Cut(1, 2, "from")


def test_what_a_tool_still_works_on_stays_in_place() -> None:
    open_call = messages_in(session().prompt("Fourth").call("Bash", command="make"))
    name = open_call[-2].uuid

    with pytest.raises(CompactionError, match="still at work"):
        onwards_from(open_call, name, in_place=True)
    assert onwards_from(open_call, name).start == len(open_call) - 2
    assert onwards_from(SHOWN, SHOWN[7].uuid, in_place=True).start == 7
    assert onwards_from(SHOWN[:1], SHOWN[0].uuid, in_place=True) == Cut(0, 1, "from")


def test_a_thinking_loop_stays_where_its_history_is() -> None:
    made = session().prompt("Fourth").use("Bash", "ok", thinking="Hm.", command="make")
    shown = messages_in(made)

    for in_place in (False, True):
        with pytest.raises(CompactionError, match="in the middle of a turn"):
            up_to(shown, shown[7].uuid, in_place)
    assert onwards_from(shown, shown[7].uuid).end == len(shown)
    with pytest.raises(CompactionError, match="in the middle of a turn"):
        all_but_the_tail(shown, [1] * len(shown), 3, in_place=True)


@settings(max_examples=40)
@given(transcripts(), st.data())
def test_a_part_is_cut_between_groups_and_holds_the_message(made: Transcript, data: st.DataObject) -> None:
    shown = messages_in(made)
    at = data.draw(st.integers(0, len(shown) - 1))
    for choose in (up_to, onwards_from):
        try:
            cut = choose(shown, shown[at].uuid)
        except (NothingToCompact, CompactionError):
            continue
        edge = cut.end if choose is up_to else cut.start
        assert edge in (0, *cut_points(shown))
        assert edge <= at
        gone, kept = shown[cut.start : cut.end], (*shown[: cut.start], *shown[cut.end :])
        called = {call_id(b) for m in gone for b in tool_uses(m)}
        assert not called & {call_id(b) for m in kept for b in tool_results(m)}
