"""Set or take out one member of a JSON file and leave every other byte as it is: comments, order, spacing.

Hosts let people write comments and trailing commas into their settings; a decoder and an encoder would lose both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import Damaged
from core.model import JSON

_COMMENT = r"//[^\n]*|/\*.*?\*/"
_SPACE = re.compile(rf"(?:\s+|{_COMMENT})*", re.DOTALL)
_REST_OF_LINE = re.compile(rf"(?:[ \t]*(?:{_COMMENT}))?", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_DEFAULT_INDENT = "  "
_DEEPEST = 100
"""Settings are flat; what is nested deeper is meant to break a reader."""


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    """Where its key begins."""
    value_start: int
    end: int
    value: JSON


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    """Behind the opening brace."""
    end: int
    """At the closing brace."""
    members: tuple[_Member, ...]

    def member(self, key: str) -> _Member | None:
        """The last member of that name: the one that counts."""
        return next((m for m in reversed(self.members) if m.key == key), None)


def with_member(text: str, path: Sequence[str], value: JSON) -> str:
    """The text with the value at a path of keys, whatever stood there; missing objects are made.

    An empty text counts as `{}`.  Raises `Damaged` where the text is no JSON object, or a key of the path holds none.
    """
    text = text if text.strip() else "{}\n"
    depth, found = _nearest(text, path)
    if depth == len(path) - 1 and (member := found.member(path[-1])):
        if member.value == value:
            return text
        return text[: member.value_start] + _written(value, text, len(path)) + text[member.end :]
    for missing in reversed(path[depth + 1 :]):
        value = {missing: value}
    return _inserted(text, found, path[depth], value, depth)


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at a path of keys; the same text if there is none.

    What `with_member` added to other members is taken out to the byte.  Raises as that does.
    """
    depth, found = _nearest(text, path)
    member = found.member(path[depth])
    if depth < len(path) - 1 or member is None:
        return text
    at = found.members.index(member)
    if at:
        comma, own_comma = (_skipped(text, m.end) for m in (found.members[at - 1], member))
        gap = text[comma + 1 : member.start].rstrip()
        if text[own_comma] == ",":
            return text[: comma + 1] + gap + text[own_comma + 1 :]
        return text[:comma] + gap + text[member.end :]
    if len(found.members) > 1:
        return text[: member.start] + text[found.members[1].start :]
    before, behind = text[found.start : member.start], text[member.end : found.end].lstrip(",")
    inner = before.rstrip() + behind if before.strip() or behind.strip() else ""
    return text[: found.start] + inner + text[found.end :]


def value_at(text: str, path: Sequence[str]) -> JSON:
    """The value at a path of keys; None if there is none.  Raises as `with_member`."""
    if not text.strip():
        return None
    depth, found = _nearest(text, path)
    member = found.member(path[depth])
    return member.value if member and depth == len(path) - 1 else None


def _nearest(text: str, path: Sequence[str]) -> tuple[int, _Object]:
    """The object that the path leads to, as far as it is there: the one whose member its key at `depth` is or would
    be."""
    found = _root(text)
    for depth, key in enumerate(path[:-1]):
        member = found.member(key)
        if member is None:
            return depth, found
        found = _object(text, member.value_start, depth + 1)
    return len(path) - 1, found


def _root(text: str) -> _Object:
    found = _object(text, _skipped(text, 1 if text.startswith("\ufeff") else 0), 0)
    end = _skipped(text, found.end + 1)
    if end != len(text):
        raise _damaged(text, end, "there is more behind the settings")
    return found


def _object(text: str, at: int, depth: int) -> _Object:
    if text[at : at + 1] != "{":
        raise _damaged(text, at, "an object was expected")
    start = at + 1
    members: list[_Member] = []
    at = _skipped(text, start)
    while text[at : at + 1] != "}":
        key, colon = _string(text, at)
        colon = _skipped(text, colon)
        if text[colon : colon + 1] != ":":
            raise _damaged(text, colon, "a colon was expected")
        value_start = _skipped(text, colon + 1)
        value, end = _value(text, value_start, depth + 1)
        members.append(_Member(key, at, value_start, end, value))
        at = _behind_comma(text, end, "}")
    return _Object(start, at, tuple(members))


def _value(text: str, at: int, depth: int) -> tuple[JSON, int]:
    """A value, and where it ends."""
    if depth > _DEEPEST:
        raise _damaged(text, at, "it is nested too deep")
    match text[at : at + 1]:
        case "{":
            found = _object(text, at, depth)
            return {m.key: m.value for m in found.members}, found.end + 1
        case "[":
            return _list(text, at, depth)
        case '"':
            return _string(text, at)
    scalar = _SCALAR.match(text, at)
    try:
        value: JSON = json.loads(scalar[0] if scalar else "")
        return value, at + len(scalar[0]) if scalar else at
    except ValueError:
        raise _damaged(text, at, "a value was expected") from None


def _list(text: str, at: int, depth: int) -> tuple[JSON, int]:
    items: list[JSON] = []
    at = _skipped(text, at + 1)
    while text[at : at + 1] != "]":
        item, end = _value(text, at, depth + 1)
        items.append(item)
        at = _behind_comma(text, end, "]")
    return items, at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    try:
        return str(json.loads(found[0] if found else "", strict=False)), found.end() if found else at
    except ValueError:
        raise _damaged(text, at, "a text in quotes was expected") from None


def _behind_comma(text: str, at: int, closing: str) -> int:
    at = _skipped(text, at)
    if text[at : at + 1] == ",":
        return _skipped(text, at + 1)
    if text[at : at + 1] != closing:
        raise _damaged(text, at, f"a comma or {closing} was expected")
    return at


def _skipped(text: str, at: int) -> int:
    """The next place that is neither space nor comment."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _inserted(text: str, into: _Object, key: str, value: JSON, depth: int) -> str:
    """The text with a new last member, on a line of its own; a comment behind the one before stays with that."""
    indent = _indent(text)
    begin = _line_end(text) + indent * depth
    line = begin + indent + json.dumps(key) + ": " + _written(value, text, depth + 1)
    if not into.members:
        inner = text[into.start : into.end].rstrip()
        return text[: into.start] + inner + line + begin + text[into.end :]
    last = into.members[-1].end
    comma = _skipped(text, last)
    behind = comma + 1 if text[comma : comma + 1] == "," else last
    rest = _REST_OF_LINE.match(text, behind)
    at = rest.end() if rest else behind
    if behind > last:  # a trailing comma: the new one gets its own
        return text[:at] + line + "," + text[at:]
    return text[:last] + "," + text[last:at] + line + text[at:]


def _written(value: JSON, text: str, depth: int) -> str:
    indent = _indent(text)
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", _line_end(text) + indent * depth)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str) -> str:
    """What one level is indented by."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else _DEFAULT_INDENT


def _damaged(text: str, at: int, what: str) -> Damaged:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return Damaged(f"line {line}, column {column}: {what}", "correct the file by hand, or move it away")
