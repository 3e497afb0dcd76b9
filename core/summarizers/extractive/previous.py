"""Reads a summary back: one of our own section by section, a client's by its headings, so that it can be updated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from core.facts.statements import units
from core.facts.text import cut, one_line, sentences
from core.summarizers.extractive.items import Item
from core.summarizers.extractive.sections import FOUND, MARK, NOTHING, SECTIONS, Section, split_ledger

_BULLET = re.compile(r"^- (?:\(([a-z ]{2,24})\) ?)?(?:\[([0-9A-Za-z-]{1,8})\] ?)?(.*)$")
_LABELLED = re.compile(r"^- ([^`\[(\n]{2,40}:)$")
_MORE = re.compile(r"^- \((\d+) more left out")
_COUNTS = re.compile(r"\b(\d{1,9}) messages,(?: without a model;)? (\d{1,9}) parts left out")
_FENCE = re.compile(r"^~{3,}$")
_HEADINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(words, re.IGNORECASE), key)
    for words, key in (
        (r"user messages?|user requests?|user said", "messages"),
        (r"request|intent|goal|objective", "messages"),
        (r"constraint|preference|instruction|rules", "rules"),
        (r"pending|to-?do|open|remaining|tasks", "tasks"),
        (r"error|fix|mistake", "findings"),
    )
)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+|\*\*)?(?:\d{1,2}\.\s+)?\**([A-Z][A-Za-z ,&/-]{3,60}?)\**:?\**\s*$")
_LEDGER: dict[str, tuple[str, str]] = {
    "last request": ("messages", ""),
    "constraint": ("rules", ""),
    "todo": ("tasks", "todo"),
    "plan": ("tasks", "plan"),
    "skill in use": ("tasks", "skill in use"),
    "failure": ("errors", ""),
    "file": ("files", ""),
}
"""Where a line of a ledger belongs: the section, and the word before it there."""
UNPLACED = "unplaced"
"""The key of what earlier summaries left out, where they do not say of which section it was."""
_CLIENT_ITEMS = 400
_CLIENT_CHARS = 400
"""Of somebody else's summary that many sentences of that length: clients' own have 60 to 250."""


@dataclass(slots=True)
class Earlier:
    """What an earlier summary holds: items by section (places in time below 0), and what it counted."""

    items: dict[str, list[Item]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    messages: int = 0

    def of(self, key: str) -> list[Item]:
        """The items of one section, oldest first."""
        return self.items.get(key, [])


def read_back(summaries: Sequence[str]) -> Earlier:
    """The contents of earlier summaries, oldest first, as one."""
    out = Earlier()
    for whole in summaries:
        text, ledger = split_ledger(whole)
        for line in ledger.splitlines():
            _ledger_line(out, line)
        text, _, found = text.partition(f"\n{FOUND}\n")
        if found:
            _ours(out, f"{FOUND}\n{found}")
        if mark := MARK.search(text):
            _ours(out, text[mark.start() :])
        else:
            _foreign(out, text)
    total = sum(map(len, out.items.values()))
    n = -total
    for key in (s.key for s in SECTIONS):
        placed = []
        for item in out.of(key):
            placed.append(Item(item.text, item.rank, n, item.id, item.tag))
            n += 1
        out.items[key] = placed
    return out


def _ours(out: Earlier, text: str) -> None:
    body = text.partition("\n")[2]
    counted = _COUNTS.search(text[:2_000])
    out.messages += int(counted[1]) if counted else 0
    before = sum(out.left_out.values())
    titles = {title: s for s in SECTIONS for title in (s.title, s.short)}
    section: Section | None = None
    for block in _blocks(body):
        if block.startswith("## "):
            section = titles.get(block[3:].strip())
            if section is None:
                section = titles["How problems were solved"]
        elif section is not None:
            _bullet(out, section, block)
    if counted:
        in_sections = sum(out.left_out.values()) - before
        out.left_out[UNPLACED] = out.left_out.get(UNPLACED, 0) + max(0, int(counted[2]) - in_sections)


def _blocks(body: str) -> Iterator[str]:
    """Lines, a fenced text together with the line before it; nested bullets with their label in front."""
    held: list[str] = []
    fence = ""
    label = ""
    for line in body.split("\n"):
        if fence:
            held.append(line)
            if line == fence:
                fence = ""
        elif _FENCE.match(line) and held:
            fence = line
            held.append(line)
        elif line.startswith("  - ") and label:
            yield from _flush(held)
            nested = _BULLET.match(line[2:])
            held = [f"- [{nested[2] or '-'}] {label} {nested[3]}"] if nested else []
        else:
            yield from _flush(held)
            labelled = _LABELLED.match(line)
            label = labelled[1] if labelled else ""
            held = [] if labelled else [line]
    yield from _flush(held)


def _flush(held: list[str]) -> Iterator[str]:
    if held:
        yield "\n".join(held)


def _bullet(out: Earlier, section: Section, block: str) -> None:
    first, _, rest = block.partition("\n")
    more = _MORE.match(first)
    match = _BULLET.match(first)
    if more:
        out.left_out[section.key] = out.left_out.get(section.key, 0) + int(more[1])
    elif match and block != NOTHING:
        text = match[3] + ("\n" + rest if rest else "")
        out.items.setdefault(section.key, []).append(Item(text, id=(match[2] or "").strip("-"), tag=match[1] or ""))


def _ledger_line(out: Earlier, line: str) -> None:
    match = _BULLET.match(line)
    if match and match[1] in _LEDGER:
        key, tag = _LEDGER[match[1]]
        out.items.setdefault(key, []).append(Item(match[3], id=match[2] or "", tag=tag))


def _foreign(out: Earlier, text: str) -> None:
    """Somebody else's summary: its lists and sentences, under the section that its headings speak of."""
    key = "findings"
    count = 0
    fenced = False
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif heading:
            key = next((k for pattern, k in _HEADINGS if pattern.search(heading[1])), "findings")
        elif not fenced and count < _CLIENT_ITEMS:
            if key == "messages":
                out.items.setdefault("rules", []).extend(Item(unit) for unit in units(line))
            for sentence in sentences(line):
                out.items.setdefault(key, []).append(Item(cut(one_line(sentence), _CLIENT_CHARS)))
                count += 1
