"""What can be read of a line that is no JSON, and what is wrong with the bytes of one that is."""

from __future__ import annotations

import json
import re

from core.transcript.decode import BOM

_scan = json.JSONDecoder(strict=False).raw_decode
_RECORD_START = re.compile(
    r'\{"(?:parentUuid"|uuid"|type":"(?!(?:text|thinking|redacted_thinking|tool_use|tool_result|tool_reference|image'
    r'|document|base64)"))'
)
"""How a record of the client begins, and no content block: what is looked for behind a cut record."""
_NO_BLANK = re.compile(r"[^ \t\r]")
_PASSES = 8
"""How often the characters of a line may be gone over in search of a record: hostile lines have a start everywhere."""
_ERROR_SHARE = 16
"""What an error costs is this part of the text before it: Python counts its lines."""


def records_in(line: bytes) -> list[tuple[int, int]]:
    """The (start, end) of each whole JSON object in a line that is no JSON as a whole, in order.

    Objects that stand one after another are taken as they come; behind a cut one, the next start from which all
    decodes to the end of the line (blocks nested in the cut record do not).  Bytes are read as latin-1, so that
    positions are byte positions: the structure of JSON is ASCII.
    """
    text = line.decode("latin-1")
    found, at, _ = _run(text, 0)
    left = _PASSES * len(text)
    for start in _RECORD_START.finditer(text, at + 1):
        more, end, seen = _run(text, start.start())
        if end == len(text):
            return found + more
        left -= seen - start.start() + seen // _ERROR_SHARE + 1
        if left < 0:
            break
    return found


def _run(text: str, at: int) -> tuple[list[tuple[int, int]], int, int]:
    """The objects that follow each other from `at`, where that ends (at the end: all was read), how far was looked."""
    found: list[tuple[int, int]] = []
    while (match := _NO_BLANK.search(text, at)) is not None:
        at = match.start()
        if text[at] != "{":
            return found, at, at
        try:
            _, end = _scan(text, at)
        except json.JSONDecodeError as error:
            return found, at, len(text) if error.msg.startswith("Unterminated") else error.pos
        except (ValueError, RecursionError):
            return found, at, len(text)
        found.append((at, end))
        at = end
    return found, len(text), len(text)


_SURROGATE = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F])", re.DOTALL)
"""Escaped backslashes and whole pairs are passed over; what is left is half a pair."""


def wrong_bytes(raw: bytes) -> str:
    """What is wrong with the bytes of a row that can be read all the same; "" when nothing is."""
    wrong = []
    if raw.startswith(BOM):
        wrong.append("a byte-order mark, left out")
    if b"\0" in raw:
        wrong.append("NUL bytes, left out")
    try:
        raw.decode()
    except UnicodeDecodeError:
        count = raw.decode("utf-8", "replace").count("\ufffd") - raw.count(b"\xef\xbf\xbd")
        wrong.append(f"{count} sequences that are no UTF-8, read as U+FFFD")
    if b"\\u" in raw:
        halves = sum(1 for match in _SURROGATE.finditer(raw) if match[1])
        if halves:
            wrong.append(f"{halves} halves of surrogate pairs, read as U+FFFD")
    return "; ".join(wrong)
