"""A transcript without its secrets: the rows of a copy, and the files of its store.

A signature binds thinking to all that was sent before it: behind the first message that had a secret, thinking goes,
and rows that held nothing else go with it; what hung off them hangs off their parents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from core.errors import Damaged
from core.model import JSON, is_thinking
from core.redact.text import Hit, marked, secrets_in
from core.redact.values import Place, redact_json
from core.transcript.blob import json_bytes
from core.transcript.decode import decode_json
from core.transcript.page import Body, count_lines
from core.transcript.records import TYPE

_SENT = frozenset({"message", "attachment", "rendered", "content"})
"""The fields that a message is made of."""
_LINKS = ("parentUuid", "logicalParentUuid", "leafUuid")
_NOTES = ("compactMetadata", "foldmark")
"""Fields of a boundary that name rows."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row with secrets: its number (from 1), the row (None where the line is no JSON object), and the places."""

    line: int
    row: dict[str, JSON] | None
    places: list[Place]


@dataclass(slots=True)
class Copy:
    """Rewrites the rows of one transcript, in file order, for the session that the copy is."""

    old_id: str
    new_id: str
    found: list[Found] = field(default_factory=list)
    _changed: bool = False
    """Whether a message that is sent was changed."""
    _parents: dict[str, str | None] = field(default_factory=dict)
    """Of rows that are gone: what their children hang off now."""
    _children: dict[str, str] = field(default_factory=dict)
    """Of rows that are gone: the first row that is there and hung off them."""

    def rows(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The rows of the copy with their line ends; Foldmark's own records are left out, they describe the source."""
        for number, line in enumerate(lines, 1):
            raw = line.rstrip(b"\n")
            try:
                value = decode_json(raw) if raw.strip() else None
            except Damaged:
                yield self._text(number, raw)
                continue
            if isinstance(value, dict):
                row = self._row(number, value)
                if row is not None:
                    yield self._encoded(row)

    def _text(self, number: int, raw: bytes) -> bytes:
        text = raw.decode("utf-8", "surrogateescape")
        hits = secrets_in(text)
        self._note(number, None, [Place((), hit) for hit in hits])
        return marked(text, hits).encode("utf-8", "surrogateescape") + b"\n"

    def _row(self, number: int, old: dict[str, JSON]) -> dict[str, JSON] | None:
        if old.get("type") == TYPE:
            return None
        new, places = redact_json(old)
        self._note(number, old, places)
        row = dict(new) if isinstance(new, dict) else old
        if self._changed:
            row = _without_thinking(row)
        elif any(place.path[0] in _SENT for place in places):
            self._changed = True
            row = _without_thinking(row, {place.path[2] for place in places if place.path[2:]})
        uuid = row.get("uuid")
        before = row.get("parentUuid")
        if _is_empty(row) and isinstance(uuid, str):
            above = self._linked(before)
            self._parents[uuid] = above if isinstance(above, str) and above != uuid else None  # else a loop
            return None
        self._parents.pop(str(uuid), None)  # a row that stands twice: this one is there
        while isinstance(before, str) and before in self._parents:
            self._children.setdefault(before, str(uuid))
            before = self._parents[before]
        for key in _LINKS:
            if key in row:
                row[key] = self._linked(row[key])
        for key in _NOTES:
            if key in row:
                row[key] = self._renamed(row[key])
        if "sessionId" in row:
            row["sessionId"] = self.new_id
        return row

    def _note(self, number: int, row: dict[str, JSON] | None, places: list[Place]) -> None:
        if places:
            self.found.append(Found(number, row, places))

    def _linked(self, uuid: JSON) -> JSON:
        while isinstance(uuid, str) and uuid in self._parents:
            uuid = self._parents[uuid]
        return uuid

    def _renamed(self, value: JSON) -> JSON:
        if isinstance(value, dict):
            return {
                key: self._first_left(item) if key == "headUuid" else self._renamed(item) for key, item in value.items()
            }
        if isinstance(value, list):
            return [item for item in value if not (isinstance(item, str) and item in self._parents)]
        return self._linked(value)

    def _first_left(self, uuid: JSON) -> JSON:
        return self._children.get(uuid, uuid) if isinstance(uuid, str) and uuid in self._parents else uuid

    def _encoded(self, row: dict[str, JSON]) -> bytes:
        """The row; what it says about the place of a stored output is true of the copy."""
        old, new = (f"/{ident}/tool-results/".encode() for ident in (self.old_id, self.new_id))
        return json_bytes(row).replace(old, new) + b"\n"


def _without_thinking(row: dict[str, JSON], only: set[str | int] | None = None) -> dict[str, JSON]:
    """The row without its thinking, or without that at some places of its content."""
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or not isinstance(message, dict):
        return row
    kept = [b for at, b in enumerate(content) if not (is_thinking(b) and (only is None or at in only))]
    return row if len(kept) == len(content) else {**row, "message": {**message, "content": list[JSON](kept)}}


def _is_empty(row: dict[str, JSON]) -> bool:
    message = row.get("message")
    return row.get("type") == "assistant" and isinstance(message, dict) and message.get("content") == []


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store without its secrets, what is on it, and the hits with their lines (from 1) and bodies' ids."""

    content: bytes
    bodies: list[Body]
    hits: list[tuple[str, int, Hit]]


def redact_stored(raw: bytes, bodies: Sequence[Body]) -> StoredFile:
    """A file of a store and its bodies, some of them within others; each part between their edges is taken by itself.

    Images and documents stay as they are: they are no texts.
    """
    if any(body.kind in ("image", "document") for body in bodies):
        return StoredFile(raw, [*bodies], [])
    inside = [b for b in bodies if 0 <= b.offset <= b.offset + b.size <= len(raw)]  # an index may be damaged
    edges = sorted({0, len(raw), *(edge for b in inside for edge in (b.offset, b.offset + b.size))})
    moved, out, hits = {0: 0}, bytearray(), []
    for start, end in pairwise(edges):
        part = raw[start:end].decode("utf-8", "surrogateescape")
        around = [b for b in inside if b.offset <= start and end <= b.offset + b.size]
        ident = min(around, key=lambda b: b.size).id if around else ""
        found = secrets_in(part)
        first = 1 + raw.count(b"\n", 0, start)
        hits += [(ident, first + part.count("\n", 0, hit.start), hit) for hit in found]
        out += marked(part, found).encode("utf-8", "surrogateescape")
        moved[end] = len(out)
    content = bytes(out)
    return StoredFile(content, [_moved(b, content, moved[b.offset], moved[b.offset + b.size]) for b in inside], hits)


def _moved(body: Body, content: bytes, start: int, end: int) -> Body:
    piece = content[start:end]
    return msgspec.structs.replace(
        body,
        offset=start,
        size=len(piece),
        line=1 + content.count(b"\n", 0, start),
        lines=count_lines(piece),
        sha256=hashlib.sha256(piece).hexdigest(),
    )
