"""Operations on notes: what is carried out, what is refused, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.memory.evidence import Evidence, evidence_of
from core.memory.markdown import parse, render
from core.memory.notes import BY_KEY, SECTIONS, Notes, SectionKey, item, tokens_of
from core.memory.operations import Add, Applied, Obsolete, Operation, Replace, Resolve, apply
from core.memory.overflow import used_tokens
from core.model import Message
from core.testing import Transcript
from tests.memory.build import shown

ROOM = 8_000


TALK = shown(
    Transcript()
    .prompt("Please fix the parser.\n\nNever push to main.  Use tabs.")
    .use("Bash", "Exit code 1\nFAILED test_parse", command="pytest")
    .use("Edit", "updated", file_path="p.py", old_string="a", new_string="b")
    .use("Bash", "3 passed", command="pytest")
    .answer("Fixed.")
    .prompt("Thanks, that works! You may push to main now.")
    .answer("Pushed.")
    .prompt("It does not work on Windows yet.")
)
EVIDENCE = evidence_of(TALK)
ASKED, FAILED, FAILED_RESULT, EDITED, _, RAN, RAN_RESULT, _, CONFIRMED, _, DENIED = [m.uuid for m in TALK]
NOTES = (
    Notes("s", 1, ASKED)
    .with_items("constraints", [item("c1-1", "Never push to main.", "", [ASKED], 1)])
    .with_items("tasks", [item("t1-1", "Fix the parser", "open", [ASKED], 1)])
    .with_items("errors", [item("e1-1", "pytest failed", "", [FAILED], 1)])
    .with_items("decisions", [item("d1-1", "Use tabs", "", [], 1)])
)


def run(*operations: Operation, notes: Notes = NOTES, room: int = ROOM) -> Applied:
    return apply(notes, operations, EVIDENCE, room, DENIED)


def reason(*operations: Operation) -> str:
    done = run(*operations)
    assert done.notes == replace(NOTES, update=2, covers=DENIED)
    return done.refused[0].reason


def test_the_evidence_of_a_talk_is_who_said_what_and_what_worked() -> None:
    assert {FAILED, FAILED_RESULT} & EVIDENCE.successes == set()
    assert {EDITED, RAN, RAN_RESULT} <= EVIDENCE.successes
    assert EVIDENCE.confirmations == {CONFIRMED}
    assert EVIDENCE.quoted_from("the parser. Never push") == ASKED
    assert EVIDENCE.quoted_from("fix the …[9 chars left out]… Use tabs.") == ASKED
    assert EVIDENCE.quoted_from("Fixed.") == ""
    assert EVIDENCE.quoted_from("…") == ""


def test_a_result_without_a_call_and_a_bare_call_are_no_trouble() -> None:
    odd = Message("user", "results", ({"type": "tool_result", "tool_use_id": "x", "content": "fine"},), ("r",))

    assert evidence_of([odd]).successes == {"r"}


def test_something_new_gets_an_id_and_the_number_of_the_update() -> None:
    done = run(Add("decisions", "Parse by hand", "", (RAN,)), Add("decisions", "No regex"))

    assert done.notes.of("decisions")[1:] == (
        item("d2-1", "Parse by hand", "", [RAN], 2),
        item("d2-2", "No regex", "", [], 2),
    )
    assert (done.notes.update, done.notes.covers, done.refused, done.dropped) == (2, DENIED, (), ())


def test_what_was_said_before_is_not_added_again() -> None:
    assert run(Add("decisions", " Use   tabs ")).notes.of("decisions") == NOTES.of("decisions")


def test_a_title_takes_the_place_of_the_one_before() -> None:
    once = run(Add("title", "Parser")).notes
    twice = run(Add("title", "The parser"), notes=once).notes

    assert [e.text for e in twice.of("title")] == ["The parser"]


def test_words_of_a_person_are_taken_word_for_word_or_not_at_all() -> None:
    done = run(Add("constraints", "Use tabs."))

    assert done.notes.of("constraints")[1] == item("c2-1", "Use tabs.", "", [ASKED], 2)
    assert "word for word" in reason(Add("constraints", "Use spaces."))
    assert "word for word" in reason(Replace("c1-1", "Push to main."))


def test_a_constraint_may_be_replaced_by_a_later_quotation() -> None:
    done = run(Replace("c1-1", "You may push to main now."))

    assert done.notes.of("constraints") == (item("c1-1", "You may push to main now.", "", [CONFIRMED], 2),)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (Add("decisions", "  "), "says nothing"),
        (Add("decisions", "x", "NOT!"), "no status"),
        (Add("decisions", "x", "", ("nowhere",)), "no message nowhere"),
        (Add("tasks", "x", "done"), "no open task"),
        (Replace("d9-9", "x"), "no item d9-9"),
        (Replace("", "x"), "no item"),
        (Replace("t1-1", "x", "completed"), "resolved"),
        (Resolve("t1-1", ASKED), "no call that worked"),
        (Resolve("t1-1", FAILED_RESULT), "no call that worked"),
        (Resolve("t1-1", DENIED), "no call that worked"),
        (Resolve("t1-1", "nowhere"), "no call that worked"),
        (Resolve("c1-1", CONFIRMED), "user alone"),
        (Obsolete("c1-1", RAN), "later message of the user"),
        (Obsolete("c1-1", ASKED), "later message of the user"),
        (Obsolete("t1-1"), "later message of the user"),
    ],
)
def test_what_does_not_hold_is_refused_and_changes_nothing(operation: Operation, why: str) -> None:
    assert why in reason(operation)


def test_one_bad_operation_does_not_hold_the_others_back() -> None:
    done = run(Resolve("x", "y"), Add("state", "All green"))

    assert [r.operation for r in done.refused] == [Resolve("x", "y")]
    assert [e.text for e in done.notes.of("state")] == ["All green"]


@pytest.mark.parametrize("evidence", [RAN, RAN_RESULT, CONFIRMED])
def test_a_task_is_done_when_a_call_worked_or_a_person_says_so(evidence: str) -> None:
    done = run(Resolve("t1-1", evidence))

    assert done.notes.of("tasks") == ()
    assert [(d.key, d.item.id, d.reason) for d in done.dropped] == [("tasks", "t1-1", "done")]
    assert done.notes.archived == {}


def test_a_problem_that_is_solved_stays_with_its_solution() -> None:
    done = run(Resolve("e1-1", RAN_RESULT))

    assert done.notes.of("errors") == (item("e1-1", "pytest failed", "resolved", [FAILED, RAN_RESULT], 2),)


def test_what_a_person_takes_back_goes_and_so_does_what_nobody_asked_for() -> None:
    done = run(Obsolete("c1-1", CONFIRMED), Obsolete("d1-1"))

    assert [d.item.id for d in done.dropped] == ["c1-1", "d1-1"]
    assert done.notes.of("constraints") == done.notes.of("decisions") == ()


def test_an_item_is_replaced_in_its_place_and_keeps_its_newest_sources() -> None:
    done = run(*(Replace("d1-1", f"Use tabs {n}", "", (m.uuid,)) for n, m in enumerate(TALK)))

    assert done.notes.of("decisions") == (item("d1-1", "Use tabs 10", "", [m.uuid for m in TALK[-6:]], 2),)


def test_a_status_is_written_in_one_way_and_stays_if_none_is_given() -> None:
    once = run(Replace("t1-1", "Fix it", "In_Progress")).notes

    assert once.of("tasks")[0].status == "in progress"
    assert run(Replace("t1-1", "Fix all"), notes=once).notes.of("tasks")[0].status == "in progress"


def test_secrets_are_not_written_down() -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

    assert token not in render(run(Add("state", f"pushed with {token}")).notes)


def test_what_a_person_wrote_or_copied_gets_an_id_of_its_own() -> None:
    edited = NOTES.with_items(
        "tasks", [item("", "Ship it"), item("t1-1", "Fix the parser", "open", [ASKED], 1), item("t1-1", "Copy")]
    ).with_items("state", [item("d1-7", "moved here")])
    named = run(notes=edited).notes

    assert [e.id for e in named.of("tasks")] == ["t2-1", "t1-1", "t2-2"]
    assert [e.id for e in named.of("state")] == ["s2-1"]


def test_ids_are_never_given_twice_not_even_of_what_is_gone() -> None:
    done = run(Add("tasks", "One"), Resolve("t2-1", RAN), Add("tasks", "Two"))

    assert [e.id for e in done.notes.of("tasks")] == ["t1-1", "t2-2"]


def full(key: SectionKey, count: int, status: str = "", chars: int = 300) -> Notes:
    letter = BY_KEY[key].letter
    return Notes("s", 9).with_items(
        key, [item(f"{letter}{n}-1", f"{key} {n} " + "x" * chars, status, (), n) for n in range(1, count + 1)]
    )


@pytest.mark.parametrize("key", ["constraints", "tasks"])
def test_constraints_and_open_tasks_are_never_dropped(key: SectionKey) -> None:
    done = apply(full(key, 200), [], Evidence(), ROOM)

    assert len(done.notes.of(key)) == 200
    assert done.dropped == ()


def test_tasks_that_are_not_listed_any_more_make_room_for_those_that_are() -> None:
    notes = full("tasks", 20)
    mixed = [replace(e, status="open" if n % 2 else "unlisted") for n, e in enumerate(notes.of("tasks"))]
    done = apply(notes.with_items("tasks", mixed), [], Evidence(), ROOM)

    assert [e.status for e in done.notes.of("tasks")] == ["open"] * 10
    assert len(done.dropped) == 10


def test_the_first_request_stays_and_later_ones_give_way() -> None:
    notes = full("goal", 20)
    first = replace(notes.of("goal")[0], status="first")
    done = apply(notes.with_items("goal", [first, *notes.of("goal")[1:]]), [], Evidence(), ROOM)

    kept = done.notes.of("goal")
    assert kept[0] == first
    assert [e.id for e in kept[1:]] == [f"g{n}-1" for n in range(22 - len(kept), 21)]


def test_a_section_that_is_over_its_cap_loses_its_oldest_and_says_how_many() -> None:
    done = apply(full("commands", 30), [], Evidence(), ROOM)
    kept = [e.id for e in done.notes.of("commands")]

    assert kept == [f"r{n}-1" for n in range(31 - len(kept), 31)]
    assert done.notes.archived == {"commands": 30 - len(kept)}
    assert [d.item.id for d in done.dropped] == [f"r{n}-1" for n in range(1, 31 - len(kept))]
    assert f"({30 - len(kept)} more in archive.md)" in render(done.notes)


def test_files_that_were_only_read_go_before_older_ones_that_were_changed() -> None:
    edited, read = full("files", 5, "edited"), full("files", 20, "read")
    both = edited.with_items(
        "files", (*edited.of("files"), *(replace(e, id=f"f{e.id[1:]}9") for e in read.of("files")))
    )
    kept = apply(both, [], Evidence(), ROOM).notes.of("files")

    assert sum(e.status == "edited" for e in kept) == 5
    assert 0 < sum(e.status == "read" for e in kept) < 20


def test_open_errors_stay_longer_than_resolved_ones_and_new_decisions_longer_than_old_ones() -> None:
    notes = full("errors", 12)
    mixed = [replace(e, status="resolved" if n % 2 else "") for n, e in enumerate(notes.of("errors"))]
    kept = apply(notes.with_items("errors", mixed), [], Evidence(), ROOM).notes.of("errors")

    assert [e.id for e in kept if not e.status] == ["e1-1", "e3-1", "e5-1", "e7-1", "e9-1", "e11-1"]
    assert len(kept) < 12


def test_the_log_has_no_more_than_twenty_lines() -> None:
    done = apply(full("log", 25, chars=1), [], Evidence(), ROOM)

    assert [e.id for e in done.notes.of("log")] == [f"l{n}-1" for n in range(6, 26)]
    assert done.notes.archived == {"log": 5}


def test_in_all_the_log_gives_way_first_then_names_commands_files_read_and_so_on() -> None:
    notes = full("constraints", 57)
    lasting: list[tuple[SectionKey, str]] = [("log", ""), ("names", ""), ("commands", ""), ("files", "read")]
    for key, status in (*lasting, ("errors", "resolved"), ("decisions", "")):
        notes = notes.with_items(key, full(key, 3, status).of(key))
    gone = [d.key for d in apply(notes, [], Evidence(), ROOM).dropped]
    all_gone = [
        d.key for d in apply(notes.with_items("tasks", full("tasks", 30).of("tasks")), [], Evidence(), 7_000).dropped
    ]

    assert gone == ["log"] * len(gone)
    assert list(dict.fromkeys(all_gone)) == ["log", "names", "commands", "files", "errors", "decisions"]


def test_the_names_take_the_room_that_is_left_and_are_cut_between_two_of_them() -> None:
    names = item("n1-1", ", ".join(f"src/module{n}.py" for n in range(900)), "paths")
    alone = apply(Notes("s").with_items("names", [names]), [], Evidence(), ROOM)
    beside = apply(full("constraints", 60).with_items("names", [names]), [], Evidence(), ROOM)

    left = ROOM - used_tokens(beside.notes.with_items("names", ()))
    for done, most in ((alone, 2_000), (beside, left)):
        (entry,) = done.notes.of("names")
        assert most - 60 < tokens_of(entry.text) <= most
        assert names.text.startswith(entry.text + ",")
        assert done.dropped == ()


def test_names_without_any_room_leave_the_notes() -> None:
    tiny = [item(f"n1-{n}", "abc def " * 30, "paths") for n in range(300)]

    assert apply(Notes("s").with_items("names", tiny), [], Evidence(), 1_600).notes.of("names") == ()


def test_an_item_longer_than_its_section_is_cut_and_its_whole_text_kept_aside() -> None:
    done = apply(NOTES, [Add("state", "漢x" * 3_000)], EVIDENCE, ROOM)

    assert [(d.key, d.reason, len(d.item.text)) for d in done.dropped] == [("state", "shortened", 6_000)]
    assert tokens_of(done.notes.of("state")[0].text) <= 600
    assert "chars left out" in done.notes.of("state")[0].text
    assert done.notes.archived == {}


_IDS = st.sampled_from(["c1-1", "t1-1", "e1-1", "d1-1", "t2-1", "nope"])
_WHERE = st.sampled_from([*EVIDENCE.places, "nowhere", ""])
_TEXTS = st.sampled_from(["Use tabs.", "x", "y" * 4_000, "", "Never push to main.", "(open) z", "a\nb"])
_KEYS: st.SearchStrategy[SectionKey] = st.sampled_from([s.key for s in SECTIONS])
OPERATIONS = st.lists(
    st.builds(Add, _KEYS, _TEXTS, st.sampled_from(["", "open", "done", "resolved", "A!"]), st.just(()))
    | st.builds(Replace, _IDS, _TEXTS, st.sampled_from(["", "read"]), st.just(()))
    | st.builds(Resolve, _IDS, _WHERE)
    | st.builds(Obsolete, _IDS, _WHERE),
    max_size=30,
)


@given(OPERATIONS, st.sampled_from([1_600, 8_000]))
def test_any_operations_give_the_same_notes_each_time_that_fit_and_lose_nothing(
    operations: list[Operation], room: int
) -> None:
    done = run(*operations, room=room)

    assert run(*operations, room=room) == done
    assert parse(render(done.notes)) == done.notes
    ids = [e.id for _, e in done.notes.all()]
    assert len(ids) == len(set(ids))
    held = {e.id for _, e in done.notes.all()} | {d.item.id for d in done.dropped}
    assert {e.id for _, e in NOTES.all()} <= held
    never = sum(used_tokens(Notes().with_items(k, done.notes.of(k))) for k in ("constraints", "tasks", "goal", "title"))
    assert used_tokens(done.notes) <= max(room, never)
    assert all(d.reason != "no room" or d.key not in ("constraints", "tasks") for d in done.dropped)
