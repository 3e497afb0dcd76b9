"""Mends a summary without a model: marks what is not so, and appends what is missing in one section.

Deterministic, and idempotent: a ledger that is there is taken out first, marked claims claim nothing any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.compaction.claims import MARKS, NOT_FOUND, NOT_RUN, PRINTED, Claim
from core.compaction.needs import Need, ledger_lines
from core.summarizers.extractive.sections import LEDGER

MOST_MARKS = 100
"""More would say less; what finds no mark is counted in the ledger."""
_MARK_OF = {"tests": NOT_RUN, "order": PRINTED}


def mended(text: str, faults: Sequence[Claim], missing: Sequence[Need]) -> str:
    """A summary (without a ledger) with a mark behind each fault, and a ledger of what is missing."""
    room = max(0, MOST_MARKS - sum(map(text.count, MARKS)))
    shown = sorted(faults, key=lambda fault: fault.end)[:room]
    lines = ledger_lines(missing)
    if len(faults) > room:
        lines.append(f"- {len(faults) - room} more names or figures of this summary are not in the transcript")
    out = _marked(text, shown)
    return f"{out.rstrip()}\n\n## {LEDGER}\n" + "\n".join(lines) if lines else out


def _marked(text: str, faults: Sequence[Claim]) -> str:
    for fault in reversed(faults):
        before, behind = text[: fault.end], text[fault.end :]
        between = "\n" if "\n" in text[fault.start : fault.end] else " "
        text = f"{before}{between}{_MARK_OF.get(fault.kind, NOT_FOUND)}{behind}"
    return text
