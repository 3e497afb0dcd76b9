"""The list of tasks as it was after each call, done ones included."""

from __future__ import annotations

from core.facts.milestones import closes
from core.facts.scan import Call
from core.facts.tasks import Todo, completes, open_todos, todo_states
from core.model import JSON


def call(name: str, at: int, result: str = "", **given: JSON) -> Call:
    return Call(at, name, given, result=result)


CALLS = [
    call("TaskCreate", 0, "Created #1", subject="Parse"),
    call("Bash", 1, command="make"),
    call("TaskUpdate", 2, taskId="1", status="completed"),
    call("TaskUpdate", 3, taskId="9", status="completed"),
    call("TodoWrite", 4, todos=[{"content": "Write", "status": "completed"}, {"content": "Ship", "status": "pending"}]),
]


def test_each_call_that_keeps_a_list_leaves_one_and_what_is_done_is_in_it() -> None:
    assert [*todo_states(CALLS)] == [
        (Todo("Parse", "pending", 0),),
        (Todo("Parse", "completed", 2),),
        (Todo("Write", "completed", 4), Todo("Ship", "pending", 4)),
    ]
    assert open_todos(CALLS) == [Todo("Ship", "pending", 4)]


def test_a_change_of_a_task_that_nobody_knows_is_no_list() -> None:
    assert open_todos(CALLS[3:4]) is None


def test_a_call_completes_what_was_not_done_before() -> None:
    again = call("TodoWrite", 5, todos=[{"content": "Write", "status": "completed"}, {"content": "Ship"}])
    both = call("update_plan", 6, plan=[{"step": step, "status": "completed"} for step in ("Write", "Ship")])
    started = call("TaskUpdate", 7, taskId="2", status="in_progress")

    assert completes([*CALLS, again, both, started]) == [False, False, True, True, True, False, True, False]


def test_a_commit_ends_a_piece_of_work_too() -> None:
    assert closes([*CALLS[1:3], call("Bash", 3, "[main 1a2b3c4] x", command="git commit -m x")]) == [False, True, True]
