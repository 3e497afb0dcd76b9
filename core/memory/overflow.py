"""Makes notes fit their room: what gives way, in which order.  What gives way goes to the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from core.facts.text import cut
from core.memory.notes import (
    BY_KEY,
    BYTES_PER_TOKEN,
    SECTIONS,
    Item,
    Notes,
    SectionKey,
    cap_tokens,
    cost_tokens,
    names_tokens,
    tokens_of,
)

_Rule: TypeAlias = tuple[SectionKey, Callable[[Item, int], bool]]
FIRST, UNLISTED = "first", "unlisted"
"""The status of the request that a session began with, and of tasks that its own list does not name any more."""
_OLD_UPDATES = 3
"""Decisions of the last three updates stay longer than older ones."""
_ORDER: tuple[_Rule, ...] = (
    ("log", lambda _item, _update: True),
    ("names", lambda _item, _update: True),
    ("commands", lambda _item, _update: True),
    ("files", lambda item, _update: item.status == "read"),
    ("errors", lambda item, _update: item.status == "resolved"),
    ("decisions", lambda item, update: item.update <= update - _OLD_UPDATES),
)
"""What gives way to all else, oldest first."""
_LAST_RESORT: tuple[_Rule, ...] = (
    ("tasks", lambda item, _update: item.status == UNLISTED),
    ("goal", lambda item, _update: item.status != FIRST),
    ("files", lambda _item, _update: True),
    ("errors", lambda _item, _update: True),
    ("decisions", lambda _item, _update: True),
    ("state", lambda _item, _update: True),
)
"""What gives way so that the notes have an end at all.  Constraints, open tasks and the first request never do."""
_LINES = 20
"""Of the log."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """An item that left the notes, and why: `done`, `obsolete`, `no room`, `shortened` (its whole text)."""

    key: SectionKey
    item: Item
    reason: str


def fit(notes: Notes, budget_tokens: int) -> tuple[Notes, tuple[Dropped, ...]]:
    """The notes within their room, section by section and in all, and what had to go."""
    notes, gone = _shortened(notes, budget_tokens)
    for section in SECTIONS:
        if section.key != "names":
            rules = [rule for rule in (*_ORDER, *_LAST_RESORT) if rule[0] == section.key]
            over = sum(map(cost_tokens, notes.of(section.key))) - cap_tokens(section, budget_tokens)
            notes, more = _drop(notes, rules, over)
            gone += more
    spare_lines = len(notes.of("log")) - _LINES
    if spare_lines > 0:
        lines = notes.of("log")
        gone += [Dropped("log", line, "no room") for line in lines[:spare_lines]]
        notes = notes.with_items("log", lines[spare_lines:])
    notes = _with_names(notes, budget_tokens)
    notes, more = _drop(notes, (*_ORDER, *_LAST_RESORT), used_tokens(notes) - budget_tokens)
    gone += more
    counts = Counter(dropped.key for dropped in gone if dropped.reason == "no room")
    archived = {key: notes.archived.get(key, 0) + counts[key] for key in (*notes.archived, *counts)}
    return replace(notes, archived=archived), tuple(gone)


def used_tokens(notes: Notes) -> int:
    """What the notes take in a context, but for headings."""
    words = sum(tokens_of(text) for text in (*notes.prose.values(), *(text for _, text in notes.others)))
    return words + sum(cost_tokens(entry) for _, entry in notes.all())


def _drop(notes: Notes, rules: tuple[_Rule, ...] | list[_Rule], over_tokens: int) -> tuple[Notes, list[Dropped]]:
    """Let items give way, by the rules in their order and each time the oldest first, until enough is free."""
    gone: dict[str, Dropped] = {}
    for key, entry in _candidates(notes, rules):
        if over_tokens <= 0:
            break
        if entry.id not in gone:
            gone[entry.id] = Dropped(key, entry, "no room")
            over_tokens -= cost_tokens(entry)
    for key in {dropped.key for dropped in gone.values()}:
        notes = notes.with_items(key, (entry for entry in notes.of(key) if entry.id not in gone))
    return notes, list(gone.values())


def _candidates(notes: Notes, rules: tuple[_Rule, ...] | list[_Rule]) -> Iterator[tuple[SectionKey, Item]]:
    for key, gives_way in rules:
        for entry in sorted(notes.of(key), key=lambda entry: entry.update):
            if gives_way(entry, notes.update):
                yield key, entry


def _with_names(notes: Notes, budget_tokens: int) -> Notes:
    """The notes with an index of names that fits the room which is left; what is cut off it can be found again."""
    room = names_tokens(budget_tokens, used_tokens(notes.with_items("names", ())))
    used = sum(map(cost_tokens, notes.of("names")))
    if used <= room:
        return notes
    cut_items = []
    for entry in notes.of("names"):
        share = room * cost_tokens(entry) // used * BYTES_PER_TOKEN - _FRAME_BYTES
        whole = entry.text.encode("utf-8", "replace")[: max(0, share)].decode("utf-8", "ignore").rpartition(" ")[0]
        cut_items.append(replace(entry, text=whole.rstrip(", ")))
    return notes.with_items("names", (entry for entry in cut_items if entry.text))


def _shortened(notes: Notes, budget_tokens: int) -> tuple[Notes, list[Dropped]]:
    """The notes without items that are longer than their whole section may be."""
    gone = []
    for key, entry in [found for found in notes.all() if found[0] != "names"]:
        cap = cap_tokens(BY_KEY[key], budget_tokens)
        if cost_tokens(entry) > cap:
            gone.append(Dropped(key, entry, "shortened"))
            wide = len(entry.text.encode("utf-8", "replace")) / len(entry.text)
            room = int((cap * BYTES_PER_TOKEN - _FRAME_BYTES) / wide)
            short = replace(entry, text=cut(entry.text, max(room, _LEAST_CHARS), tail=room // 4).strip())
            notes = notes.with_items(key, (short if e.id == entry.id else e for e in notes.of(key)))
    return notes, gone


_FRAME_BYTES = 40
"""Id, status and marks of an item."""
_LEAST_CHARS = 20
