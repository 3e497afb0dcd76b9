"""Where the work stands: open tasks, plan and skills, the last answer, the last command, what comes next."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.model import JSON
from core.summarizers.extractive.commands import outcome
from core.summarizers.extractive.cues import says_next
from core.summarizers.extractive.items import MUST, Item, ranked
from core.summarizers.extractive.scan import Call, Conversation
from core.summarizers.extractive.text import code, cut, one_line, quoted, sentences

_TASK_ID = re.compile(r"#(\w{1,12})")
_DONE = ("completed", "deleted", "cancelled", "done")


def tasks(talk: Conversation, earlier: Sequence[Item]) -> list[Item]:
    """Open todos, plan and skills; a later list replaces an earlier summary's."""
    found = _todos(talk.calls)
    listed = ranked([i for i in earlier if i.tag == "todo"], MUST - 1) if found is None else found
    kept = ranked([i for i in earlier if i.tag != "todo"], MUST - 2)
    return [*kept, *listed, *_plans(talk.calls), *_skills(talk.calls)]


def _todos(calls: Sequence[Call]) -> list[Item] | None:
    """What is open after all calls that kept a list; None if none did."""
    open_items: dict[str, tuple[str, str, int]] = {}
    seen = False
    for call in calls:
        whole = call.input.get("todos") or call.input.get("plan")
        if isinstance(whole, list):
            seen = True
            open_items = {f"{n}": (*_todo(entry), call.at) for n, entry in enumerate(whole) if isinstance(entry, dict)}
        elif call.name == "TaskCreate":
            seen = True
            number = _TASK_ID.search(call.result or "")
            open_items[number[1] if number else f"new{len(open_items)}"] = (
                _string(call.input, "subject"),
                "pending",
                call.at,
            )
        elif call.name == "TaskUpdate":
            key = str(call.input.get("taskId"))
            if key in open_items:
                text, status, _ = open_items[key]
                open_items[key] = (
                    _string(call.input, "subject") or text,
                    _string(call.input, "status") or status,
                    call.at,
                )
    if not seen:
        return None
    left = [(text, status, at) for text, status, at in open_items.values() if text and status not in _DONE]
    return [
        Item(f"{cut(one_line(text), 240)} ({status or 'open'})", MUST - 1, at, tag="todo") for text, status, at in left
    ]


def _todo(entry: dict[str, JSON]) -> tuple[str, str]:
    return _string(entry, "content") or _string(entry, "step") or _string(entry, "text"), _string(entry, "status")


def _string(fields: dict[str, JSON], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _plans(calls: Sequence[Call]) -> list[Item]:
    last: Item | None = None
    for call in calls:
        plan = _string(call.input, "plan")
        if plan.strip():
            last = Item(cut(one_line(plan), 400), MUST - 2, call.at, call.id, "plan")
        elif "/plans/" in call.path.replace("\\", "/") and call.path.endswith(".md"):
            last = Item(code(call.path), MUST - 2, call.at, call.id, "plan")
    return [last] if last else []


def _skills(calls: Sequence[Call]) -> list[Item]:
    used = {
        name: call
        for call in calls
        if call.name == "Skill" and (name := _string(call.input, "skill") or _string(call.input, "command"))
    }
    return [Item(code(cut(name, 80)), MUST - 3, call.at, call.id, "skill in use") for name, call in used.items()]


def work(talk: Conversation, earlier: Sequence[Item], answer_chars: int) -> list[Item]:
    """The last answer, calls without a result, the last command; an earlier summary's only if nothing came since."""
    if talk.last_response < 0:
        return ranked(earlier, MUST - 4)
    out: list[Item] = []
    if talk.prose:
        said = talk.prose[-1]
        out.append(
            Item(
                quoted(cut(said.text.strip(), answer_chars, tail=answer_chars // 3)),
                MUST - 4,
                said.at,
                tag="last answer",
            )
        )
    commands = [c for c in talk.calls if c.command]
    if commands:
        last = commands[-1]
        out.append(
            Item(f"{code(cut(one_line(last.command), 160))} -> {outcome(last)}", MUST - 5, last.at, tag="last command")
        )
    for call in [c for c in talk.calls if c.result is None][-3:]:
        what = call.command or call.path or ", ".join(sorted(call.input))
        out.append(
            Item(
                f"{code(call.name or 'tool')} {code(cut(one_line(what), 200))}",
                MUST - 3,
                call.at,
                tag="call without a result",
            )
        )
    return sorted(out, key=lambda i: i.at)


def next_step(talk: Conversation, open_tasks: Sequence[Item], earlier: Sequence[Item]) -> list[Item]:
    """What the newest messages say comes next."""
    if talk.requests and talk.requests[-1].at > talk.last_response:
        return [Item("Answer the last request; nothing has been done about it yet.", MUST - 4, talk.requests[-1].at)]
    if talk.last_response < 0 and earlier:
        return ranked(earlier, MUST - 4)
    out = [Item(i.text, MUST - 4, i.at) for i in open_tasks if i.tag == "todo" and i.text.endswith("(in_progress)")][:2]
    if talk.prose:
        said = talk.prose[-1]
        says = [s for line in said.text.splitlines() for s in sentences(line) if says_next(s)]
        out += [Item(cut(one_line(s), 300), 2.0, said.at) for s in says[-2:]]
    if talk.last_response < 0:
        return out
    return out or [Item("Go on with the last request; its last answer is above.", 1.0, talk.last_response)]
