"""Changes of the notes, as whoever has something to say gives them; code decides whether each one holds.

What a person asked for is quoted or it is not in the notes; nothing is resolved but by a call that worked or a person
who says so; nobody but a person takes back what a person asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

import msgspec

from core.facts.text import one_line
from core.memory.evidence import Evidence
from core.memory.notes import BY_KEY, SECTIONS, STATUS, Item, Notes, SectionKey, clean, item
from core.memory.overflow import Dropped, fit
from core.redact.text import redact

OPEN, DONE, RESOLVED = "open", "done", "resolved"
_QUOTED: tuple[SectionKey, ...] = ("goal", "constraints")
"""Sections of a person's own words."""
_ASKED: tuple[SectionKey, ...] = ("goal", "constraints", "tasks")
"""What only a person takes back."""
_ENDED = (DONE, RESOLVED, "completed", "closed", "obsolete", "cancelled")


class Add(msgspec.Struct, frozen=True, tag_field="op", tag="add"):
    """Something new; in a section of quotations, a person's own words."""

    section: SectionKey
    text: str
    status: str = ""
    sources: tuple[str, ...] = ()


class Replace(msgspec.Struct, frozen=True, tag_field="op", tag="replace"):
    """The same thing, as it is now; an empty status leaves that as it was."""

    id: str
    text: str
    status: str = ""
    sources: tuple[str, ...] = ()


class Resolve(msgspec.Struct, frozen=True, tag_field="op", tag="resolve"):
    """A task that is done, a problem that is solved; `evidence` is the message that shows it."""

    id: str
    evidence: str


class Obsolete(msgspec.Struct, frozen=True, tag_field="op", tag="obsolete"):
    """What does not hold any more; for what a person asked for, `evidence` is where a person says so."""

    id: str
    evidence: str = ""


Operation: TypeAlias = Add | Replace | Resolve | Obsolete


@dataclass(frozen=True, slots=True)
class Refusal:
    """An operation that was not carried out, and why."""

    operation: Operation
    reason: str


@dataclass(frozen=True, slots=True)
class Applied:
    """The notes after some operations, what left them, and what was refused."""

    notes: Notes
    dropped: tuple[Dropped, ...]
    refused: tuple[Refusal, ...]


class _Refused(Exception):
    """Why an operation cannot be carried out."""


def apply(
    notes: Notes, operations: Sequence[Operation], evidence: Evidence, budget_tokens: int, covers: str = ""
) -> Applied:
    """Carry out the operations, in order, and make the result fit `budget_tokens`.

    `covers` is the last message that the notes tell of from now on ("": as before).  The same notes, operations and
    evidence give the same result.
    """
    edit = _Edit(replace(notes, update=notes.update + 1, covers=covers or notes.covers), evidence, [])
    edit.number()
    refused = []
    for operation in operations:
        try:
            edit.carry_out(operation)
        except _Refused as reason:
            refused.append(Refusal(operation, str(reason)))
    fitted, dropped = fit(edit.notes, budget_tokens)
    return Applied(fitted, (*edit.gone, *dropped), tuple(refused))


@dataclass
class _Edit:
    notes: Notes
    evidence: Evidence
    gone: list[Dropped]

    def number(self) -> None:
        """Give an id to every item without one of its own: a person wrote it, or copied it."""
        seen: set[str] = set()
        for section in SECTIONS:
            named = []
            for entry in self.notes.of(section.key):
                known = entry.id not in seen and entry.id.startswith(section.letter)
                named.append(entry if known else replace(entry, id="", update=self.notes.update))
                seen.add(entry.id)
            self.notes = self.notes.with_items(section.key, named)
            ids = self._new_ids(section.key)
            numbered = [entry if entry.id else replace(entry, id=next(ids)) for entry in named]
            self.notes = self.notes.with_items(section.key, numbered)

    def carry_out(self, operation: Operation) -> None:
        match operation:
            case Add():
                self._add(operation)
            case Replace():
                self._replace(operation)
            case Resolve():
                self._resolve(operation)
            case _:
                self._obsolete(operation)

    def _add(self, operation: Add) -> None:
        key = operation.section
        text, sources = self._said(key, operation.text, operation.sources)
        if any(one_line(entry.text) == one_line(text) for entry in self.notes.of(key)):
            return  # it was said before
        if key == "title" and (old := self.notes.of(key)):
            self._put(key, item(old[0].id, text, "", sources, self.notes.update))
            return
        status = _status(operation.status) or (OPEN if key == "tasks" else "")
        if key == "tasks" and status in _ENDED:
            raise _Refused("a task that is done is no open task")
        entry = item(self._new_id(key), text, status, sources, self.notes.update)
        self.notes = self.notes.with_items(key, (*self.notes.of(key), entry))

    def _replace(self, operation: Replace) -> None:
        key, old = self._found(operation.id)
        text, sources = self._said(key, operation.text, operation.sources)
        status = _status(operation.status) or old.status
        if status != old.status and status in _ENDED:
            raise _Refused("what is done is resolved, with the message that shows it")
        sources = (*old.sources, *sources) if key not in _QUOTED else sources
        self._put(key, item(old.id, text, status, sources[-_SOURCES:], self.notes.update))

    def _resolve(self, operation: Resolve) -> None:
        key, old = self._found(operation.id)
        if key in _QUOTED:
            raise _Refused("what the user said is taken back by the user alone: obsolete, with the message")
        worked = self.evidence.deeds if key == "tasks" else self.evidence.successes
        shown = operation.evidence in worked or operation.evidence in self.evidence.confirmations
        if not shown or not self.evidence.newer(operation.evidence, old.sources):
            raise _Refused("no call that worked since, and no user who confirms it, stands in that message")
        if key == "tasks":
            self._remove(key, replace(old, status=DONE, sources=(*old.sources, operation.evidence)), DONE)
        else:
            sources = (*old.sources, operation.evidence)
            self._put(key, replace(old, status=RESOLVED, sources=sources, update=self.notes.update))

    def _obsolete(self, operation: Obsolete) -> None:
        key, old = self._found(operation.id)
        by_user = operation.evidence in self.evidence.said
        if key in _ASKED and not (by_user and self.evidence.newer(operation.evidence, old.sources)):
            raise _Refused("what the user asked for is taken back by a later message of the user alone")
        self._remove(key, old, "obsolete")

    def _said(self, key: SectionKey, text: str, sources: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The text without secrets, and where it comes from; refused where it should be a quotation and is none."""
        text = clean(redact(text))
        if not text:
            raise _Refused("it says nothing")
        if unknown := [source for source in sources if source not in self.evidence.places]:
            raise _Refused(f"there is no message {unknown[0]}")
        if key not in _QUOTED:
            return text, tuple(sources)
        quoted_from = self.evidence.quoted_from(text)
        if not quoted_from:
            raise _Refused("the user did not say this word for word")
        return text, (quoted_from,)

    def _found(self, ident: str) -> tuple[SectionKey, Item]:
        found = self.notes.find(ident)
        if found is None:
            raise _Refused(f"there is no item {ident}")
        return found

    def _put(self, key: SectionKey, entry: Item) -> None:
        self.notes = self.notes.with_items(key, (entry if e.id == entry.id else e for e in self.notes.of(key)))

    def _remove(self, key: SectionKey, entry: Item, reason: str) -> None:
        self.gone.append(Dropped(key, entry, reason))
        self.notes = self.notes.with_items(key, (e for e in self.notes.of(key) if e.id != entry.id))

    def _new_id(self, key: SectionKey) -> str:
        return next(self._new_ids(key))

    def _new_ids(self, key: SectionKey) -> Iterator[str]:
        """Ids that no item has, nor had: they begin with the number of the update."""
        stem = f"{BY_KEY[key].letter}{self.notes.update}-"
        of_key = [*self.notes.of(key), *(dropped.item for dropped in self.gone if dropped.key == key)]
        numbers = [int(entry.id.removeprefix(stem)) for entry in of_key if entry.id.startswith(stem)]
        return (f"{stem}{number}" for number in count(max(numbers, default=0) + 1))


_SOURCES = 6
"""An item keeps the newest of its sources: a file that is edited daily needs no list of all the days."""


def _status(status: str) -> str:
    plain = status.strip().lower().replace("_", " ")
    if plain and not STATUS.fullmatch(plain):
        raise _Refused(f"{status!r} is no status")
    return plain
