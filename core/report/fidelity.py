"""How true and how complete the summary of a context is, as results and reports say it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from core.compaction.source import Source
from core.compaction.verify import Verification, verify
from core.facts.text import cut, one_line
from core.model import Message, block_text
from core.redact.values import redact_messages
from core.report.data import Fidelity
from core.summarizers.base import SummaryRequest, room_tokens
from core.summarizers.extractive.sections import split_ledger

_SHOWN_CHARS = 240


def fidelity(found: Verification) -> Fidelity:
    """What verification found, each thing once, with a word in front that says what it is."""
    return Fidelity(
        precision=found.precision,
        recall=found.recall,
        missing=_lines((need.kind, need.text) for need in found.missing),
        unverifiable=_lines((claim.kind, claim.text) for claim in found.unverifiable),
        contradicted=_lines((claim.kind, claim.text) for claim in found.contradicted),
        repaired=found.repaired,
        ledger_tokens=found.ledger_tokens,
    )


def fidelity_of_context(before: Sequence[Message], after: Sequence[Message], cwd: str, history: str) -> Fidelity | None:
    """What the summary in a context is worth as it stands there, ledger and marks counted; None where there is none.

    `history` is where the summary says that all that went can be read.
    """
    old, new = redact_messages(before), redact_messages(after)
    summaries = [m for m in new if m.kind == "summary" and m not in old]
    text = "\n\n".join(block_text(block) for m in summaries for block in m.content)
    if not text.strip():
        return None
    kept = [m for m in new if m not in summaries]
    found = fidelity(verify(text, Source(SummaryRequest(old, cwd=cwd, transcript=history), kept)))
    ledger = split_ledger(text)[1]
    return msgspec.structs.replace(found, repaired=bool(ledger), ledger_tokens=room_tokens(ledger))


def _lines(found: Iterable[tuple[str, str]]) -> list[str]:
    return [*dict.fromkeys(f"{kind}: {cut(one_line(text), _SHOWN_CHARS)}" for kind, text in found)]
