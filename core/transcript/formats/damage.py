"""JSON that is cut, glued, split, mixed with other text, too deep or not quite Unicode: what can be read of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from core.errors import Damaged
from core.model import JSON
from core.transcript.findings import Finding, FindingKind

MAX_DEPTH = 200
"""Levels of nesting that are read.  The deepest real record seen has 14; whoever walks a value may then recurse."""
_MAX_JOINED_LINES = 400
"""Lines that one record may be spread over: a pretty-printed record of a few kilobytes."""
_MAX_JOINED_CHARS = 4_000_000
"""Characters of such a record: the largest real record seen has 1.7 MB."""
_MAX_ATTEMPTS = 64
"""Starts that are tried in a text that is mostly not JSON, so that hostile input costs a bounded number of passes."""
_MAX_SAME_KIND = 50
"""Findings of one kind that are listed singly; the others are counted."""

Keep: TypeAlias = dict[str, int]
"""By the first character of a value, `{` or `[`: how deep in it a container may be and stay although it is cut."""
KEEP_ALL: Keep = {"{": MAX_DEPTH, "[": MAX_DEPTH}

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"(\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..")
_TOKEN = re.compile(r'[\s,:]+|"(?:[^"\\\n]|\\.)*"|[{}\[\]]|[-+.\w]+')
_START = re.compile(r"[{\[]")
_BLANK = " \t\r\n\0\ufeff"


class Findings:
    """Collects findings, a bounded number of each kind."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: dict[FindingKind, int] = {}

    def add(self, kind: FindingKind, line: int, message: str) -> None:
        """Notes one finding; `line` counts from 1, 0 stands for the whole file."""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count <= _MAX_SAME_KIND:
            self._found.append(Finding(kind, 0, message, line))

    def done(self) -> tuple[Finding, ...]:
        """All of them, in the order in which they were met; what was not listed comes last, as numbers."""
        more = [(k, n - _MAX_SAME_KIND) for k, n in self._counts.items() if n > _MAX_SAME_KIND]
        return (*self._found, *(Finding(kind, 0, f"{n:,} more of this kind") for kind, n in more))


def without_surrogates(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD: it can be encoded."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def loads(text: str) -> JSON:
    """Decodes one JSON text: NaN and infinities become null, lone surrogates U+FFFD, raw control characters stay.

    Raises ValueError, also for what is nested too deeply.
    """
    text = _mended(text)
    value, end = _decode(text, 0)
    if text[end:].strip(_BLANK):
        raise ValueError("text behind the value")
    return value


def json_text(data: bytes) -> str:
    """JSON as text: without a mark of byte order; bytes that are not UTF-8 and lone surrogates become U+FFFD."""
    return _mended(data.decode("utf-8-sig", errors="replace"))


def is_blank(text: str) -> bool:
    """Whether a text holds nothing but blanks, line ends and the NUL bytes that a power loss leaves."""
    return not text.strip(_BLANK)


def values(text: str, keep: Keep = KEEP_ALL) -> Iterator[tuple[JSON, int, bool]]:
    """The objects and arrays in a text, in order: (value, offset of its first character, whether it is whole).

    Of a value that is cut or broken, what stands before the break is given, but for the containers that are open
    there and stand deeper than `keep` says.  Text between values is passed over.
    """
    at = attempts = 0
    while attempts < _MAX_ATTEMPTS and (start := _START.search(text, at)):
        at = start.start()
        try:
            value, end = _decode(text, at)
        except ValueError:
            attempts += 1
            value, broken_at = _salvage(text, at, keep.get(text[at], 0))
            if value:
                yield value, at, False
            if value is not None and broken_at == len(text):
                return
            newline = text.find("\n", at)
            at = newline if newline >= 0 else len(text)
        else:
            yield value, at, True
            at = end


def document(path: Path, wanted: Callable[[JSON], bool], keep: Keep, findings: Findings) -> JSON:
    """The first value in a file that `wanted` accepts; a cut one as `values` gives it.

    Raises Damaged when there is none.
    """
    text = _text_of(path.read_bytes(), 0, findings)
    for value, at, whole in values(text, keep):
        if not wanted(value):
            continue
        if not is_blank(text[:at]):
            findings.add("text-before", 1, "text stands before the JSON; it was passed over")
        if not whole:
            findings.add("cut-document", 0, "the JSON is cut or broken; what stands before the break was read")
        return value
    raise Damaged(f"{path.name} holds no part that can be read", "Fetch or export the conversation again.")


def records(path: Path, findings: Findings) -> Iterator[tuple[int, dict[str, JSON]]]:
    """The objects of a file with one JSON object on each line, as (line, object), reading one line at a time.

    Several objects on one line and one over several lines are read too; what cannot be read is reported.
    """
    broken: _Broken | None = None
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = _text_of(raw, number, findings).strip(_BLANK)
            if not line:
                continue
            found, rest = _objects(line)
            if broken and (not found or rest.startswith((",", "]", "}"))):
                joined = broken.joined_with(line)
                if joined is not None:
                    findings.add("pretty-printed", broken.line, f"a record stands over {len(broken.parts)} lines")
                    yield broken.line, joined
                    broken = None
                elif broken.is_too_long():
                    broken.report(findings)
                    broken = None
                continue
            if broken:
                broken.report(findings)
            broken = _Broken(number, rest) if rest else None
            if len(found) > 1:
                findings.add("joined-line", number, f"line {number} holds {len(found)} records")
            for value in found:
                yield number, value
    if broken:
        torn = len(broken.parts) == 1 and broken.parts[0].startswith("{")
        broken.report(findings, "torn-tail" if torn else "garbage-line")


class _Broken:
    """A line that is no whole record, and the lines after it as long as the record may go on in them."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.parts = [text]
        self._chars = len(text)

    def joined_with(self, text: str) -> dict[str, JSON] | None:
        """The record, if this line completes it."""
        self.parts.append(text)
        self._chars += len(text)
        if not self.parts[0].startswith("{") or not text.endswith("}"):
            return None
        try:
            value = loads("\n".join(self.parts))
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def is_too_long(self) -> bool:
        """Whether no record is as long as this."""
        return len(self.parts) > _MAX_JOINED_LINES or self._chars > _MAX_JOINED_CHARS

    def report(self, findings: Findings, kind: FindingKind = "garbage-line") -> None:
        """Notes that nothing came of it."""
        more = f" and the {len(self.parts) - 1} after it are" if len(self.parts) > 1 else " is"
        findings.add(kind, self.line, f"line {self.line}{more} cut or no JSON; not read")


def _text_of(data: bytes, line: int, findings: Findings) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        findings.add("bad-bytes", line, "bytes that are not UTF-8 were replaced")
        return json_text(data)
    return _mended(text)


def _objects(line: str) -> tuple[list[dict[str, JSON]], str]:
    """The objects at the beginning of a line, and what is left of it.  Other JSON values count as nothing to read."""
    found: list[dict[str, JSON]] = []
    at = 0
    while at < len(line):
        try:
            value, end = _decode(line, at)
        except ValueError:
            break
        if isinstance(value, dict):
            found.append(value)
        while (at := end) < len(line) and line[at] in _BLANK:
            end += 1
    return found, line[at:]


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


_scan = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=lambda _: None).raw_decode


def _mended(text: str) -> str:
    """The same JSON, as long as before, with U+FFFD for each escape of a lone surrogate."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _SURROGATE_ESCAPE.sub(lambda match: match.group(1) or "\\ufffd", text)


def _decode(text: str, at: int) -> tuple[JSON, int]:
    """One value and where it ends; ValueError when there is none, or it is nested too deeply."""
    try:
        value, end = _scan(text, at)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end - at > 2 * MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    return value, end


def _deeper_than(value: JSON, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [c for v in level for c in _children(v) if isinstance(c, (dict, list))]
        if not level:
            return False
    return True


def _children(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _salvage(text: str, start: int, keep: int) -> tuple[JSON, int]:
    """What can be read of the broken value at `start` (null: nothing), and where it breaks (the end: only cut).

    The text is walked token by token; the last place is remembered at which all open containers may be closed,
    none of them deeper than `keep`.  There it is cut, closed and decoded.
    """
    at, safe = start, start
    closers: list[str] = []
    closing = ""
    while len(closers) <= MAX_DEPTH and (token := _TOKEN.match(text, at)):
        word = token.group()
        if word in "{[":
            closers.append("}" if word == "{" else "]")
            if len(closers) <= keep + 1:
                safe, closing = token.end(), "".join(reversed(closers))
        elif word in "}]":
            if not closers or closers.pop() != word:
                break
        elif "," in word and len(closers) <= keep + 1:
            safe, closing = at, "".join(reversed(closers))
        at = token.end()
    if text.startswith('"', at) and "\n" not in text[at:]:
        at = len(text)
    try:
        return _decode(text[start:safe] + closing, 0)[0], at
    except ValueError:
        return None, at
