"""The plan of a compaction from the notes: when they can stand for what goes, and where the tail begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.compaction.full import CompactionPlan, Context
from core.compaction.memory import DEFAULT_TAIL, Memory, TailRules, plan_from_memory
from core.context.rounds import cut_points
from core.errors import NoUsableMemory
from core.memory.notes import Notes, item, tokens_of
from core.model import Message, call_id, tool_results, tool_uses
from core.service.session import opened
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import messages as messages_of
from tests.disk import on_disk
from tests.sessions import transcripts

CASE = Path(__file__).parents[1] / "data" / "cases" / "memory-1.jsonl"
SESSION = "11111111-1111-4111-8111-111111111111"
PATH = Path("/p/session-memory/notes.md")
NO_TAIL = TailRules(0, 0, 40_000)


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def noted(covers: str, session: str = SESSION, **more: str) -> Notes:
    notes = Notes(session, 1, covers).with_items("goal", [item("g1-1", "Look at the modules", "", [uuid(1)], 1)])
    for key, text in more.items():
        notes = notes.with_items(key, [item(f"x1-{n}", text) for n in range(3)])  # type: ignore[arg-type]
    return notes


def planned(
    shown: Sequence[Message],
    notes: Notes | None,
    *,
    rules: TailRules = NO_TAIL,
    each: int = 1_000,
    threshold: int | None = None,
    front: int = 100,
    in_file: Sequence[str] = (),
    in_place: bool = False,
) -> CompactionPlan:
    memory = Memory(notes, PATH, 8_000) if notes else None
    sizes = [each] * len(shown)
    return plan_from_memory(
        Context(shown, sizes, 5_000, lambda new: [front] * len(new), history="/h.md"),
        memory,
        SESSION,
        threshold_tokens=threshold,
        in_file=in_file.__contains__,
        rules=rules,
        in_place=in_place,
    )


@pytest.fixture
def case() -> tuple[Message, ...]:
    return messages_of(CASE)


def test_notes_that_end_in_mid_pair_cut_at_or_before_the_call(case: tuple[Message, ...]) -> None:
    plan = planned(case, noted(uuid(6)))

    assert plan.kept[0].uuid in (uuid(5), uuid(6))
    assert plan.gone + plan.kept == case
    assert plan.summary.summarizer == "memory"
    assert "Look at the modules" in plan.summary.text
    assert str(PATH) in plan.summary.text
    assert "/h.md" in plan.summary.text
    assert plan.restored == ()
    assert plan.tokens_after == 5_000 + 100 + 1_000 * len(plan.kept)


def test_notes_about_a_message_that_is_not_in_the_file_are_refused(case: tuple[Message, ...]) -> None:
    with pytest.raises(NoUsableMemory, match="not in the transcript"):
        planned(case, noted(uuid(99)))


def test_notes_about_a_message_in_a_dead_branch_are_refused(tmp_path: Path) -> None:
    rows = CASE.read_text(encoding="utf-8").splitlines()
    branch = rows[7].replace(uuid(7), uuid(3)).replace(uuid(8), uuid(0x66)).replace("msg_0004", "msg_0666")
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text("\n".join([*rows[:7], branch, *rows[7:]]) + "\n", encoding="utf-8")
    with opened(session_file(path)) as session:
        assert session.claude is not None
        held = {entry.uuid for entry in session.claude.log.entries}

        with pytest.raises(NoUsableMemory, match="not in the context any more"):
            planned(session.messages, noted(uuid(0x66)), in_file=sorted(held))


def test_no_notes_and_the_untouched_template_are_refused(case: tuple[Message, ...]) -> None:
    with pytest.raises(NoUsableMemory, match="no notes"):
        planned(case, None)
    with pytest.raises(NoUsableMemory, match="say nothing yet"):
        planned(case, Notes(SESSION, 1, uuid(6)))


@pytest.mark.parametrize("session", ["22222222-2222-4222-8222-222222222222", ""])
def test_notes_of_another_session_are_refused(case: tuple[Message, ...], session: str) -> None:
    with pytest.raises(NoUsableMemory, match=session or "unknown session"):
        planned(case, noted(uuid(6), session))


def test_notes_that_are_larger_than_their_room_are_cut_by_section_and_say_so(case: tuple[Message, ...]) -> None:
    text = planned(case, noted(uuid(6), decisions="word " * 1_000, log="line " * 5_000)).summary.text

    assert tokens_of(text) < 8_000
    assert f"more in {PATH}" in text
    assert f"(cut here: all of it is in {PATH})" in text
    assert "Look at the modules" in text


def test_without_a_last_message_the_tail_is_counted_from_the_end(case: tuple[Message, ...]) -> None:
    plan = planned(case, noted(""), rules=TailRules(2_500, 0, 40_000))

    assert [m.uuid for m in plan.kept] == [uuid(10), uuid(11), uuid(12)]


def test_the_tail_is_widened_backwards_until_both_measures_are_met(case: tuple[Message, ...]) -> None:
    assert len(planned(case, noted(uuid(12)), rules=TailRules(2_500, 0, 40_000)).kept) == 3
    assert len(planned(case, noted(uuid(12)), rules=TailRules(0, 3, 40_000)).kept) == 5
    with pytest.raises(NoUsableMemory, match="within what is kept"):
        planned(case, noted(uuid(12)), rules=DEFAULT_TAIL, each=100)


@pytest.mark.parametrize(("asked", "kept"), [(0, 0), (999, 0), (1_000, 1), (2_500, 1), (5_000, 5), (7_999, 7)])
def test_what_a_person_asked_for_is_what_stays(case: tuple[Message, ...], asked: int, kept: int) -> None:
    rules = TailRules(2_000, 5, 3_000, asked)

    assert len(planned(case, noted(uuid(12)), rules=rules).kept) == kept
    assert len(planned(case, noted(uuid(12)), rules=rules, in_place=True).kept) == max(kept, 1)


def test_what_is_newer_than_the_notes_stays_whatever_was_asked_for(case: tuple[Message, ...]) -> None:
    assert len(planned(case, noted(uuid(10)), rules=TailRules(asked_tokens=0)).kept) == 3
    with pytest.raises(NoUsableMemory, match="within what is kept"):
        planned(case, noted(uuid(10)), rules=TailRules(asked_tokens=500_000))


def test_the_tail_never_grows_over_its_limit(case: tuple[Message, ...]) -> None:
    assert len(planned(case, noted(uuid(12)), rules=TailRules(9_000, 9, 3_500)).kept) == 3
    with pytest.raises(NoUsableMemory, match="newer than the notes"):
        planned(case, noted(uuid(4)), rules=TailRules(0, 0, 3_500))


def test_the_tail_does_not_reach_over_the_summary_in_front(case: tuple[Message, ...]) -> None:
    summary = Message("user", "summary", ({"type": "text", "text": "Before."},), ("s",))

    with pytest.raises(NoUsableMemory, match="within what is kept"):
        planned([summary, *case], noted(uuid(1)), rules=TailRules(99_000, 99, 99_000))
    with pytest.raises(NoUsableMemory, match="within what is kept"):
        planned([summary, case[2]], noted("s"))


def test_a_response_that_is_covered_in_part_stays_whole(case: tuple[Message, ...]) -> None:
    response = replace(case[3], uuids=("first", "second"))
    shown = [*case[:3], response, *case[4:]]

    assert planned(shown, noted("first")).kept[0] == response
    assert planned(shown, noted("second")).kept[0] == case[4]


def test_what_would_be_due_again_at_once_is_refused(case: tuple[Message, ...]) -> None:
    assert planned(case, noted(uuid(8)), threshold=9_101).tokens_after == 9_100
    with pytest.raises(NoUsableMemory, match=r"due at 9\.1k"):
        planned(case, noted(uuid(8)), threshold=9_100)


def test_what_frees_too_little_is_refused(case: tuple[Message, ...]) -> None:
    with pytest.raises(NoUsableMemory, match="would be freed"):
        planned(case, noted(uuid(8)), front=8_000)


def test_an_unfinished_turn_with_thinking_stays_where_it_is(case: tuple[Message, ...]) -> None:
    thought = replace(case[5], content=({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, *case[5].content))

    with pytest.raises(NoUsableMemory, match="thinking"):
        planned([*case[:5], thought, case[6]], noted(uuid(4)))


def test_secrets_in_the_notes_do_not_come_back(case: tuple[Message, ...]) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

    assert token not in planned(case, noted(uuid(8), state=f"pushed with {token}")).summary.text


@given(transcripts(), st.data())
def test_no_pair_and_no_response_is_ever_parted(made: Transcript, data: st.DataObject) -> None:
    with on_disk(made) as path:
        shown = messages_of(path)
    covers = data.draw(st.sampled_from([u for m in shown for u in m.uuids] or [""]))
    rules = TailRules(data.draw(st.integers(0, 5_000)), data.draw(st.integers(0, 5)), 40_000)
    try:
        plan = planned(shown, noted(covers), rules=rules)
    except NoUsableMemory:
        return

    assert len(plan.gone) + len(plan.kept) == len(shown)
    assert len(plan.gone) in cut_points(shown)
    calls = {call_id(b) for m in plan.kept for b in tool_uses(m)}
    assert {call_id(b) for m in plan.kept for b in tool_results(m)} <= calls
    covered = next((at for at, m in enumerate(shown) if covers in m.uuids), len(shown))
    assert all(m in plan.kept for m in shown[covered + 1 :])
