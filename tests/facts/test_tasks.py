"""The list of tasks as it was after each call, done ones included."""

from __future__ import annotations

from core.facts.scan import Call
from core.facts.tasks import Todo, open_todos, todo_states
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
