"""Which facts planted in the text of generated sessions are in the new context: summary and kept tail.

    python -m bench.planted [--budget 24000] [--tail-tokens 20000] FILE.jsonl...

Each FILE has its FILE.manifest.json beside it.  Tokens are characters / 4; facts in tool results are not counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from bench.load import messages_in
from core.model import Message
from core.summarizers.base import DEFAULT_BUDGET_CHARS, SummaryRequest
from core.summarizers.extractive import Extractive


def tail_start(messages: Sequence[Message], tail_chars: int) -> int:
    """Where the newest messages of about that size begin."""
    at = len(messages)
    while at and tail_chars > 0:
        at -= 1
        tail_chars -= len(json.dumps(messages[at].content, ensure_ascii=False))
    return at


def main() -> int:
    """Prints a line per file, and each fact that is lost; 1 if there is any."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--budget", type=int, default=DEFAULT_BUDGET_CHARS, help="characters of a summary")
    options.add_argument("--tail-tokens", type=int, default=20_000)
    options.add_argument("files", type=Path, nargs="+")
    given = options.parse_args()
    lost = 0
    for path in given.files:
        messages = messages_in(path)
        cut = tail_start(messages, 4 * given.tail_tokens)
        began = time.process_time()
        summary = Extractive().summarize(SummaryRequest(messages[:cut], given.budget)).text
        took = time.process_time() - began
        tail = json.dumps([m.content for m in messages[cut:]], ensure_ascii=False)
        facts = [
            f
            for f in json.loads(path.with_suffix(".manifest.json").read_text(encoding="utf-8"))["facts"]
            if f["role"] != "tool"
        ]
        missing = [f for f in facts if f["needle"] not in summary and f["needle"] not in tail]
        before = sum(len(json.dumps(m.content, ensure_ascii=False)) for m in messages)
        saved = 1 - (len(summary) + len(tail)) / before
        early = sum(f["needle"] not in tail for f in facts)
        print(
            f"{path.name}: {len(facts) - len(missing)} of {len(facts)} facts, {early} of them before the tail;", end=" "
        )
        print(f"summary {len(summary)} chars of {before}, saved {saved:.1%}, {took:.2f} s")
        for fact in missing:
            print(f"  lost {fact['kind']}: {fact['text']}")
        lost += len(missing)
    return 1 if lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
