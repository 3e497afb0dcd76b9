"""The parts that a summary is made of, before anybody knows which of them find room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.facts.text import one_line

MUST = 1_000.0
"""The rank of an item that is kept whatever the room: it is cut, not dropped."""


@dataclass(frozen=True, slots=True)
class Item:
    """One bullet: its text, how much it is worth, its place in time, the message it is from, and a word before it."""

    text: str
    rank: float = 0.0
    at: int = 0
    id: str = ""
    tag: str = ""


def ranked(items: Sequence[Item], rank: float) -> list[Item]:
    """The items, all of one rank: what an earlier summary held as a must is one again."""
    return [Item(i.text, rank, i.at, i.id, i.tag) for i in items]


def without_repeats(items: list[Item]) -> list[Item]:
    """The items, of each text only the last one, in order; a repeat counts no more than one."""
    last: dict[str, Item] = {}
    for item in items:
        key = one_line(item.text.lower())
        last.pop(key, None)
        last[key] = item
    return list(last.values())
