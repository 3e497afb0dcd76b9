"""How true and how complete summaries of real sessions are, as verification sees it, before and after the ledger.

    python -m bench.fidelity --sessions DIR [--budget 24000] [--keep 0.1] [--show]

For each session: the offline summary of each part between two compactions of the client, of which the last tenth
stays, and of the whole; and, as an example of what a model writes, the client's own summary of each part.  `--show`
lists what was found.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.load import messages_in
from core.compaction.source import Source
from core.compaction.verify import Verification, verified, verify
from core.errors import SummaryRejected
from core.model import Message, block_text
from core.redact.values import redact_messages
from core.summarizers.base import DEFAULT_BUDGET_CHARS, Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.summarizers.extractive.sections import split_ledger


@dataclass(frozen=True, slots=True)
class Case:
    """A summary to verify."""

    name: str
    gone: Sequence[Message]
    kept: Sequence[Message] = ()
    written: str = ""
    """By the client; "" for the offline summary."""


def cases(messages: Sequence[Message], keep: float) -> Iterator[Case]:
    """The parts between the client's compactions, what it wrote about each, and the whole."""
    starts = [n for n, m in enumerate(messages) if m.kind == "summary"]
    for number, (begin, end) in enumerate(zip([0, *starts], [*starts, len(messages)], strict=True), 1):
        part = messages[begin:end]
        cut = len(part) - max(1, int(keep * len(part)))
        while cut > 0 and part[cut].kind == "results":
            cut -= 1
        if cut > 5:
            yield Case(f"part {number}", part[:cut], part[cut:])
        if end < len(messages):
            yield Case(f"client {number}", part, (), "\n".join(map(block_text, messages[end].content)))
    yield Case("whole", messages)


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=Path, required=True, help="a folder of transcripts")
    options.add_argument("--budget", type=int, default=DEFAULT_BUDGET_CHARS, help="characters of a summary")
    options.add_argument("--keep", type=float, default=0.1, help="the share of the messages that stays")
    options.add_argument("--show", action="store_true", help="list what was found")
    given = options.parse_args()
    print(f"{'session':42} {'summary':9} {'MB':>5} {'true':>6} {'said':>6} {'after':>12} {'ledger':>6} {'s':>5}")
    offline: list[Verification] = []
    for path in sorted(given.sessions.glob("claude*.jsonl")):
        for case in cases(redact_messages(messages_in(path)), given.keep):
            found = measured(path.stem, case, given.budget, given.show)
            if not case.written:
                offline.append(found)
    print(f"offline: true at least {min(v.precision for v in offline):.4f}, said {min(v.recall for v in offline):.3f}")


def measured(session: str, case: Case, budget_chars: int, show: bool) -> Verification:
    """Verifies one summary, prints its row, and checks that a second run changes nothing."""
    budget = max(budget_chars, len(case.written))
    request = SummaryRequest(case.gone, budget, cwd="/w", transcript="/t.jsonl")
    summary = Summary(case.written, "client") if case.written else Extractive().summarize(request)
    begun = time.process_time()
    try:
        mended, found = verified(summary, request, case.kept)
    except SummaryRejected as refused:
        print(f"{session[:42]:42} {case.name:9} {refused}")
        return verify(summary.text, Source(request, case.kept))
    took = time.process_time() - begun
    after = verify(mended.text, Source(request, case.kept))
    again = verified(mended, request, case.kept)[0]
    size = sum(len(block_text(b)) for m in case.gone for b in m.content) / 1e6
    print(
        f"{session[:42]:42} {case.name:9} {size:5.2f} {found.precision:6.3f} {found.recall:6.3f} "
        f"{after.precision:6.3f}{after.recall:6.3f} {found.ledger_tokens:6} {took:5.2f}"
        + ("" if again == mended else "  NOT IDEMPOTENT")
    )
    if show:
        lines = [f"false: {claim.kind} {claim.text[:200]!r}" for claim in found.faults]
        for line in (*lines, *split_ledger(mended.text)[1].splitlines()):
            print(f"   {line}")
    return found


if __name__ == "__main__":
    main()
