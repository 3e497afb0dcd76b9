"""What is still to do after some calls: the open todos, the plan, the skills in use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.facts.scan import Call
from core.model import JSON, mappings, string

_TASK_ID = re.compile(r"#(\w{1,12})")
_DONE = ("completed", "deleted", "cancelled", "done")


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry of a list of tasks, and the place of the call that said so last; `status` may be ""."""

    text: str
    status: str
    at: int

    @property
    def done(self) -> bool:
        """Whether nothing is left to do of it."""
        return self.status in _DONE


@dataclass(frozen=True, slots=True)
class Plan:
    """The last plan: its text, or the path of the file that holds it."""

    call: Call
    text: str = ""
    path: str = ""


def open_todos(calls: Sequence[Call]) -> list[Todo] | None:
    """What is open after all calls that kept a list; None if none did."""
    states = [*todo_states(calls)]
    return [todo for todo in states[-1] if not todo.done] if states else None


def todo_states(calls: Sequence[Call]) -> Iterator[tuple[Todo, ...]]:
    """The list of tasks after each call that kept one, with those in it that are done."""
    todos: dict[str, Todo] = {}
    for call in calls:
        whole = _whole_list(call)
        if whole is not None:
            todos = {f"{n}": todo for n, todo in enumerate(whole)}
        elif call.name == "TaskCreate":
            number = _TASK_ID.search(call.result or "")
            subject = string(call.input.get("subject"))
            todos[number[1] if number else f"new{len(todos)}"] = Todo(subject, "pending", call.at)
        elif call.name == "TaskUpdate" and (old := todos.get(key := str(call.input.get("taskId")))):
            text, status = (string(call.input.get(field)) for field in ("subject", "status"))
            todos[key] = Todo(text or old.text, status or old.status, call.at)
        else:
            continue
        yield tuple(todo for todo in todos.values() if todo.text)


def completes(calls: Sequence[Call]) -> list[bool]:
    """For each call whether a task was done with it: a list that says so again of old ones completes nothing."""
    out: list[bool] = []
    done: set[str] = set()
    for call in calls:
        whole = _whole_list(call)
        if whole is not None:
            before, done = done, {todo.text for todo in whole if todo.done}
            out.append(not done <= before)
        else:
            out.append(call.name == "TaskUpdate" and string(call.input.get("status")) in _DONE)
    return out


def last_plan(calls: Sequence[Call]) -> Plan | None:
    """The newest plan that a call gave, or whose file it touched."""
    for call in reversed(calls):
        plan = string(call.input.get("plan"))
        if plan.strip():
            return Plan(call, text=plan)
        if "/plans/" in call.path.replace("\\", "/") and call.path.endswith(".md"):
            return Plan(call, path=call.path)
    return None


def skills(calls: Sequence[Call]) -> dict[str, Call]:
    """The skills that were invoked, each with its last call."""
    return {
        name: call
        for call in calls
        if call.name == "Skill" and (name := string(call.input.get("skill")) or string(call.input.get("command")))
    }


def _whole_list(call: Call) -> list[Todo] | None:
    """The list of a call that sets all of it."""
    whole = call.input.get("todos") or call.input.get("plan")
    if not isinstance(whole, list):
        return None
    return [_todo(entry, call.at) for entry in mappings(whole)]


def _todo(entry: dict[str, JSON], at: int) -> Todo:
    text = string(entry.get("content")) or string(entry.get("step")) or string(entry.get("text"))
    return Todo(text, string(entry.get("status")), at)
