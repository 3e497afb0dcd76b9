"""What can be read of a line that is no JSON: joined records, a cut record, a record over several lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

FindingKind = Literal[
    "joined-line", "spliced-line", "torn-tail", "garbage-line", "not-a-row", "pretty-printed", "bad-bytes",
    "duplicate-uuid", "missing-parent", "cycle", "no-timestamp", "unpaired-call", "orphan-result", "duplicate-call",
    "history-not-in-file", "preserved-not-in-file", "long-line", "unsigned-thinking", "no-final-newline",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a file: where (byte offset), what, and how it was read all the same."""

    kind: FindingKind
    offset: int
    message: str


_scan = json.JSONDecoder(strict=False).raw_decode
_RECORD_START = re.compile(r'\{"(?:parentUuid|type|uuid)"')
"""How a record of the client begins: what is looked for behind a cut record."""
_ATTEMPTS = 64
"""Starts that are tried behind a cut record; each costs at most one pass over the line."""


def records_in(line: bytes) -> list[tuple[int, int]]:
    """The (start, end) of each whole JSON object in a line that is no JSON as a whole, in order.

    Objects that stand one after another are taken as they come; behind a cut one, the next start from which all
    decodes to the end of the line (blocks nested in the cut record do not).  Bytes are read as latin-1, so that
    positions are byte positions: the structure of JSON is ASCII.
    """
    text = line.decode("latin-1")
    found, at = _run(text, 0)
    if at >= len(text):
        return found
    for attempt, start in enumerate(_RECORD_START.finditer(text, at + 1)):
        more, end = _run(text, start.start())
        if end >= len(text):
            return found + more
        if attempt == _ATTEMPTS:
            break
    return found


def _run(text: str, at: int) -> tuple[list[tuple[int, int]], int]:
    """The objects that follow each other from `at`, and where that ends (the length of the text: all was read)."""
    found = []
    while (at := _skip_blank(text, at)) < len(text):
        try:
            _, end = _scan(text, at)
        except (ValueError, RecursionError):
            break
        if text[at] != "{":
            break
        found.append((at, end))
        at = end
    return found, at


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\0":
        at += 1
    return at
