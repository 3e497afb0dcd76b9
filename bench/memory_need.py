"""How much of what real sessions needed next the notes hold that rules keep, at the client's own compact boundaries.

    python -m bench.memory_need --shared DIR [--tokens 8000] [--updates 5]

As `future_need` (DIR is not in this repository), with the notes in the place of the summary: they are brought up to
date so many times, in equal parts, before the history is cut.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.load import messages_in
from core.memory.brief import brief
from core.memory.evidence import evidence_of
from core.memory.notes import Notes
from core.memory.offline import by_rule
from core.memory.operations import apply
from core.memory.part import Part, unseen
from core.model import Message


def main() -> None:
    """Dumps, takes notes, scores."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shared", type=Path, required=True, help="the folder with tools/ and real/")
    options.add_argument("--tokens", type=int, default=8_000, help="room of the notes")
    options.add_argument("--updates", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = sorted((given.shared / "real").glob("claude*.jsonl"))
        tool = [sys.executable, str(given.shared / "tools" / "future_need.py")]
        subprocess.run([*tool, "--dump", str(folder), *map(str, files)], check=True, stdout=subprocess.DEVNULL)
        for before in sorted(folder.glob("*.before.jsonl")):
            notes = kept(messages_in(before), given.updates, given.tokens)
            text = brief(notes, given.tokens, "/notes.md")
            Path(str(before).replace(".before.jsonl", ".summary.txt")).write_text(text, encoding="utf-8")
        subprocess.run([*tool, "--with", str(folder), *map(str, files)], check=True)


def kept(messages: Sequence[Message], updates: int, budget_tokens: int) -> Notes:
    """The notes on some messages after so many updates."""
    notes = Notes("s")
    for number in range(1, updates + 1):
        shown = messages[: len(messages) * number // updates]
        seen = unseen(shown, [1] * len(shown), notes.covers)
        view = shown[: seen.end]
        part = Part(notes, view, seen.start, evidence_of(view), "", budget_tokens)
        notes = apply(notes, by_rule(part), part.evidence, budget_tokens, part.covers).notes
    return notes


if __name__ == "__main__":
    main()
