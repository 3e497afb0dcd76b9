"""Operations on the notes by rule: free, deterministic, offline; also the mechanical half of what a model notes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from core.facts.cues import DEFERRED
from core.facts.outcomes import failures, working
from core.facts.scan import Talk, scan
from core.facts.statements import units
from core.facts.tasks import last_plan, open_todos, todo_states
from core.facts.text import cut, one_line, unquoted
from core.facts.updates import replacements
from core.memory.markdown import shown
from core.memory.notes import BYTES_PER_TOKEN, SECTIONS, Item, Notes, SectionKey, names_tokens
from core.memory.operations import OPEN, RESOLVED, Add, Obsolete, Operation, Replace, Resolve
from core.memory.overflow import FIRST, UNLISTED, used_tokens
from core.memory.part import Part
from core.summarizers.extractive.commands import commands, failed, failed_head, worked_later
from core.summarizers.extractive.files import files
from core.summarizers.extractive.findings import findings
from core.summarizers.extractive.items import Item as Found
from core.summarizers.extractive.previous import read_back
from core.summarizers.extractive.render import names_index
from core.summarizers.extractive.state import next_step, tasks, work
from core.summarizers.extractive.summarizer import recall_names

LATEST, PLAN, AGAIN = "latest", "plan", "failed again"
MECHANICAL: tuple[SectionKey, ...] = (
    "title", "goal", "constraints", "tasks", "files", "commands", "errors", "names", "log"
)  # fmt: skip
"""What code notes whoever notes the rest: it is found by rule, so it is true."""
_ALL = tuple(section.key for section in SECTIONS)
_TITLE_CHARS = 45
_REQUEST_CHARS = 500
"""Of the first and the latest request each: the section has 1,200 bytes."""
_ANSWER_CHARS = 900
_NEWEST = 12
"""So many commands and errors of one update are noted: the rest would only pass through to the archive."""
_DECISIONS = 6
_ASKED_CHARS = 80
_FRAME_BYTES = 80
"""Marks, ids and the kinds of the two lines of the names index."""
_UPDATE_TOKENS = 1_000
"""What an update adds to the other sections: left free by the index of names."""
_FAILED = " failed: "


def by_rule(part: Part, sections: Collection[SectionKey] = _ALL) -> list[Operation]:
    """The operations that bring the notes up to the end of a part; only those in `sections`."""
    if not part.new:
        return []
    talk = scan(part.new)
    return [operation for key, rule in _RULES.items() if key in sections for operation in rule(part, talk)]


def _title(part: Part, talk: Talk) -> Iterator[Operation]:
    text = part.title or next((said.text for said in talk.requests), "")
    if text.strip() and not part.notes.of("title"):
        yield Add("title", cut(one_line(text), _TITLE_CHARS))


def _goal(part: Part, talk: Talk) -> Iterator[Operation]:
    """The first request, and the latest one."""
    of_status = {entry.status: entry for entry in part.notes.of("goal")}
    said = [(unquoted(found.text), "") for found in _told(part, talk, "request")[:1]]
    said += [(request.text, _uuid(part, request.at)) for request in talk.requests]
    if said and FIRST not in of_status:
        yield Add("goal", _request(said[0][0]), FIRST, _sources(said[0][1]))
    if talk.requests and (len(said) > 1 or FIRST in of_status):
        text, source = said[-1]
        if latest := of_status.get(LATEST):
            yield Replace(latest.id, _request(text), LATEST, _sources(source))
        else:
            yield Add("goal", _request(text), LATEST, _sources(source))


def _request(text: str) -> str:
    return cut(text, _REQUEST_CHARS, tail=_REQUEST_CHARS // 4)


def _constraints(part: Part, talk: Talk) -> Iterator[Operation]:
    """What the person wants to hold from now on; what a later wish replaces goes."""
    old = part.notes.of("constraints")
    yield from (Add("constraints", found.text) for found in _told(part, talk, "rules"))
    stated = [(said.at, unit) for said in talk.requests for unit in units(said.text) if not DEFERRED.search(unit)]
    texts = [*(entry.text for entry in old), *(unit for _, unit in stated)]
    gone = replacements(texts, [*range(-len(old), 0), *(at for at, _ in stated)])
    for at, entry in enumerate(old):
        if at in gone:
            yield Obsolete(entry.id, _uuid(part, stated[gone[at] - len(old)][0]))
    for n, (at, unit) in enumerate(stated, len(old)):
        if n not in gone:
            yield Add("constraints", unit, "", (_uuid(part, at),))


def _tasks(part: Part, talk: Talk) -> Iterator[Operation]:
    """The list of tasks as the session keeps it, the plan, and what the person wants later."""
    yield from (Add("tasks", found.text, OPEN) for found in _told(part, talk, "tasks"))
    for said in talk.requests:
        for unit in units(said.text):
            if DEFERRED.search(unit):
                yield Add("tasks", unit, OPEN, (_uuid(part, said.at),))
    yield from _todos(part)
    plan = last_plan(talk.calls)
    if plan is not None:
        text = plan.path or cut(one_line(plan.text), 2 * _REQUEST_CHARS)
        yield from _one(part.notes, "tasks", PLAN, text, _uuid(part, plan.call.at))


def _todos(part: Part) -> Iterator[Operation]:
    calls = part.evidence.calls
    listed = open_todos(calls)
    if listed is None:
        return
    done = {one_line(todo.text): todo.at for todos in todo_states(calls) for todo in todos if todo.done}
    known = {one_line(entry.text): entry for entry in part.notes.of("tasks")}
    still = {one_line(todo.text) for todo in listed}
    for todo in listed:
        entry = known.get(one_line(todo.text))
        status = todo.status.replace("_", " ") or OPEN
        if entry is None:
            yield Add("tasks", todo.text, status, (part.view[todo.at].uuid,))
        elif entry.status != status:
            yield Replace(entry.id, entry.text, status, (part.view[todo.at].uuid,))
    for text, entry in known.items():
        if text in done and text not in still:
            yield Resolve(entry.id, part.view[done[text]].uuid)
        elif text not in still and entry.status in ("pending", "in progress"):
            yield Replace(entry.id, entry.text, UNLISTED)


def _state(part: Part, talk: Talk) -> Iterator[Operation]:
    """Where the work stands: what stood there before goes, but for what is not from here."""
    found = work(talk, (), _ANSWER_CHARS)
    found += [Found(f.text, f.rank, f.at, tag="next") for f in next_step(talk, tasks(talk, ()), ())] if found else []
    of_us = ("last answer", "last command", "call without a result", "next")
    old = [entry for entry in part.notes.of("state") if entry.status in of_us]
    for entry, new in zip(old, found, strict=False):
        yield Replace(entry.id, unquoted(new.text), new.tag, (_uuid(part, new.at),))
    for new in found[len(old) :]:
        yield Add("state", unquoted(new.text), new.tag, (_uuid(part, new.at),))
    yield from (Obsolete(entry.id) for entry in old[len(found) :] if found)


def _decisions(part: Part, talk: Talk) -> Iterator[Operation]:
    """The sentences of the model that say what was decided and found out, the best of them."""
    yield from (Add("decisions", found.text) for found in _told(part, talk, "findings")[-2 * _DECISIONS :])
    best = sorted(findings(talk, (), frozenset()), key=lambda found: -found.rank)[:_DECISIONS]
    for found in sorted(best, key=lambda found: found.at):
        yield Add("decisions", found.text, "", (_uuid(part, found.at),))


def _errors(part: Part, talk: Talk) -> Iterator[Operation]:
    """What failed, and what mended it; the same failure again stands where it stood."""
    yield from (Add("errors", found.text) for found in _told(part, talk, "errors"))
    known = {entry.text.partition(_FAILED)[0]: entry for entry in part.notes.of("errors")}
    for call in working(talk.calls):
        entry = known.get(failed_head(call).partition(_FAILED)[0])
        if entry and entry.status != RESOLVED:
            yield Replace(entry.id, worked_later(entry.text))
            yield Resolve(entry.id, _uuid(part, call.at))
    for failure in [*failures(talk.calls)][-_NEWEST:]:
        text, sources = failed(failure), _sources(_uuid(part, failure.call.at))
        entry = known.get(text.partition(_FAILED)[0])
        if entry is not None and failure.mended is None:
            yield Replace(entry.id, text, AGAIN, sources)
        elif failure.mended is None:
            yield Add("errors", text, "", sources)
        elif entry is None:
            yield Add("errors", text, RESOLVED, (*sources, _uuid(part, failure.mended.at)))


def _files(part: Part, talk: Talk) -> Iterator[Operation]:
    known = {_path(entry.text): entry for entry in part.notes.of("files")}
    earlier = [Found(entry.text, at=at) for at, entry in enumerate(known.values(), -len(known))]
    for found in files(talk, [*_told(part, talk, "files"), *earlier]):
        yield from _kept(part, "files", known.get(_path(found.text)), found, _deed(found.text))


def _commands(part: Part, talk: Talk) -> Iterator[Operation]:
    known = {_command(entry.text): entry for entry in part.notes.of("commands")}
    for found in [found for found in commands(talk, ()) if found.at >= 0][-_NEWEST:]:
        yield from _kept(part, "commands", known.get(_command(found.text)), found, "")


def _kept(part: Part, key: SectionKey, entry: Item | None, found: Found, status: str) -> Iterator[Operation]:
    """What is known already, as it is now; else as something new."""
    sources = _sources(_uuid(part, found.at))
    if entry is None:
        yield Add(key, found.text, status, sources)
    elif (entry.text, entry.status) != (found.text, status):
        yield Replace(entry.id, found.text, status, sources)


def _names(part: Part, talk: Talk) -> Iterator[Operation]:
    """An index of the names that stand nowhere else: of this part, and of the index so far."""
    recall_names(talk.names, (found.text for found in _told(part, talk, "names")))
    recall_names(talk.names, (f"{entry.status}: {entry.text}" for entry in part.notes.of("names")))
    others = "\n".join(shown(entry) for key, entry in part.notes.all() if key != "names")
    used = used_tokens(part.notes.with_items("names", ())) + _UPDATE_TOKENS
    room = names_tokens(part.budget_tokens, used) * BYTES_PER_TOKEN - _FRAME_BYTES
    for line in names_index(talk.names, others, room):
        kind, _, names = line.partition(": ")
        yield from _one(part.notes, "names", kind, names, "")


def _log(part: Part, talk: Talk) -> Iterator[Operation]:
    """One line: when, how much, what was asked."""
    last = part.view[-1]
    when = last.timestamp[:16].replace("T", " ")
    asked = f"; asked: {cut(one_line(talk.requests[-1].text), _ASKED_CHARS)}" if talk.requests else ""
    yield Add("log", f"{when} {len(part.new)} messages{asked}".strip(), "", _sources(last.uuid))


def _one(notes: Notes, key: SectionKey, status: str, text: str, source: str) -> Iterator[Operation]:
    """The only item of its status."""
    old = next((entry for entry in notes.of(key) if entry.status == status), None)
    if old is None:
        yield Add(key, text, status, _sources(source))
    elif old.text != text:
        yield Replace(old.id, text, status, _sources(source))


def _told(part: Part, talk: Talk, key: str) -> list[Found]:
    """What an earlier summary says, while there are no notes: then it is all that is known of the time before."""
    return read_back(talk.summaries).of(key) if not part.notes.update else []


def _uuid(part: Part, at: int) -> str:
    """The id of a message of the part; "" for what an earlier summary tells."""
    return part.new[at].uuid if at >= 0 else ""


def _sources(uuid: str) -> tuple[str, ...]:
    return (uuid,) if uuid else ()


def _path(text: str) -> str:
    return text.removeprefix("`").partition("`")[0]


def _command(text: str) -> str:
    return text.partition("` -> ")[0]


def _deed(text: str) -> str:
    """What was done to a file at last, by the words of its item: read only if nothing else was."""
    done = text.partition("`: ")[2].partition(";")[0]
    return next((deed for deed in ("deleted", "edited", "created") if deed in done), "read")


_RULES: dict[SectionKey, Callable[[Part, Talk], Iterable[Operation]]] = {
    "title": _title,
    "goal": _goal,
    "constraints": _constraints,
    "state": _state,
    "tasks": _tasks,
    "decisions": _decisions,
    "files": _files,
    "commands": _commands,
    "errors": _errors,
    "names": _names,
    "log": _log,
}
