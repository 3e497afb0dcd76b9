"""How true and how complete summaries of real sessions are, as verification sees it, before and after the ledger.

    python bench/fidelity.py --sessions DIR [--budget 24000] [--keep 0.1] [--show]

For each session the offline summary of all but the last tenth of its messages, and of what lies before each earlier
compaction; then a compaction of that: the summary is updated with the rest.  `--show` lists what was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from bench.load import messages_in  # noqa: E402
from core.compaction.source import Source  # noqa: E402
from core.compaction.verify import Verification, verified, verify  # noqa: E402
from core.model import Message, block_text  # noqa: E402
from core.redact.values import redact_messages  # noqa: E402
from core.summarizers.base import DEFAULT_BUDGET_CHARS, SummaryRequest  # noqa: E402
from core.summarizers.extractive import Extractive  # noqa: E402
from core.summarizers.extractive.sections import split_ledger  # noqa: E402


def cases(messages: Sequence[Message], keep: float) -> Iterator[tuple[str, Sequence[Message], Sequence[Message]]]:
    """What goes and what is kept: at each compaction of the client, at the end, and all of it."""
    starts = [n for n, m in enumerate(messages) if m.kind == "summary"]
    for number, (begin, end) in enumerate(zip([0, *starts], [*starts, len(messages)], strict=True), 1):
        part = messages[begin:end]
        cut = len(part) - max(1, int(keep * len(part)))
        while cut > 0 and part[cut].kind == "results":
            cut -= 1
        if cut > 5:
            yield f"part {number}", part[:cut], part[cut:]
    yield "whole", messages, ()


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=Path, required=True, help="a folder of transcripts")
    options.add_argument("--budget", type=int, default=DEFAULT_BUDGET_CHARS, help="characters of a summary")
    options.add_argument("--keep", type=float, default=0.1, help="the share of the messages that stays")
    options.add_argument("--show", action="store_true", help="list what was found")
    given = options.parse_args()
    print(f"{'session':44} {'part':10} {'MB':>5} {'precision':>9} {'recall':>7} {'after':>12} {'ledger':>6} {'s':>5}")
    worst: list[Verification] = []
    for path in sorted(given.sessions.glob("claude*.jsonl")):
        messages = redact_messages(messages_in(path))
        for name, gone, kept in cases(messages, given.keep):
            request = SummaryRequest(gone, given.budget, cwd="/w", transcript="/t.jsonl")
            summary = Extractive().summarize(request)
            begun = time.perf_counter()
            mended, found = verified(summary, request, kept)
            took = time.perf_counter() - begun
            after = verify(mended.text, Source(request, kept))
            again = verified(mended, request, kept)[0]
            size = sum(len(block_text(b)) for m in gone for b in m.content) / 1e6
            print(
                f"{path.stem[:44]:44} {name:10} {size:5.2f} {found.precision:9.4f} {found.recall:7.3f} "
                f"{after.precision:6.3f}{after.recall:6.3f} {found.ledger_tokens:6} {took:5.2f}"
                + ("" if again == mended else "  NOT IDEMPOTENT")
            )
            worst.append(found)
            if given.show:
                for claim in found.faults:
                    print("   false:", claim.kind, repr(claim.text[:200]))
                print(*("   " + line for line in split_ledger(mended.text)[1].splitlines()), sep="\n")
    print(f"least precision {min(v.precision for v in worst):.4f}, least recall {min(v.recall for v in worst):.3f}")


if __name__ == "__main__":
    main()
