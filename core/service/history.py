"""Everything that a session ever held, by id and by text: what is active, what is older, what was stored."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice

from core.errors import WrongPattern, WrongUsage
from core.facts.text import beginning
from core.ids import one_of
from core.results import Result
from core.service.items import Item, Where, all_items, stored_items
from core.service.session import Session, SessionRef
from core.transcript.store import Store

_CONTEXT_CHARS = 100
_BEGIN_CHARS = 100
_WHOLE = ("results", "page")
"""Kinds of items that hold the texts of others, which are looked through first."""
_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f-\U0010ffff]+\Z')
"""Text that stands in JSON as it is."""


class OutputLine(Result):
    """One thing that can be read: `id` names it, `name` is the tool of a result."""

    id: str
    kind: str
    name: str
    where: Where


class OutputList(Result):
    """What a session holds, in order."""

    session: SessionRef
    outputs: list[OutputLine]


class TextLine(OutputLine):
    """The same with what there is to read: how many characters, and how they begin, on one line."""

    chars: int
    begin: str


class TextList(Result):
    """What a session holds, in order."""

    session: SessionRef
    outputs: list[TextLine]


class OutputText(Result):
    """One text, or the asked lines of it (`first_line` counts from 1)."""

    session: SessionRef
    id: str
    kind: str
    name: str
    where: Where
    text: str
    first_line: int
    total_lines: int


class SearchHit(Result):
    """One line that matches, in the text of `id`; "…" stands where a long one was cut."""

    id: str
    kind: str
    name: str
    where: Where
    line: int
    text: str


class SearchResult(Result):
    """The lines that match; `more` when there were more than asked for."""

    session: SessionRef
    """Which one was searched, with those that it was made of."""
    hits: list[SearchHit]
    """What the model sees comes first."""
    more: bool
    """Whether there are others."""


def outputs(session: Session) -> TextList:
    """All tool results and messages of an open session (read whole), oldest place first."""
    with ExitStack() as stack:
        lines = [_text_line(item) for item in _each_once(session, stack)]
    return TextList(session=session.ref, outputs=lines)


def readable_ids(session: Session) -> set[str]:
    """The ids of all that `output` shows; no text is read."""
    with ExitStack() as stack:
        return {item.id for item in _each_once(session, stack) if item.is_there}


def _each_once(session: Session, stack: ExitStack) -> Iterable[Item]:
    found: dict[str, Item] = {}
    for item in all_items(session, stack):
        found.setdefault(item.id, item)
    return found.values()


def _text_line(item: Item) -> TextLine:
    text = item.read()
    begin = beginning(text, _BEGIN_CHARS)
    return TextLine(id=item.id, kind=item.kind, name=item.name, where=item.where, chars=len(text), begin=begin)


def stored_outputs(session: Session) -> OutputList:
    """What lies in files beside the transcript: the bodies that a compaction, a stage or the client took out."""
    lines = {
        i.id: OutputLine(id=i.id, kind=i.kind, name=i.name, where=i.where)
        for i in stored_items(Store.beside(session.path))
        if i.is_there
    }
    return OutputList(session=session.ref, outputs=[*lines.values()])


def output(session: Session, ident: str, lines: tuple[int, int] | None = None, grep: str = "") -> OutputText:
    """The text of an id, or of the start of one; `lines` from..to (from 1), `grep` keeps the lines that match.

    Raises `IdNotFound` for no id, or several, `WrongUsage` for lines that cannot be.
    """
    if lines and lines[1] < max(1, lines[0]):
        raise WrongUsage(f"there are no lines {lines[0]} to {lines[1]}", "lines count from 1, the first comes first")
    with ExitStack() as stack:
        item = _found(ident, all_items(session, stack))
        text = item.read()
    every = text.split("\n")
    first, last = lines or (1, len(every))
    shown = every[max(0, first - 1) : max(0, last)]
    if grep:
        matches = _matcher(grep, regex=True).search
        shown = [f"{number}: {line}" for number, line in enumerate(shown, max(1, first)) if matches(line)]
    return OutputText(
        session=session.ref,
        id=item.id,
        kind=item.kind,
        name=item.name,
        where=item.where,
        text="\n".join(shown),
        first_line=max(1, first),
        total_lines=len(every),
    )


def search(session: Session, text: str, regex: bool = False, limit: int = 100) -> SearchResult:
    """The lines of all texts that contain `text` (letter case does not count) or match the expression.

    Those of what a person said come first: they are what the others follow from.  A line that stands in several
    places, as a part of a message and in the whole of it, is found in the first of them.
    """
    matcher = _matcher(text, regex)
    needle = text.lower().encode() if not regex and _PLAIN.match(text) else b""
    hits: list[SearchHit] = []
    said: defaultdict[str | None, set[str]] = defaultdict(set)  # by the ids of items; None: of them all
    with ExitStack() as stack:
        there = (item for item in all_items(session, stack) if item.is_there)
        for item in sorted(there, key=lambda item: (item.kind != "prompt", item.kind in _WHOLE)):
            known = said[None if item.kind in _WHOLE else item.id]
            others = (hit for hit in _hits(item, matcher, needle) if hit.text not in known)
            new = [*islice(others, limit + 1 - len(hits))]
            hits += new
            if len(hits) > limit:
                return SearchResult(session=session.ref, hits=hits[:limit], more=True)
            for texts in (said[None], said[item.id]):
                texts.update(hit.text for hit in new)
    return SearchResult(session=session.ref, hits=hits, more=False)


def _matcher(pattern: str, regex: bool) -> re.Pattern[str]:
    try:
        return re.compile(pattern if regex else re.escape(pattern), 0 if regex else re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise WrongPattern(
            f"{pattern!r} is no regular expression: {error}", "leave out what is special in it"
        ) from None


def _hits(item: Item, matcher: re.Pattern[str], needle: bytes) -> Iterator[SearchHit]:
    if needle and item.raw is not None and needle not in item.raw().lower():
        return
    for number, line in enumerate(item.read().split("\n"), 1):
        if match := matcher.search(line):
            start, end = max(0, match.start() - _CONTEXT_CHARS), match.end() + _CONTEXT_CHARS
            text = f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
            yield SearchHit(id=item.id, kind=item.kind, name=item.name, where=item.where, line=number, text=text)


def _found(ident: str, items: Iterator[Item]) -> Item:
    hits: dict[str, Item] = {}
    for item in items:
        if ident and (item.id.startswith(ident) or item.message.startswith(ident)):
            hits.setdefault(item.id, item)
    parts = [(item.message, item.id) for item in hits.values() if item.message not in hits]  # else it is one itself
    known = [*((name, name) for name in hits), *parts]
    return hits[one_of(ident, known, "text", "{outputs} shows ids")]
