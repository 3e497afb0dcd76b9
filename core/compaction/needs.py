"""What the reader of a summary must know, found by rule, and how a ledger says it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.compaction.source import Source
from core.facts.changes import touched
from core.facts.git import branch_and_commit
from core.facts.outcomes import error_line, failures, normal
from core.facts.statements import statements
from core.facts.tasks import last_plan, open_todos, skills
from core.facts.text import code, cut, one_line
from core.facts.updates import replaced
from core.summarizers.extractive.previous import Earlier, read_back

NeedKind: TypeAlias = Literal[
    "last request", "constraint", "todo", "plan", "skill in use", "failure", "file", "branch", "commit"
]
HEAD_CHARS, TAIL_CHARS = 1_800, 600
"""Of a long request: what a summary keeps of any message, at least."""
LEDGER_CHARS = 6_000
"""About 2,000 tokens, a fourth of what a summary gets by default."""
_TEXT_CHARS, _COMMAND_CHARS, _ERROR_CHARS = 400, 120, 160


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that must be known: what identifies it, and the message that says it."""

    kind: NeedKind
    text: str
    detail: str = ""
    """failure: the error line.  todo: its status."""
    id: str = ""


def needs(source: Source) -> list[Need]:
    """What must be known, the most important first; nothing that a message says which stays."""
    earlier = read_back(source.summaries)
    calls, gone = source.calls, len(source.request.messages)
    found = [*_request(source, earlier), *_constraints(source, earlier), *_todos(source, earlier)]
    if (plan := last_plan(calls)) and plan.path and plan.call.at < gone:
        found.append(Need("plan", plan.path))
    found += [Need("skill in use", name) for name, call in skills(calls).items() if call.at < gone]
    opened = [f.call for f in failures(calls) if f.between is None and f.call.command]
    if opened and (last := max(opened, key=lambda call: call.at)).at < gone:
        found.append(Need("failure", normal(last.command), error_line(last, _ERROR_CHARS)))
    paths = {path: call.at for call in calls for path, deed in touched(call) if deed != "read" and call.at < gone}
    found += [Need("file", path) for path in (*_earlier_files(earlier, paths), *paths)]
    branch, commit = branch_and_commit(calls)
    found += [Need("branch", branch)] if branch else []
    found += [Need("commit", commit)] if commit else []
    return found


def _request(source: Source, earlier: Earlier) -> Iterator[Need]:
    said = source.talk.requests
    if said and said[-1].at < len(source.request.messages):
        yield Need("last request", said[-1].text, id=said[-1].id)
    elif not said and (last := [i for i in earlier.of("request") if i.tag == "last"]):
        yield Need("last request", last[-1].text.strip("~\n"), id=last[-1].id)


def _constraints(source: Source, earlier: Earlier) -> Iterator[Need]:
    old = [(i.text, i.at, i.id) for i in earlier.of("rules")]
    stated = [*old, *((s.text, s.at, s.id) for s in statements(source.talk.requests))]
    gone = replaced([text for text, _, _ in stated], [at for _, at, _ in stated])
    latest = {one_line(text).lower(): n for n, (text, at, _) in enumerate(stated) if n not in gone}
    for n in latest.values():
        text, at, ident = stated[n]
        if at < len(source.request.messages):
            yield Need("constraint", text, id=ident)


def _todos(source: Source, earlier: Earlier) -> Iterator[Need]:
    todos = open_todos(source.calls)
    if todos is None:
        for item in earlier.of("tasks"):
            if item.tag == "todo":
                text, _, status = item.text.rpartition(" (")
                yield Need("todo", text or item.text, status.rstrip(")"))
    for todo in todos or ():
        if todo.at < len(source.request.messages):
            yield Need("todo", todo.text, todo.status)


def _earlier_files(earlier: Earlier, later: Collection[str]) -> Iterator[str]:
    for item in earlier.of("files"):
        path, counts = item.text.removeprefix("`").split("`", 1) if item.text.count("`") > 1 else ("", "")
        if path and path not in later and re.search(r"created|edited|deleted", counts):
            yield path


def ledger_line(need: Need) -> str:
    """How a ledger says what was missing: so that the next summary reads it back as what it is."""
    shown = f"[{need.id}] " if need.id else ""
    match need.kind:
        case "last request":
            return f"- ({need.kind}) {shown}{one_line(cut(need.text, HEAD_CHARS + TAIL_CHARS, tail=TAIL_CHARS))}"
        case "constraint":
            return f"- ({need.kind}) {shown}{cut(one_line(need.text), _TEXT_CHARS)}"
        case "todo":
            return f"- ({need.kind}) {cut(one_line(need.text), _TEXT_CHARS)} ({need.detail or 'open'})"
        case "failure":
            return (
                f"- ({need.kind}) {code(cut(need.text, _COMMAND_CHARS))} failed: {code(need.detail)} -> not mended yet"
            )
        case "file":
            return f"- ({need.kind}) {code(need.text)}: edited"
        case _:
            return f"- ({need.kind}) {code(need.text)}"


def ledger_lines(needs: Sequence[Need]) -> list[str]:
    """As many lines as there is room for, the first ones first, and how many more of what there are."""
    out: list[str] = []
    more: Counter[str] = Counter()
    room = LEDGER_CHARS
    for need in needs:
        line = ledger_line(need)
        if len(line) + 1 <= room:
            out.append(line)
            room -= len(line) + 1
        else:
            more[need.kind] += 1
    return out + [f"- ({kind}) {count} more: see the transcript" for kind, count in more.items()]
