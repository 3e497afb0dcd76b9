"""Notes as Markdown and back: `parse(render(notes)) == notes`, and nothing that a person wrote is lost.

    # Session memory
    <!-- foldmark {"session":"1111...","update":7,"covers":"0000...","archived":{"log":3}} -->

    ## Open tasks
    - [t7-1] (open) Rename the module
      and its tests <!-- 7 from 00000000-0000-4000-8000-000000000006 -->

Comments say where an item comes from; a model that reads the notes gets them without.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from core.memory.notes import ID, SECTIONS, STATUS, Item, Notes, SectionKey, clean, item
from core.model import UNDECODABLE

TITLE = "# Session memory"
_HINT = "Kept by Foldmark, and yours to edit: what you write stays."
_HEAD = re.compile(r"<!-- foldmark (\{.*\}) -->")
_ID_MARK = re.compile(rf"\[({ID.pattern})?\] ")
_STATUS_MARK = re.compile(rf"\(({STATUS.pattern})?\) ")
_ORIGIN = re.compile(r"(.*) <!-- (\d{1,9})(?: from ([^<>]+))? -->", re.DOTALL)
_POINTER = re.compile(r"\(\d+ more in archive\.md\)")
_BULLETS = ("- ", "* ")
_INDENT = "  "
_EMPTY_LINE = re.compile(rf"(?<=\n){_INDENT}(?=\n)")
_BY_HEADING = {section.heading.casefold(): section.key for section in SECTIONS}


class _Head(msgspec.Struct, frozen=True, omit_defaults=True):
    session: str = ""
    update: int = 0
    covers: str = ""
    archived: dict[SectionKey, int] = {}


def render(notes: Notes) -> str:
    """The file."""
    head = _Head(notes.session, notes.update, notes.covers, dict(notes.archived))
    encoded = msgspec.json.encode(head).decode().replace(">", "\\u003e")
    blocks = [f"{TITLE}\n<!-- foldmark {encoded} -->\n\n{_HINT}"]
    blocks += [notes.prose[""]] if notes.prose.get("") else []
    for section in SECTIONS:
        lines = [f"## {section.heading}"]
        lines += [notes.prose[section.key]] if notes.prose.get(section.key) else []
        lines += [_written(entry, origin=True) for entry in notes.of(section.key)]
        lines += [pointer(count)] if (count := notes.archived.get(section.key)) else []
        blocks.append("\n".join(lines))
    blocks += [f"## {heading}\n{text}".rstrip() for heading, text in notes.others]
    return "\n\n".join(blocks) + "\n"


def pointer(count: int) -> str:
    """The line that says where the rest of a section is."""
    return f"({count} more in archive.md)"


def shown(entry: Item) -> str:
    """An item as a model reads it: with its id, without where it comes from."""
    return _written(entry, origin=False)


def parse(text: str) -> Notes:
    """The notes that a file holds, whoever wrote it.  Never raises: what is no note of ours is text of a person."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in clean(text).split("\n"):
        if line.startswith("## "):
            blocks.append((line[3:].strip(), []))
        else:
            blocks[-1][1].append(line)
    head, front = _split_head(blocks[0][1])
    items: dict[SectionKey, tuple[Item, ...]] = {}
    prose = {"": front}
    others: list[tuple[str, str]] = []
    for heading, body in blocks[1:]:
        key = _BY_HEADING.get(heading.casefold())
        if key is None:
            others.append((heading, _trimmed(body)))
            continue
        found, rest = _split_items(body)
        items[key] = (*items.get(key, ()), *found)
        prose[key] = "\n".join(filter(None, (prose.get(key, ""), rest)))
    return Notes(
        head.session,
        head.update,
        head.covers,
        {key: entries for key, entries in items.items() if entries},
        {key: rest for key, rest in prose.items() if rest},
        tuple((heading, body) for heading, body in others if heading or body),
        {key: count for key, count in head.archived.items() if count > 0},
    )


def _written(entry: Item, origin: bool) -> str:
    ident = f"[{entry.id}] " if entry.id else ""
    status = f"({entry.status}) " if entry.status else ""
    known = ""
    if origin:
        # What would be read back as a mark gets an empty one in front.
        if not status and _STATUS_MARK.match(entry.text):
            status = "() "
        if not ident and not status and _ID_MARK.match(entry.text):
            ident = "[] "
        came = f" from {' '.join(entry.sources)}" if entry.sources else ""
        known = f" <!-- {entry.update}{came} -->" if entry.update or came or _ORIGIN.fullmatch(entry.text) else ""
    text = entry.text.replace("\n", f"\n{_INDENT}")
    return f"- {ident}{status}{_EMPTY_LINE.sub('', text)}{known}"


def _split_head(lines: Sequence[str]) -> tuple[_Head, str]:
    """What the file says of itself, and what a person wrote in front of the first section."""
    head, rest = _Head(), []
    for line in lines:
        found = _HEAD.fullmatch(line)
        if found:
            with contextlib.suppress(*UNDECODABLE):
                head = msgspec.json.decode(found[1], type=_Head)
                continue
        if line not in (TITLE, _HINT):
            rest.append(line)
    return head, _trimmed(rest)


def _split_items(body: Sequence[str]) -> tuple[list[Item], str]:
    """The items of a section, and all its other text."""
    found: list[list[str]] = []
    rest: list[str] = []
    blanks: list[str] = []
    inside = False
    for line in body:
        if not line.strip() and not line.startswith(_INDENT):
            blanks.append("")
        elif line.startswith(_BULLETS) or line in ("-", "*"):
            found.append([line[2:]])
            inside, blanks = True, []
        elif inside and line.startswith(_INDENT):
            found[-1] += [*blanks, line[len(_INDENT) :]]
            blanks = []
        elif not _POINTER.fullmatch(line.strip()):
            rest += [*blanks, line]
            inside, blanks = False, []
    return [entry for lines in found if (entry := _read_item("\n".join(lines))) is not None], _trimmed(rest)


def _read_item(text: str) -> Item | None:
    origin = _ORIGIN.fullmatch(text.rstrip())
    update, sources = 0, ""
    if origin:
        text, update, sources = origin[1], int(origin[2]), origin[3] or ""
    ident, text = _mark(_ID_MARK, text)
    status, text = _mark(_STATUS_MARK, text)
    return item(ident, text, status, sources.split(), update) if clean(text) else None


def _mark(form: re.Pattern[str], text: str) -> tuple[str, str]:
    """A mark in front of a text, "" where there is none, and the text behind it."""
    found = form.match(text)
    return (found[1] or "", text[found.end() :]) if found else ("", text)


def _trimmed(lines: Iterable[str]) -> str:
    """Lines as one text, without blank ones at its ends."""
    kept = list(lines)
    while kept and not kept[0].strip():
        kept.pop(0)
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept)
