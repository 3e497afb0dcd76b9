"""What other calls of one response have given back so far, by the end of its transcript."""

from __future__ import annotations

from pathlib import Path

from core.model import block_text, call_id, mapping, mappings
from core.transcript.entries import Entry, decode_body
from core.transcript.ordinary import open_ordinary
from core.transcript.scanner import first_record_line, scan

TAIL_BYTES = 2 << 20
"""Results of one response that came to more than this were over any limit long before."""


def answered_chars(transcript: Path, call: str) -> int:
    """The characters of the results of the calls that were made together with `call`; 0 where it is not to be found.

    Raises OSError for a file that cannot be read, Damaged for one that is being rewritten.
    """
    with open_ordinary(transcript) as file:
        size = file.seek(0, 2)
        at = max(0, size - TAIL_BYTES)
        file.seek(at)
        data = file.read()
    first = first_record_line(data, len(data) - 1, True) if at else 0
    entries = scan(data, first or 0, len(data), at, last=True).entries
    response = next((e.response_id for e in reversed(entries) if call in e.tools and e.type == "assistant"), "")
    together = {t for e in entries if response and e.response_id == response for t in e.tools}
    rows = (data[e.offset - at : e.offset - at + e.size] for e in entries if _answers(e, together))
    return sum(map(_result_chars, rows))


def _answers(entry: Entry, calls: set[str]) -> bool:
    return entry.type == "user" and not calls.isdisjoint(entry.tools)


def _result_chars(row: bytes) -> int:
    blocks = mappings(mapping(decode_body(row).get("message")).get("content"))
    return sum(len(block_text(block)) for block in blocks if block.get("type") == "tool_result" and call_id(block))
