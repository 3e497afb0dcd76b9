"""What code appends to every summary that a model wrote: open tasks, rules, changed files, an index of names.

A model forgets names and small rules.  All of it is found by rule in what was summarised, so it is true; what the
text holds already is not said again.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.facts.text import one_line
from core.summarizers.base import SummaryRequest
from core.summarizers.extractive.items import Item
from core.summarizers.extractive.render import names_index
from core.summarizers.extractive.sections import FOUND, SECTIONS
from core.summarizers.extractive.summarizer import drafted

_SHARES = (("tasks", 0.25), ("rules", 0.3), ("files", 0.2))
"""Of the room, in order; what a section leaves, and the rest, is for the names: the index is what is needed most."""
_INDEX_CHARS = 24
"""What stands around the two lines of the index."""
_TITLES = {section.key: section.short for section in SECTIONS}


def mechanical(request: SummaryRequest, said: str, room_chars: int) -> str:
    """The part for a text that says so much, at most `room_chars` long; "" where nothing is to be added."""
    draft = drafted(request)
    known = _folded(said)
    out: list[str] = []
    room = room_chars - len(FOUND) - 1
    for key, share in _SHARES:
        missing = [item for item in draft.sections[key] if not _holds(known, key, item)]
        if lines := _fitting(missing, min(room, int(share * room_chars)) - len(_heading(key))):
            out += [_heading(key), *lines]
            room -= sum(len(line) + 1 for line in out[-len(lines) - 1 :])
    written = "\n".join([said, *out])
    if names := names_index(draft.talk.names, written, room - len(_heading("names")) - _INDEX_CHARS):
        out += [_heading("names"), *(f"- {line}" for line in names)]
    return "\n".join([FOUND, *out]) if out else ""


def _heading(key: str) -> str:
    return f"\n## {_TITLES[key]}"


def _holds(known: str, key: str, item: Item) -> bool:
    """Whether a text says what an item says; of a file its path is enough, and of one that was only read, no word."""
    if key == "files":
        path, _, what = item.text.partition("`: ")
        return what.startswith("read") or _folded(path.removeprefix("`")) in known
    if item.tag == "todo":
        return _folded(item.text.rpartition(" (")[0]) in known
    return _folded(item.text) in known


def _folded(text: str) -> str:
    return one_line(text.replace("`", "'")).casefold()


def _fitting(items: Sequence[Item], room: int) -> list[str]:
    """The best items that fit, in the order of time."""
    chosen = []
    for at in sorted(range(len(items)), key=lambda n: (-items[n].rank, -n)):
        line = _bullet(items[at])
        if len(line) + 1 <= room:
            chosen.append(at)
            room -= len(line) + 1
    return [_bullet(items[at]) for at in sorted(chosen)]


def _bullet(item: Item) -> str:
    return f"- {f'({item.tag}) ' if item.tag else ''}{item.text}"
