"""Fits the sections into the room that there is, and writes them down.

Room is given out in three passes: items that must be there, each section's share by rank (what it leaves flows down),
then what is left, in order of priority.  The names index has room set aside, and takes the rest at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.facts.cues import LABEL
from core.facts.names import Names, names_in
from core.facts.text import cut
from core.summarizers.extractive.items import MUST, Item
from core.summarizers.extractive.sections import NOTHING, PRIORITY, SECTIONS, Section

SMALL_CHARS = 3_000
"""A smaller summary has room for content only: short headings, no message ids, no empty sections."""
_NAMES_CHARS = 4_500
_NAMES_PART = 0.44
"""Set aside for names: on 11 real sessions a summary of 12,400 characters with such an index held .93 of the paths and
.80 of the symbols that were needed next."""
_NAMES_MOST = 8_000
_NAMES_LEAST = 200
"""A shorter index would be a heading with a few names that nobody can place."""
_PATHS_PART = 0.45
"""Of the index; a path is four times as long as a symbol."""
_SMALL_SHARES = {"rules": 0.85}
_MUST_PART = {"tasks": 0.25, "work": 0.18, "next": 0.05, "files": 0.14}
"""Items that must be there may take more than their section's share, up to this part of the whole."""
_MORE_CHARS = 48
"""What the line that counts the left out items takes."""
_GUARDED = re.compile(r"^(?:[(\[]|none$|[^`\[(\n]{2,40}:$)")
"""Texts that would be read back as something else: they get an empty id in front."""


@dataclass(slots=True)
class _Part:
    section: Section
    items: Sequence[Item]
    chosen: set[int] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    used: int = 0


class Page:
    """A summary being filled; `room_chars` is what is left of it."""

    def __init__(
        self, sections: Mapping[str, Sequence[Item]], earlier: Mapping[str, int], room_chars: int, small: bool
    ) -> None:
        self.small = small
        self.room = room_chars
        self.earlier = earlier
        self.parts = {s.key: _Part(s, sections.get(s.key, ())) for s in SECTIONS}
        self.whole = room_chars
        if not small:
            self.room -= sum(
                len(f"\n## {s.title}\n{NOTHING}\n")
                + (_MORE_CHARS if self.parts[s.key].items or earlier.get(s.key) else 0)
                for s in SECTIONS
            )

    def fill(self, names: Names) -> None:
        """Chooses what is kept; the items of a section that does not fit whole are counted, never cut silently."""
        kept_back = 0 if self.small else min(_NAMES_CHARS, int(self.whole * _NAMES_PART), names.size_chars())
        self.room -= kept_back
        shared = self.room
        for key in PRIORITY:
            self._must(self.parts[key])
        spare = 0
        for key in PRIORITY:
            part = self.parts[key]
            share = _SMALL_SHARES.get(key, 0.0) if self.small else part.section.share
            allowed = int(share * shared) + spare
            self._take(part, min(self.room, allowed - part.used))
            spare = max(0, allowed - part.used)
        for key in PRIORITY:
            self._take(self.parts[key], self.room)
        self._index(names)

    def left_out(self) -> dict[str, int]:
        """How many items of each section found no room, now and in the summaries that this one updates."""
        counts = {key: len(p.items) - len(p.chosen) + self.earlier.get(key, 0) for key, p in self.parts.items()}
        return {key: count for key, count in counts.items() if count}

    def text(self) -> str:
        """The sections, in the order of reading."""
        return "".join(self._written(part) for part in self.parts.values())

    def _must(self, part: _Part) -> None:
        most = int(_MUST_PART.get(part.section.key, 1.0) * self.whole)
        for n in _by_rank(part.items):
            item = part.items[n]
            if item.rank < (MUST if self.small else MUST / 2):
                break
            limit = min(self.room, most - part.used)
            if self._cost(part, item) > limit and part.section.key == "request":
                item = _shortened(item, limit - self._cost(part, Item("", tag=item.tag, id=item.id)))
                part.items = [*part.items[:n], item, *part.items[n + 1 :]]
            if item.text and self._cost(part, item) <= limit:
                self._choose(part, n)

    def _take(self, part: _Part, limit: int) -> None:
        for n in _by_rank(part.items, density=self.small):
            if n not in part.chosen and (cost := self._cost(part, part.items[n])) <= limit:
                self._choose(part, n)
                limit -= cost

    def _choose(self, part: _Part, n: int) -> None:
        cost = self._cost(part, part.items[n])
        part.chosen.add(n)
        part.used += cost
        self.room -= cost
        part.labels.add(_label(part.items[n].text))

    def _cost(self, part: _Part, item: Item) -> int:
        heading = len(f"\n## {part.section.short}\n") if self.small and not part.chosen else 0
        label = _label(item.text) if self.small and part.section.key == "rules" else ""
        if not label:
            return heading + len(self._bullet(item)) + 1
        rest = Item(item.text[len(label) :].strip(), id=item.id)
        return heading + len(self._bullet(rest)) + 3 + (0 if label in part.labels else len(label) + 3)

    def _bullet(self, item: Item) -> str:
        tag = f"({item.tag}) " if item.tag else ""
        shown = "" if self.small else item.id
        if not shown and _GUARDED.match(item.text):
            shown = "-"
        mark = f"- {tag}{f'[{shown}] ' if shown else ''}"
        return (mark.rstrip() if item.text.startswith("\n") else mark) + item.text

    def _written(self, part: _Part) -> str:
        chosen = [part.items[n] for n in sorted(part.chosen)]
        lines = (
            self._grouped(chosen) if self.small and part.section.key == "rules" else [self._bullet(i) for i in chosen]
        )
        if self.small:
            return "\n".join(["", f"## {part.section.short}", *lines, ""]) if lines else ""
        if missing := self.left_out().get(part.section.key):
            lines.append(f"- ({missing} more left out: see the transcript)")
        return "\n".join(["", f"## {part.section.title}", *(lines or [NOTHING]), ""])

    def _grouped(self, items: Sequence[Item]) -> list[str]:
        groups: dict[str, list[Item]] = {}
        for n, item in enumerate(items):
            groups.setdefault(_label(item.text) or f"\n{n}", []).append(item)
        lines: list[str] = []
        for label, members in groups.items():
            if len(members) == 1:
                lines.append(self._bullet(members[0]))
            else:
                lines += [
                    f"- {label}",
                    *("  " + self._bullet(Item(i.text[len(label) :].strip(), id=i.id)) for i in members),
                ]
        return lines

    def _index(self, names: Names) -> None:
        """The names that stand nowhere else in the summary, in all the room that is really left."""
        written = self.text()
        room = self.whole - len(written) - (len("\n## Names\n") if self.small else 0)
        part = self.parts["names"]
        part.items = [Item(line) for line in names_index(names, written, room)]
        part.chosen = set(range(len(part.items)))


def names_index(names: Names, written: str, room_chars: int) -> list[str]:
    """A line of paths and one of symbols, of those that do not stand in a text; none where there is too little room."""
    room = min(room_chars, _NAMES_MOST)
    if room < _NAMES_LEAST:
        return []
    paths, symbols = names.ranked(without={n for found in names_in(written) for n in found})
    shown_paths = _fitting(paths, ", ", int(room * _PATHS_PART) if symbols else room)
    shown_symbols = _fitting(symbols, " ", room - len(shown_paths))
    return [f"{kind}: {text}" for kind, text in (("paths", shown_paths), ("symbols", shown_symbols)) if text]


def _fitting(names: Sequence[str], between: str, room: int) -> str:
    room -= len("- symbols: \n")
    shown: list[str] = []
    for name in names:
        if len(name) + len(between) <= room:
            shown.append(name)
            room -= len(name) + len(between)
        elif room < 8:
            break
    return between.join(shown)


def _by_rank(items: Sequence[Item], density: bool = False) -> list[int]:
    """Indices, the best first, of equals the newest; `density`: worth per room, for when there is little of it."""
    return sorted(
        range(len(items)), key=lambda n: (-items[n].rank / (len(items[n].text) + 20) if density else -items[n].rank, -n)
    )


def _shortened(item: Item, limit: int) -> Item:
    return Item(cut(item.text.strip(), limit) if limit > 20 else "", item.rank, item.at, item.id, item.tag)


def _label(text: str) -> str:
    match = LABEL.match(text)
    return match[0].strip() if match and match[1] else ""
