"""What must be known, where it is looked for, and what a ledger says of it."""

from __future__ import annotations

import pytest

from core.compaction.claims import NOT_FOUND, claims
from core.compaction.ledger import MOST_MARKS, mended
from core.compaction.needs import LEDGER_CHARS, Need, ledger_line, needs
from core.compaction.recall import Recall
from core.compaction.source import Source
from core.model import Message
from core.summarizers.base import SummaryRequest
from core.summarizers.extractive.previous import read_back
from core.summarizers.extractive.sections import LEDGER
from tests.summarizers.build import done, said

Talk = tuple[Message, ...]


def missing(text: str, *messages: Message, kept: Talk = (), previous: str = "") -> list[tuple[str, str]]:
    recall = Recall(Source(SummaryRequest(messages, previous=previous), kept))
    return [(n.kind, n.text) for n in recall.missing(text)]


def edit(path: str) -> list[Message]:
    return done("Edit", file_path=path, old_string="x", new_string="y")


def test_every_changed_file_is_named_so_that_it_is_told_from_the_others() -> None:
    talk = (*edit("/w/a/x.py"), *edit("/w/b/x.py"), *edit("C:\\w\\c.cs"), *done("Read", file_path="/w/read.py"))

    assert missing("", *talk) == [("file", "/w/a/x.py"), ("file", "/w/b/x.py"), ("file", "C:\\w\\c.cs")]
    assert missing("x.py c.cs", *talk) == [("file", "/w/a/x.py"), ("file", "/w/b/x.py")]
    assert missing("a/x.py and b/x.py, c.cs", *talk) == []
    assert missing("aa/x.py /w/b/x.pyc c.css", *talk) == [
        ("file", p) for p in ("/w/a/x.py", "/w/b/x.py", "C:\\w\\c.cs")
    ]
    assert missing("", *talk, kept=(said("a/x.py b/x.py c.cs"),)) == []


def test_the_same_path_twice_is_one_file() -> None:
    talk = (*edit("x.py"), *edit("/w/x.py"))

    assert missing("see x.py", *talk) == [("file", "/w/x.py")] or missing("see /w/x.py", *talk) == []


def todos(*items: tuple[str, str]) -> list[Message]:
    return done("TodoWrite", todos=[{"content": text, "status": status} for text, status in items])


def test_open_tasks_are_listed_as_open() -> None:
    talk = (*todos(("Write the lexer tests", "pending"), ("Rename Reader", "completed"), ("--", "pending")),)

    assert missing("", *talk) == [("todo", "Write the lexer tests"), ("todo", "--")]
    assert missing("- write lexer tests, soon\n--", *talk) == []
    for done_so in ("[x] Write the lexer tests", "Write the lexer tests (completed)", "✅ Write the lexer tests"):
        assert missing(f"{done_so}\n--", *talk) == [("todo", "Write the lexer tests")]
    assert missing("", *talk, kept=(*todos(("Write the lexer tests", "completed")),)) == []
    assert missing("", *todos(("A thing", "")), kept=(*todos(("A thing", "pending")),)) == []


RULE = "Never push to the main branch before 18:00, and keep version 2.4.1."


def test_a_constraint_is_there_with_its_values_and_its_sense() -> None:
    talk = (said(RULE), said("Go on."))

    assert ("constraint", RULE) in missing("", *talk)
    for text in (
        "Do not push to main branch before 18:00; version 2.4.1 is kept",
        f"- {RULE}",
        f"a\n{RULE[:30]}\n{RULE[30:]}",
    ):
        assert missing(f"{text}\nGo on.", *talk) == []
    for text in (
        "Push to main branch before 18:00; keep version 2.4.1",
        "Never push to main before 19:00, version 2.4.1",
    ):
        assert missing(f"{text}\nGo on.", *talk) == [("constraint", RULE)]


def test_a_constraint_that_was_replaced_or_stands_in_the_tail_is_none() -> None:
    talk = (said("The deadline is May 3."), said("The deadline is now May 9."), said("Go on."))

    assert missing("Go on.", *talk) == [("constraint", "The deadline is now May 9.")]
    assert missing("Go on.", *talk[:1], kept=talk[1:]) == []
    assert missing("", said("Hi"), kept=(said(RULE),)) == []


def test_nine_of_ten_constraints_are_as_good_as_all() -> None:
    things = ["orders", "bills", "users", "parcels", "ledgers", "stamps", "houses", "lamps", "doors", "keys"]
    rules = [f"Never delete {name}." for name in things]
    talk = (*map(said, rules), said("Go on."))
    recall = Recall(Source(SummaryRequest(talk)))
    text = "\n".join([*rules, "Go on."])

    lost_one = recall.missing(text.replace(f"{rules[0]}\n", ""))
    lost_two = recall.missing("\n".join([*rules[2:], "Go on."]))

    assert [len(lost_one), len(lost_two)] == [1, 2]
    assert recall.share(lost_one) == 1
    assert recall.share(lost_two) == 1 - 2 / 11
    assert Recall(Source(SummaryRequest(()))).share(()) == 1


def test_the_last_request_is_there_word_for_word_or_nearly() -> None:
    words = "Please look why the nightly import of the orders takes four hours since Tuesday and tell me what changed"

    assert missing(words.replace(" ", "\n"), said("First"), said(words)) == []
    assert missing(words.replace("hours", "days"), said(words))[0][0] == "last request"
    assert missing("Ok", said("ok")) == []
    assert missing("", said("ok")) == [("last request", "ok")]
    assert missing("", said("ok"), kept=(said("more"),)) == []


def test_of_a_long_request_head_and_tail_are_enough() -> None:
    text = " ".join(f"w{n} x{n % 17}" for n in range(1_000))

    assert missing(f"{text[:2_500]} …[99 chars left out]… {text[-700:]}", said(text)) == []
    assert missing(text[:2_500], said(text)) == [("last request", text)]


def test_a_command_that_still_fails_is_there_with_its_error() -> None:
    bad = done("Bash", "Exit code 2\nE  ImportError: no lexer", failed=True, command="cd /w && pytest tests/a.py")

    assert missing("", *bad) == [("failure", "pytest tests/a.py")]
    assert missing("`pytest tests/a.py`: E ImportError: no lexer", *bad) == []
    assert missing("`pytest tests/a.py` failed", *bad) == [("failure", "pytest tests/a.py")]
    assert missing("", *bad, *done("Bash", "ok", command="pytest tests/a.py")) == []
    assert missing("", kept=(*bad,)) == []


def test_plan_skills_branch_and_commit() -> None:
    talk = (
        *done("Write", file_path="/h/.claude/plans/calm-fox.md", content="x"),
        *done("Skill", skill="review"),
        *done("Bash", "On branch feat/tabs\nnothing to commit", command="git status"),
        *done("Bash", "[feat/tabs 1a2b3c4] Tabs\n 1 file changed", command="git commit -m x"),
    )
    wanted = ["/h/.claude/plans/calm-fox.md", "review", "feat/tabs", "1a2b3c4"]

    kinds = ["plan", "skill in use", "file", "branch", "commit"]
    assert missing("", *talk) == [*zip(kinds, [*wanted[:2], wanted[0], *wanted[2:]], strict=True)]
    assert missing(" ".join(wanted), *talk) == []


EARLIER = f"""\
# Summary of the conversation so far

## Request and intent
- (last) [11112222] Make it fast

## User constraints and stated facts
- {RULE}

## Files and code
- `/w/a.py`: edited 3
- `/w/b.py`: read 2

## Open tasks
- (todo) Write the docs (pending)
- (plan) `/w/plans/x.md`
"""


def test_what_an_earlier_summary_held_must_be_known_still() -> None:
    wanted = [("last request", "Make it fast"), ("constraint", RULE), ("todo", "Write the docs"), ("file", "/w/a.py")]

    assert missing("", previous=EARLIER) == wanted
    assert missing(EARLIER, previous=EARLIER) == []
    later = (said("Now the docs."), *todos(("Print the docs", "pending")), *edit("/w/a.py"))
    assert missing("", *later, previous=EARLIER) == [
        ("last request", "Now the docs."), ("constraint", RULE), ("todo", "Print the docs"), ("file", "/w/a.py")
    ]  # fmt: skip


NEEDS = (
    Need("last request", "Make it\nfast", id="11112222"),
    Need("constraint", RULE, id="33334444"),
    Need("todo", "Write the docs", "in_progress"),
    Need("todo", "Print them"),
    Need("plan", "/w/plans/x.md"),
    Need("skill in use", "review"),
    Need("failure", "pytest -q", "E assert 1"),
    Need("file", "/w/a.py"),
    Need("branch", "main"),
    Need("commit", "1a2b3c4"),
)


@pytest.mark.parametrize("text", ["Prose of a model.", EARLIER.partition("## Req")[0] + "\n## Files and code\n- none"])
def test_a_ledger_is_read_back_as_what_it_says(text: str) -> None:
    earlier = read_back([mended(text, (), NEEDS)])

    assert [(i.text, i.id) for i in earlier.of("rules")] == [(RULE, "33334444")]
    assert [i.text for i in earlier.of("messages")] == ["Make it fast"]
    assert [(i.text, i.tag) for i in earlier.of("tasks")] == [
        ("Write the docs (in_progress)", "todo"), ("Print them (open)", "todo"), ("`/w/plans/x.md`", "plan"),
        ("`review`", "skill in use"),
    ]  # fmt: skip
    assert [i.text for i in earlier.of("errors")] == ["`pytest -q` failed: `E assert 1` -> not mended yet"]
    assert [i.text for i in earlier.of("files")] == ["`/w/a.py`: edited"]
    again = needs(Source(SummaryRequest((), previous=mended(text, (), NEEDS))))
    assert {n.kind for n in again} == {"constraint", "todo", "file"}


def test_a_ledger_has_a_bound_and_counts_what_found_no_room() -> None:
    text = mended("So far.", (), [Need("file", f"/w/{'x' * 80}/{n}.py") for n in range(100)])

    assert len(text) < LEDGER_CHARS + 200
    assert text.endswith(f"- (file) {100 - text.count('`: edited')} more: see the transcript")
    assert text.count(f"## {LEDGER}") == 1


def test_marks_have_a_bound_too() -> None:
    text = " ".join(f"made/up_{n}.py" for n in range(MOST_MARKS + 20))

    out = mended(text, claims(text), ())

    assert out.count(NOT_FOUND) == MOST_MARKS
    assert out.endswith("- 20 more names or figures of this summary are not in the transcript")


def test_a_ledger_line_stays_a_line() -> None:
    needed = Need("failure", "echo `x`", "a `b`")

    assert ledger_line(needed) == "- (failure) `echo 'x'` failed: `a 'b'` -> not mended yet"
    assert all("\n" not in ledger_line(need) for need in NEEDS)
