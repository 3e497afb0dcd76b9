"""The offline summariser under compaction-conformance-kit (0.8, from PyPI): what survives repeated compaction.

    python -m bench.kit [--rounds 5] [--seeds 1-4] [--kit DIR]

Prints its table beside those of the kit's own `semantic-checklist`.  The adapter maps the kit's turns to messages and
nothing else: a system turn of a later round is the summary of the round before.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.model import Kind, Message, Role
from core.summarizers.base import DEFAULT_BUDGET_CHARS, SummaryRequest
from core.summarizers.extractive import Extractive

if TYPE_CHECKING:
    from compaction_kit.compacted import CompactedContext
    from compaction_kit.session import Turn


def as_message(turn: Turn, number: int, round_num: int) -> Message:
    """A turn of the kit as a message."""
    kinds: dict[str, tuple[Role, Kind]] = {
        "user": ("user", "prompt"),
        "assistant": ("assistant", "response"),
        "tool": ("user", "meta"),
        "system": ("user", "meta") if round_num == 1 else ("user", "summary"),
    }
    role, kind = kinds[turn.role]
    return Message(role, kind, ({"type": "text", "text": turn.text},), (f"{number:08x}",))


class FoldmarkExtractive:
    """The kit's compactor protocol, answered by the offline summariser."""

    name = "foldmark-extractive"

    def compact(self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None) -> CompactedContext:
        """One round: all turns become one text."""
        from compaction_kit.compacted import CompactedContext

        messages = [as_message(turn, n, round_num) for n, turn in enumerate(turns)]
        budget = DEFAULT_BUDGET_CHARS if budget_chars is None else budget_chars
        return CompactedContext(Extractive().summarize(SummaryRequest(messages, budget)).text, self.name, round_num)


def main() -> None:
    """Runs the kit's budget benchmark."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kit", type=Path, help="a folder that holds compaction_kit, if it is not installed")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seeds", default="1-4", help="first-last")
    given = options.parse_args()
    if given.kit:
        sys.path.insert(0, str(given.kit))
    from compaction_kit.benchmark import budget_benchmark_to_markdown, run_budget_benchmark
    from compaction_kit.semantic import SemanticChecklistCompactor

    first, _, last = given.seeds.partition("-")
    factories = {"foldmark-extractive": FoldmarkExtractive, "semantic-checklist": SemanticChecklistCompactor}
    print(
        budget_benchmark_to_markdown(
            run_budget_benchmark(factories, seeds=range(int(first), int(last or first) + 1), rounds=given.rounds)
        )
    )


if __name__ == "__main__":
    main()
