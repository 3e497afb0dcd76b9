"""How far token estimates are off on real transcripts: `python -m bench.estimate FILE.jsonl...`

Every usage figure of a session says how large its context was at that request.  For each request of the main chain
(of every stretch between two compactions) this compares it with what Foldmark would have said just before:

* anchored: by the usage of the response before it, and an estimate of what came since;
* cold: with all usage hidden, by the estimate and an overhead for what no transcript holds (system prompt, tools,
  memory files).  "left out" takes the median overhead of the other files, "shipped" the constant of the program.

Where a prompt is more than 2 % smaller than the one before, the client took something out and did not write down
what: no estimate can know.  The rest of such a stretch is counted apart ("with unseen cuts").
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import msgspec

from core.context.tokens.ledger import DEFAULT_OVERHEAD_TOKENS, LedgerItem, items_of, measure
from core.context.tokens.models import SYNTHETIC, lookup
from core.context.view import messages_of
from core.transcript.chain import active_chain
from core.transcript.reader import Log, open_log

_CUTS = ("compact_boundary", "microcompact_boundary")


def projections(log: Log) -> Iterator[list[LedgerItem]]:
    """The items of each stretch in which the context only grew, one for each row that cut it and one for the end."""
    cuts = [at for at, entry in enumerate(log.entries) if entry.subtype in _CUTS]
    for start, end in zip([0, *cuts], [*cuts, len(log.entries)], strict=True):
        part = replace(log, entries=log.entries[:end])
        begin = log.entries[start].offset if start else 0
        messages = messages_of(part, active_chain(part))
        offsets = {entry.uuid: entry.offset for entry in part.entries}
        first = next((i for i, m in enumerate(messages) if m.usage and offsets[m.uuid] >= begin), len(messages))
        items = items_of(messages)
        yield [
            msgspec.structs.replace(item, usage=item.usage if at >= first else None) for at, item in enumerate(items)
        ]


def requests(items: Sequence[LedgerItem]) -> list[int]:
    """The places of the responses that have real usage."""
    return [i for i, item in enumerate(items) if item.usage and item.usage.prompt_tokens and item.model != SYNTHETIC]


def prompt(item: LedgerItem) -> int:
    """The exact size of what was sent for a response."""
    assert item.usage
    return item.usage.prompt_tokens


def anchored_errors(items: Sequence[LedgerItem]) -> list[float]:
    """Relative errors of the whole context at each request but the first."""
    return [
        (measure(items[:at], lookup(items[at].model)).total_tokens - prompt(items[at])) / prompt(items[at])
        for at in requests(items)[1:]
    ]


def cold_sizes(items: Sequence[LedgerItem]) -> list[tuple[int, int]]:
    """For each request, the estimate of its messages alone, and its real prompt."""
    places = requests(items)
    bare = [msgspec.structs.replace(item, usage=None) for item in items]
    sizes = measure(bare, lookup(items[places[0]].model), 0).item_tokens if places else ()
    return [(sum(sizes[:at]), prompt(items[at])) for at in places]


def seen(sizes: Sequence[tuple[int, int]]) -> int:
    """How many requests there are before the first cut that the transcript does not show."""
    falls = (i for i, ((_, a), (_, b)) in enumerate(pairwise(sizes), 1) if b < 0.98 * a)
    return next(falls, len(sizes))


def show(name: str, errors: Sequence[float]) -> str:
    """Mean, 99th percentile and bias of relative errors."""
    sizes = sorted(map(abs, errors)) or [0.0]
    tail = sizes[int(0.99 * (len(sizes) - 1))]
    return f"  {name:32} n {len(errors):5}  mean {mean(sizes):6.2%}  p99 {tail:6.2%}  bias {mean(errors or [0]):+6.2%}"


class Session:
    """What one file says, stretch by stretch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_log(path, whole=True) as log:
            stretches = list(projections(log))
        self.anchored = [error for items in stretches for error in anchored_errors(items)]
        self.sizes = [sizes for items in stretches if (sizes := cold_sizes(items))]
        self.overheads = [sizes[0][1] - sizes[0][0] for sizes in self.sizes]

    def cold(self, overhead: float, cuts: bool = False) -> list[float]:
        """Relative errors with usage hidden, and one overhead for all stretches."""
        counted = [size for sizes in self.sizes for size in (sizes if cuts else sizes[: seen(sizes)])]
        return [(overhead + estimate - real) / real for estimate, real in counted]


def main(paths: Sequence[Path]) -> None:
    """Prints the errors of each file, and of all."""
    sessions = [Session(path) for path in paths]
    left_out: list[float] = []
    for session in sessions:
        others = [overhead for other in sessions if other is not session for overhead in other.overheads]
        errors = session.cold(median(others) if others else DEFAULT_OVERHEAD_TOKENS)
        left_out += errors
        print(f"{session.path.name}: overhead at the first request of each stretch {session.overheads}")
        print(show("anchored", session.anchored))
        print(show("cold, overhead left out", errors))
    print(f"all {len(sessions)} files")
    print(show("anchored", [error for s in sessions for error in s.anchored]))
    print(show("cold, overhead left out", left_out))
    print(show("cold, overhead shipped", [e for s in sessions for e in s.cold(DEFAULT_OVERHEAD_TOKENS)]))
    print(show("the same, with unseen cuts", [e for s in sessions for e in s.cold(DEFAULT_OVERHEAD_TOKENS, True)]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    main(parser.parse_args().files)
