"""Notes as a model reads them: without where each item comes from, every section within its room; and read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.memory.markdown import TITLE, parse, shown
from core.memory.notes import (
    BY_KEY,
    BYTES_PER_TOKEN,
    SECTIONS,
    Item,
    Notes,
    SectionKey,
    cap_tokens,
    cost_tokens,
    tokens_of,
)

_KEPT_LONGEST: tuple[SectionKey, ...] = ("constraints", "tasks", "goal", "names")
"""These may take what the other sections leave."""
_FOREIGN_CAP: SectionKey = "constraints"
"""All that a person added as sections of their own may take as much as this section."""
_COVERS = "They tell of the session up to message {}."
_COVERED = re.compile("^" + re.escape(_COVERS).replace(r"\{\}", r"(\S+)") + "$", re.MULTILINE)
_POINTERS = re.compile(r"^\((?:\d+ (?:more|older ones) in |cut here: ).*\)$", re.MULTILINE)
_LEAST_BYTES = 200
"""A text that is cut shorter than this says nothing any more."""


def brief(notes: Notes, budget_tokens: int, path: str, head: Sequence[str] = ()) -> str:
    """The notes in at most `budget_tokens`; what is cut is counted, with a pointer to the file at `path`.

    `head` are lines in front of the first section.  Newer items stay before older ones.
    """
    caps = _caps(notes, budget_tokens)
    known = [_COVERS.format(notes.covers)] if notes.covers else []
    blocks = ["\n".join([TITLE, *head, *known])]
    if front := notes.prose.get(""):
        blocks.append(_cut(front, caps["title"] + caps["log"], path))
    for section in SECTIONS:
        lines = _lines(notes, section.key, caps[section.key], path)
        if lines:
            blocks.append("\n".join([f"## {section.heading}", *lines]))
    others = "\n\n".join(f"## {heading}\n{text}".rstrip() for heading, text in notes.others)
    if others:
        blocks.append(_cut(others, cap_tokens(BY_KEY[_FOREIGN_CAP], budget_tokens), path))
    return _cut("\n\n".join(blocks), budget_tokens, path) + "\n"


def notes_in(summary: str, session: str) -> Notes | None:
    """The notes that a summary was made of, for the session that goes on with it; None where it is no `brief`.

    Where each item came from is lost: those messages are in another transcript.
    """
    _, mark, text = summary.partition(f"{TITLE}\n")
    if not mark:
        return None
    notes = parse(_POINTERS.sub("", text))
    covers = _COVERED.search(text)
    updates = [int(entry.id[1:].partition("-")[0]) for _, entry in notes.all() if entry.id]
    prose = {key: said for key, said in notes.prose.items() if key}
    return replace(
        notes, session=session, update=max(updates, default=1), covers=covers[1] if covers else "", prose=prose
    )


def _caps(notes: Notes, budget: int) -> Mapping[SectionKey, int]:
    caps = {section.key: cap_tokens(section, budget) for section in SECTIONS}
    used = {key: sum(map(cost_tokens, notes.of(key))) + tokens_of(notes.prose.get(key, "")) for key in caps}
    spare = sum(max(0, cap - used[key]) for key, cap in caps.items())
    for key in _KEPT_LONGEST:
        more = min(spare, max(0, used[key] - caps[key]))
        caps[key] += more
        spare -= more
    return caps


def _lines(notes: Notes, key: SectionKey, cap: int, path: str) -> list[str]:
    """The lines of a section: what a person wrote, then the newest items that find room, oldest first."""
    said = _cut(notes.prose.get(key, ""), cap, path)
    room = cap - tokens_of(said)
    kept: list[Item] = []
    for entry in reversed(notes.of(key)):
        if cost_tokens(entry) > room:
            break
        kept.insert(0, entry)
        room -= cost_tokens(entry)
    lines = [said] if said else []
    lines += map(shown, kept)
    left = len(notes.of(key)) - len(kept)
    if left and not kept:  # one item that is too long alone
        lines.append(_cut(shown(notes.of(key)[-1]), room, path))
        left -= 1
    if left:
        lines.append(f"({left} more in {path})")
    if archived := notes.archived.get(key):
        lines.append(f"({archived} older ones in archive.md beside {path})")
    return lines


def _cut(text: str, cap: int, path: str) -> str:
    """A text of at most so many tokens, or as little as says something, with a pointer to all of it."""
    if tokens_of(text) <= cap:
        return text
    mark = f"…\n(cut here: all of it is in {path})"
    room = max(_LEAST_BYTES, BYTES_PER_TOKEN * cap - len(mark.encode("utf-8", "replace")))
    return text.encode()[:room].decode("utf-8", "ignore").rstrip() + mark
