"""Notes by rule: what they say, how they change, and that no rule is refused by the code that carries it out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from core.memory.notes import Notes, item
from core.memory.offline import MECHANICAL, by_rule
from core.memory.operations import Add, apply
from core.model import JSON
from core.summarizers.base import SummaryRequest
from core.summarizers.extractive import Extractive
from core.testing import Transcript
from tests.memory.build import by_rules, noted, part_of, shown
from tests.sessions import transcripts


def texts(notes: Notes, key: str) -> list[str]:
    return [entry.text for k, entry in notes.all() if k == key]


def states(notes: Notes, key: str) -> list[str]:
    return [entry.status for k, entry in notes.all() if k == key]


def todos(**items: str) -> JSON:
    return [{"content": text, "status": status} for text, status in items.items()]


def test_the_first_request_and_the_latest_one_are_kept_word_for_word() -> None:
    made = Transcript().prompt("Fix the parser.\n\nIt drops tabs.").answer("Done.")
    first = by_rules(made)
    second = by_rules(made.prompt("Now the " + "printer " * 100).answer("Done."), first)
    third = by_rules(made.prompt("And ship it").answer("Shipped."), second)

    assert [(e.status, e.text) for e in first.of("goal")] == [("first", "Fix the parser.\n\nIt drops tabs.")]
    assert states(second, "goal") == ["first", "latest"]
    assert texts(second, "goal")[1].startswith("Now the printer")
    assert "chars left out" in texts(second, "goal")[1]
    assert texts(third, "goal") == ["Fix the parser.\n\nIt drops tabs.", "And ship it"]
    assert third.of("goal")[1].id == second.of("goal")[1].id


def test_the_title_is_the_clients_else_the_first_request_and_stays() -> None:
    made = Transcript().prompt("Fix the parser").answer("Done.")

    assert texts(by_rules(made, title="Parser work"), "title") == ["Parser work"]
    assert texts(by_rules(made), "title") == ["Fix the parser"]
    assert texts(by_rules(made.prompt("x").answer("y"), by_rules(made), title="Other"), "title") == ["Fix the parser"]
    assert texts(by_rules(Transcript().note("Hello").answer("y")), "title") == []


def test_wishes_are_quoted_and_a_later_one_takes_the_place_of_an_earlier_one() -> None:
    made = Transcript().prompt("Never push to main. Use tabs to indent.").answer("Done.")
    first = by_rules(made)
    second = by_rules(made.prompt("I would rather use spaces to indent.").answer("Done."), first)

    assert texts(first, "constraints") == ["Never push to main. Use tabs to indent."]
    assert first.of("constraints")[0].sources == (str(made.rows[0]["uuid"]),)
    assert "I would rather use spaces to indent." in texts(second, "constraints")


def test_a_wish_that_is_replaced_in_the_same_part_is_not_noted() -> None:
    made = Transcript().prompt("Answer in German.").answer("Ja.").prompt("Answer in French.").answer("Oui.")

    assert texts(by_rules(made), "constraints") == ["Answer in French."]
    earlier = by_rules(Transcript().prompt("Answer in German.").answer("Ja."))
    assert texts(by_rules(made, earlier), "constraints") == ["Answer in French."]


def test_what_is_wanted_later_is_a_task() -> None:
    made = Transcript().prompt("Fix it.\nRemember to update the changelog later.").answer("Done.")

    assert texts(by_rules(made), "tasks") == ["Remember to update the changelog later."]


def test_tasks_follow_the_list_of_the_session() -> None:
    made = Transcript().prompt("Go").use("TodoWrite", "ok", todos=todos(Parse="in_progress", Print="pending"))
    first = by_rules(made.answer("Working."))
    made.use("TodoWrite", "ok", todos=todos(Parse="completed", Print="in_progress", Ship="pending"))
    second = by_rules(made.answer("Working."), first)
    third = by_rules(made.use("TodoWrite", "ok", todos=todos(Ship="pending")).answer("Working."), second)

    assert [(e.text, e.status) for e in first.of("tasks")] == [("Parse", "in progress"), ("Print", "pending")]
    assert [(e.text, e.status) for e in second.of("tasks")] == [("Print", "in progress"), ("Ship", "pending")]
    assert [(e.text, e.status) for e in third.of("tasks")] == [("Print", "unlisted"), ("Ship", "pending")]
    done = apply(first, by_rule(part_of(made, first)), part_of(made, first).evidence, 8_000)
    assert [(d.item.text, d.reason) for d in done.dropped] == [("Parse", "done")]


def test_a_task_that_was_made_long_ago_is_done_when_the_list_says_so() -> None:
    made = Transcript().prompt("Go").use("TaskCreate", "Task #7 created", subject="Parse").answer("Working.")
    first = by_rules(made)
    second = by_rules(made.use("TaskUpdate", "ok", taskId="7", status="completed").answer("Done."), first)

    assert texts(first, "tasks") == ["Parse"]
    assert texts(second, "tasks") == []


def test_the_newest_plan_is_a_task_of_its_own() -> None:
    made = Transcript().prompt("Plan it").use("ExitPlanMode", "ok", plan="1. Parse\n2. Print").answer("Ok.")
    first = by_rules(made)
    second = by_rules(made.use("Write", "ok", file_path="/h/plans/p.md", content="x").answer("Ok."), first)

    assert [(e.text, e.status) for e in first.of("tasks")] == [("1. Parse 2. Print", "plan")]
    assert [(e.text, e.status) for e in second.of("tasks")] == [("/h/plans/p.md", "plan")]
    assert by_rules(made.answer("Still."), second).of("tasks") == second.of("tasks")


def test_the_state_is_where_the_work_stands_and_notes_of_others_stay() -> None:
    made = Transcript().prompt("Go").use("Bash", "ok", command="make").use("Read", "x", file_path="a.py")
    first = by_rules(made.answer("Built.\n\nNext, I will test it."))
    mine = first.with_items("state", (*first.of("state"), item("s1-9", "Mind the dog")))
    second = by_rules(made.prompt("Thanks").answer("Bye."), mine)

    assert states(first, "state") == ["last command", "last answer", "next"]
    assert texts(first, "state")[1] == "Built.\n\nNext, I will test it."
    assert [(e.status, e.text) for e in second.of("state")][:2] == [
        ("last answer", "Bye."),
        ("next", "Go on with the last request; its last answer is above."),
    ]
    assert texts(second, "state")[2:] == ["Mind the dog"]


def test_a_part_without_a_response_leaves_the_state_as_it_was() -> None:
    made = Transcript().prompt("Go").answer("Built.")
    first = by_rules(made)

    assert by_rules(made.prompt("More"), first).of("state") == first.of("state")


def test_failures_stand_with_what_mended_them() -> None:
    made = Transcript().prompt("Go").use("Bash", "Exit code 2\nerror: no rule", command="make").answer("Hm.")
    first = by_rules(made)
    again = by_rules(made.use("Bash", "Exit code 2\nerror: no file", command="make").answer("Hm."), first)
    mended = by_rules(made.use("Bash", "fine", command="make").answer("Good."), again)

    assert texts(first, "errors") == ["`make` failed: `error: no rule` -> not mended yet"]
    assert [(e.text, e.status) for e in again.of("errors")] == [
        ("`make` failed: `error: no file` -> not mended yet", "failed again")
    ]
    assert [(e.text, e.status) for e in mended.of("errors")] == [
        ("`make` failed: `error: no file` -> worked later", "resolved")
    ]
    assert mended.of("errors")[0].sources[-1] == made.rows[-3]["uuid"]


def test_a_failure_that_was_mended_at_once_is_resolved_and_noted_once() -> None:
    made = Transcript().prompt("Go").use("Bash", "Exit code 2\nerror: no rule", command="make")
    made.use("Edit", "ok", file_path="m.mk", old_string="a", new_string="b").use("Bash", "ok", command="make").answer(
        "Y"
    )
    first = by_rules(made)
    made.use("Bash", "Exit code 2\nerror: no rule", command="make").use("Bash", "ok", command="make").answer("Y")

    assert [(e.text, e.status) for e in first.of("errors")] == [
        ("`make` failed: `error: no rule` -> Edit `m.mk`, then it worked", "resolved")
    ]
    assert by_rules(made, first).of("errors") == first.of("errors")


def test_files_and_commands_are_counted_on() -> None:
    made = Transcript().prompt("Go").use("Read", "x", file_path="/a.py").use("Bash", "ok", command="make").answer("Hm.")
    first = by_rules(made)
    made.use("Edit", "ok", file_path="/a.py", old_string="a", new_string="def run():").use(
        "Read", "x", file_path="/b.py"
    )
    second = by_rules(made.use("Bash", "Exit code 1\nerror", command="make").answer("Hm."), first)

    assert [(e.text, e.status) for e in first.of("files")] == [("`/a.py`: read", "read")]
    assert [(e.text, e.status) for e in second.of("files")] == [
        ("`/a.py`: edited, read; run", "edited"),
        ("`/b.py`: read", "read"),
    ]
    assert texts(first, "commands") == ["`make` -> ok"]
    assert texts(second, "commands") == ["`make` -> exit 1: `error`"]


def test_the_names_index_keeps_names_of_before() -> None:
    made = Transcript().prompt("Look at parse_header in src/core/parser.py " + "and src/util/text.py " * 20).answer("y")
    first = by_rules(made)
    second = by_rules(made.prompt("Now print_footer").answer("y"), first)

    assert states(second, "names") == ["paths", "symbols"]
    assert "src/util/text.py" in texts(second, "names")[0]
    assert by_rules(made.prompt("ok").answer("y"), second).of("names") == second.of("names")


def test_decisions_are_the_sentences_that_say_so() -> None:
    said = "Hello there. The root cause was `parse_header` in core/parser.py: it dropped tabs."
    made = Transcript().prompt("Go").answer(said)

    assert texts(by_rules(made), "decisions") == [said.partition(". ")[2]]


def test_the_log_has_a_line_for_each_update() -> None:
    made = Transcript().prompt("Go").answer("Done.")
    first = by_rules(made)
    second = by_rules(made.answer("More."), first)

    assert texts(second, "log") == ["2026-01-05 09:00 2 messages; asked: Go", "2026-01-05 09:00 1 messages"]


def test_an_earlier_summary_is_where_the_first_notes_begin() -> None:
    before = Transcript().prompt("Fix the parser.\nNever push to main.").use("Read", "x", file_path="/a.py")
    before.use("TodoWrite", "ok", todos=todos(Parse="in_progress"))
    before.use("Bash", "Exit code 2\nerror: no rule for print_footer and old/footer.py", command="make")
    before.answer("The root cause was `parse_header` in core/parser.py: it dropped tabs.")
    summary = Extractive().summarize(SummaryRequest(shown(before))).text
    made = Transcript().boundary(summary).prompt("Go on").answer("Done.")
    notes = by_rules(made)

    assert texts(notes, "goal") == ["Fix the parser.\nNever push to main.", "Go on"]
    assert texts(notes, "constraints") == ["Never push to main."]
    assert texts(notes, "tasks") == ["Parse (in_progress)"]
    assert any("root cause" in text for text in texts(notes, "decisions"))
    assert texts(notes, "files") == ["`/a.py`: read"]
    assert [text[:14] for text in texts(notes, "errors")] == ["`make` failed:"]
    assert any("toolu_" in text or "todos" in text or "file_path" in text for text in texts(notes, "names"))
    assert by_rules(made.answer("More."), notes).of("tasks") == notes.of("tasks")


def test_only_what_is_asked_for_is_noted() -> None:
    part = part_of(Transcript().prompt("Never push.").answer("The root cause was found in a.py and b.py: tabs."))
    sections = {operation.section for operation in by_rule(part, MECHANICAL) if isinstance(operation, Add)}

    assert sections <= {*MECHANICAL}
    assert "constraints" in sections


@settings(max_examples=40)
@given(transcripts(), st.integers(1, 3))
def test_rules_are_the_same_each_time_and_never_refused(made: Transcript, steps: int) -> None:
    messages = shown(made)
    notes = Notes("s")
    for step in range(1, steps + 1):
        part = part_of(messages[: len(messages) * step // steps], notes)
        operations = by_rule(part)
        assert by_rule(part) == operations
        notes = noted(part, operations)
    assert by_rule(part_of(messages, notes)) == []
