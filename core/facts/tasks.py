"""What is still to do after some calls: the open todos, the plan, the skills in use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.facts.scan import Call
from core.model import JSON

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
        whole = call.input.get("todos") or call.input.get("plan")
        if isinstance(whole, list):
            todos = {f"{n}": _todo(entry, call.at) for n, entry in enumerate(whole) if isinstance(entry, dict)}
        elif call.name == "TaskCreate":
            number = _TASK_ID.search(call.result or "")
            todos[number[1] if number else f"new{len(todos)}"] = Todo(
                string_of(call.input, "subject"), "pending", call.at
            )
        elif call.name == "TaskUpdate" and (old := todos.get(key := str(call.input.get("taskId")))):
            text, status = (string_of(call.input, field) for field in ("subject", "status"))
            todos[key] = Todo(text or old.text, status or old.status, call.at)
        else:
            continue
        yield tuple(todo for todo in todos.values() if todo.text)


def last_plan(calls: Sequence[Call]) -> Plan | None:
    """The newest plan that a call gave, or whose file it touched."""
    for call in reversed(calls):
        plan = string_of(call.input, "plan")
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
        if call.name == "Skill" and (name := string_of(call.input, "skill") or string_of(call.input, "command"))
    }


def string_of(fields: dict[str, JSON], key: str) -> str:
    """The text of a field, "" if it holds none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _todo(entry: dict[str, JSON], at: int) -> Todo:
    text = string_of(entry, "content") or string_of(entry, "step") or string_of(entry, "text")
    return Todo(text, string_of(entry, "status"), at)
