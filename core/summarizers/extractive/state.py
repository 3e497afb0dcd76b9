"""Where the work stands: open tasks, plan and skills, the last answer, the last command, what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from core.facts.cues import says_next
from core.facts.outcomes import outcome
from core.facts.scan import Call, Talk
from core.facts.tasks import last_plan, open_todos, skills
from core.facts.text import code, cut, one_line, quoted, sentences
from core.summarizers.extractive.items import MUST, Item, ranked


def tasks(talk: Talk, earlier: Sequence[Item]) -> list[Item]:
    """Open todos, plan and skills; a later list replaces an earlier summary's."""
    todos = open_todos(talk.calls)
    if todos is None:
        listed = ranked([i for i in earlier if i.tag == "todo"], MUST - 1)
    else:
        listed = [
            Item(f"{cut(one_line(todo.text), 240)} ({todo.status or 'open'})", MUST - 1, todo.at, tag="todo")
            for todo in todos
        ]
    kept = ranked([i for i in earlier if i.tag != "todo"], MUST - 2)
    return [*kept, *listed, *_plan(talk.calls), *_skills(talk.calls)]


def _plan(calls: Sequence[Call]) -> list[Item]:
    plan = last_plan(calls)
    if plan is None:
        return []
    shown = code(plan.path) if plan.path else cut(one_line(plan.text), 400)
    return [Item(shown, MUST - 2, plan.call.at, plan.call.id, "plan")]


def _skills(calls: Sequence[Call]) -> list[Item]:
    used = skills(calls).items()
    return [Item(code(cut(name, 80)), MUST - 3, call.at, call.id, "skill in use") for name, call in used]


def work(talk: Talk, earlier: Sequence[Item], answer_chars: int) -> list[Item]:
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


def next_step(talk: Talk, open_tasks: Sequence[Item], earlier: Sequence[Item]) -> list[Item]:
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
