"""Mends a summary without a model: marks what is not so, and appends what is missing in one section.

Deterministic, and idempotent: a ledger that is there is taken out first, marked claims claim nothing any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.compaction.claims import MARKS, NOT_FOUND, NOT_RUN, PRINTED, Claim
from core.compaction.needs import Need, ledger_line
from core.summarizers.extractive.sections import LEDGER

LEDGER_CHARS = 6_000
"""About 2,000 tokens, a fourth of what a summary gets by default."""
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


def ledger_lines(needs: Sequence[Need]) -> list[str]:
    """As many lines as there is room for, the first ones first, and how many more of what there are."""
    out: list[str] = []
    more: Counter[str] = Counter()
    room = LEDGER_CHARS
    for need in needs:
        line = ledger_line(need)
        if len(line) + 1 <= room:
            out.append(line)
            room -= len(line) + 1
        else:
            more[need.kind] += 1
    return out + [f"- ({kind}) {count} more: see the transcript" for kind, count in more.items()]
