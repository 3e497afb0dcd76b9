"""Which files were read and changed, how often, and what the changes were about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.facts.changes import definitions, touched
from core.facts.scan import Talk
from core.facts.text import code
from core.summarizers.extractive.items import MUST, Item

_BACK = re.compile(r"^`([^`]+)`:? ?(.*)$")
_COUNT = re.compile(r"(created|edited|read|deleted) ?(\d*)")
_DEFINITIONS = 4
"""How many of the newest definitions of a changed file are named."""


@dataclass(slots=True)
class _File:
    path: str
    at: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    about: dict[str, None] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return any(self.counts.get(k) for k in ("created", "edited", "deleted"))

    def item(self, recency: float) -> Item:
        done = ", ".join(
            f"{k} {n}" if n > 1 else k for k in ("created", "deleted", "edited", "read") if (n := self.counts.get(k, 0))
        )
        about = list(self.about)[-_DEFINITIONS:] if self.changed else []
        names = f"; {', '.join(about)}" if about else ""
        return Item(f"{code(self.path)}: {done}{names}", recency + (MUST - 6 if self.changed else 0.0), self.at)


def files(talk: Talk, earlier: Sequence[Item]) -> list[Item]:
    """A bullet per file: changed ones before those only read, the last touched first when room is short."""
    found: dict[str, _File] = {}
    for item in earlier:
        _take_back(found, item)
    for call in talk.calls:
        for path, what in touched(call):
            file = found.setdefault(path, _File(path))
            file.at = call.at
            file.counts[what] = file.counts.get(what, 0) + 1
            for name in definitions(call) if what != "read" else ():
                file.about.pop(name, None)
                file.about[name] = None
    return sorted((f.item(talk.recency(f.at)) for f in found.values()), key=lambda i: i.at)


def _take_back(found: dict[str, _File], item: Item) -> None:
    """A bullet of an earlier summary, so that its counts go on."""
    match = _BACK.match(item.text)
    if not match:
        return
    counts, _, about = match[2].partition("; ")
    file = found.setdefault(match[1], _File(match[1], item.at))
    for what, number in _COUNT.findall(counts):
        file.counts[what] = int(number or 1)
    file.about = dict.fromkeys(filter(None, about.split(", ")))
