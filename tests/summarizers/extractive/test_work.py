"""Files, commands, errors, tasks and where the work stands."""

from __future__ import annotations

import pytest

from core.model import JSON, Block, Message
from core.summarizers.extractive.commands import commands, errors
from core.summarizers.extractive.files import files
from core.summarizers.extractive.items import Item
from core.summarizers.extractive.state import next_step, tasks, work
from tests.summarizers.build import answer, call, done, result, said, section, summary_of, talk

PATCH = "*** Begin Patch\n*** Add File: new.py\n+x\n*** Update File: old.py\n*** Delete File: gone.py\n*** End Patch"


def texts(items: list[Item]) -> list[str]:
    return [f"({i.tag}) {i.text}" if i.tag else i.text for i in items]


def test_each_file_is_listed_once_with_what_was_done_to_it() -> None:
    conversation = talk(
        *done("Read", file_path="/w/a.py"),
        *done("Edit", file_path="/w/a.py", old_string="x", new_string="def walk():\n    class Leaf:"),
        *done("Edit", file_path="/w/a.py", old_string="y", new_string="# the class of it"),
        *done("Write", file_path="/w/b.go", content="func (s *Set) Add(x int) {}\nexport async function run() {}"),
        *done("Edit", "not found", True, file_path="/w/c.py"),
        *done("Grep", path="/w"),
        *done("Bash", command="ls"),
    )

    assert texts(files(conversation, [])) == ["`/w/a.py`: edited 2, read; walk, Leaf", "`/w/b.go`: created; Add, run"]


@pytest.mark.parametrize("fields", [{"input": PATCH}, {"command": ["apply_patch", PATCH]}, {"patch": PATCH}])
def test_patches_say_which_files_they_change(fields: dict[str, JSON]) -> None:
    block: Block = {"type": "tool_use", "id": "c", "name": "apply_patch", "input": fields}

    found = texts(files(talk(answer("", block), result("c", "ok")), []))

    assert found == ["`new.py`: created", "`old.py`: edited", "`gone.py`: deleted"]


def test_the_counts_of_an_earlier_summary_go_on() -> None:
    earlier = [Item("`a.py`: edited 2, read; walk", at=-2), Item("no file at all", at=-1)]

    found = texts(files(talk(*done("Edit", file_path="a.py", new_string="def leaf(): ...")), earlier))

    assert found == ["`a.py`: edited 3, read; walk, leaf"]


def test_a_command_is_listed_with_its_latest_outcome() -> None:
    conversation = talk(
        *done("Bash", "Exit code 2\nbroken", True, command="cd /w && make  test"),
        *done("Bash", "fine", command="make test"),
        *done("Bash", "Exit code 1\n\nerror: no such file\nmore", True, command="make lint"),
        *done("shell", "refused", True, command=["git", "push"]),
        answer("", call("x", "Bash", command="sleep 9")),
    )

    assert texts(commands(conversation, [Item("`make test` -> exit 9: `old`", at=-1)])) == [
        "`make test` -> ok",
        "`make lint` -> exit 1: `error: no such file`",
        "`git push` -> failed: `refused`",
        "`sleep 9` -> no result yet",
    ]


def test_an_error_is_listed_with_what_mended_it() -> None:
    failing = done("Bash", "Exit code 1\nTypeError: bad", True, command="make test")
    conversation = talk(
        *failing,
        *failing,
        *done("Edit", file_path="a.py", old_string="x", new_string="y"),
        *done("Bash", command="make test"),
        *done("Edit", "<tool_use_error>File has not been read yet.</tool_use_error>", True, file_path="b.py"),
        *done("Bash", command="cat b.py"),
        *done("Edit", file_path="b.py"),
        *done("WebFetch", "timed out", True, url="x"),
        *done("WebFetch", url="x"),
        *done("Bash", "The user doesn't want to proceed", True, command="rm -r x"),
        *done("Bash", "Exit code 3", True, command="make lint"),
    )

    assert texts(errors(conversation, [])) == [
        "`make test` failed: `TypeError: bad` -> Edit `a.py`, then it worked",
        "`Edit b.py` failed: `File has not been read yet.` -> then `cat b.py`, then it worked",
        "`WebFetch` failed: `timed out` -> worked when tried again",
        "`make lint` failed: `Exit code 3` -> not mended yet",
    ]


def test_an_open_failure_of_an_earlier_summary_is_closed_once_its_command_works() -> None:
    earlier = [Item("`make a` failed: `x` -> not mended yet"), Item("`make b` failed: `y` -> not mended yet")]

    assert texts(errors(talk(*done("Bash", command="make a")), earlier)) == [
        "`make a` failed: `x` -> worked later",
        "`make b` failed: `y` -> not mended yet",
    ]


def todos(*pairs: tuple[str, str]) -> Block:
    return call("t", "TodoWrite", todos=[{"content": text, "status": status} for text, status in pairs])


def test_open_todos_are_those_of_the_last_list() -> None:
    conversation = talk(
        answer("", todos(("Old", "pending"))), answer("", todos(("A", "completed"), ("B", "in_progress"), ("C", "")))
    )

    assert texts(tasks(conversation, [Item("Older (pending)", tag="todo"), Item("Kept.", tag="asked for later")])) == [
        "(asked for later) Kept.", "(todo) B (in_progress)", "(todo) C (open)",
    ]  # fmt: skip


def test_tasks_that_are_kept_one_by_one_count_too() -> None:
    conversation = talk(
        *done("TaskCreate", "Task #1 created", subject="One"), *done("TaskCreate", "Task #2 created", subject="Two"),
        *done("TaskCreate", "odd", subject="Three"), *done("TaskUpdate", taskId="1", status="completed"),
        *done("TaskUpdate", taskId="2", status="in_progress", subject="Two b"),
        *done("TaskUpdate", taskId="9", status="x"),
    )  # fmt: skip

    assert texts(tasks(conversation, [])) == ["(todo) Two b (in_progress)", "(todo) Three (pending)"]


def test_a_plan_in_steps_is_a_list_of_todos() -> None:
    steps: list[JSON] = [{"step": "Look", "status": "completed"}, {"step": "Mend", "status": "pending"}, "odd"]

    assert texts(tasks(talk(*done("update_plan", plan=steps)), [])) == ["(todo) Mend (pending)"]


def test_plan_and_skills_are_kept() -> None:
    conversation = talk(
        *done("ExitPlanMode", plan="# Plan\n1. Look"), *done("Write", file_path="/h/plans/calm-fox.md", content="x"),
        *done("Skill", skill="review"), *done("Skill", command="release"), *done("Skill"),
    )  # fmt: skip

    assert texts(tasks(conversation, [])) == [
        "(plan) `/h/plans/calm-fox.md`", "(skill in use) `review`", "(skill in use) `release`",
    ]  # fmt: skip


def test_what_the_person_asked_for_later_is_a_task() -> None:
    text = summary_of(
        said("Go.", "00000000-1"), said("When this is done, remember to bump it.", "22220000-1"), said("On.")
    )

    assert "- (asked for later) [22220000] When this is done, remember to bump it." in section(text, "Open tasks")


def test_current_work_is_the_last_answer_the_last_command_and_what_is_unanswered() -> None:
    conversation = talk(
        *done("Bash", "Exit code 1\nerror: x", True, command="make"),
        answer("Looking.", call("u", "Read", file_path="/w/a.py"), call("v", "", odd="1")),
    )

    assert texts(work(conversation, [Item("old")], 200)) == [
        "(last command) `make` -> exit 1: `error: x`",
        "(last answer) Looking.",
        "(call without a result) `Read` `/w/a.py`",
        "(call without a result) `tool` `odd`",
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [answer("Yes."), said("Mend it.")],
            "Answer the last request; nothing has been done about it yet.",
            id="asked",
        ),
        pytest.param([said("Go."), answer("Done. Next, I will test it.")], "Next, I will test it.", id="announced"),
        pytest.param([said("Go."), answer("Done. Shall I push?")], "Shall I push?", id="question"),
        pytest.param(
            [said("Go."), answer("Done.")], "Go on with the last request; its last answer is above.", id="nothing"
        ),
        pytest.param(
            [said("Go."), *done("Bash", command="ls")],
            "Go on with the last request; its last answer is above.",
            id="no-prose",
        ),
    ],
)
def test_the_next_step_is_what_the_newest_messages_say(messages: list[Message], expected: str) -> None:
    assert texts(next_step(talk(*messages), [], [Item("old")])) == [expected]


def test_a_todo_in_progress_is_the_next_step() -> None:
    open_tasks = [Item("A (pending)", tag="todo"), Item("B (in_progress)", tag="todo")]

    assert texts(next_step(talk(answer("Done.")), open_tasks, [])) == ["B (in_progress)"]


def test_a_result_without_its_call_is_no_error() -> None:
    assert errors(talk(result("nobody", "Exit code 1", True)), []) == []
