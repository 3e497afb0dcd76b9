"""What it costs to keep notes by a model, under several cadences, on the requests that sessions really made.

    python -m bench.memory_cadence FILE...

Each response of a transcript is a request; costs are in input-token equivalents (a token read from the cache 0.1, one
written 1.25, one of the answer 5).  An update sends the notes and the new part as quoted text and gets 800 tokens; the
tokens of quoted text are counted from the text itself.  Printed for each cadence: updates, what they add to the cost of
the session, and how much is unseen on average, and at most.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from bench.load import messages_in
from core.context.tokens.estimate import Estimator
from core.context.tokens.models import lookup
from core.memory.cadence import PAID, Cadence, due
from core.memory.part import Unseen
from core.model import Message, tool_uses
from core.summarizers.media import in_words
from core.summarizers.quotation import labelled
from core.transcript.outline import outline_blocks

READ, WRITE, ANSWER = 0.1, 1.25, 5.0
OVERHEAD_TOKENS, TRIGGER_TOKENS, AFTER_TOKENS = 20_000, 167_000, 50_000
NOTES_TOKENS, UPDATE_TOKENS = 5_000, 800


@dataclass(frozen=True, slots=True)
class State:
    """What a cadence goes by."""

    tokens: int
    responses: int
    calls: int
    pause: bool
    noted: bool
    context: int


Rule = Callable[[State], bool]


def by(cadence: Cadence) -> Rule:
    """A cadence of ours."""
    return lambda s: bool(due(Unseen(0, 1, s.tokens, s.responses, 0, s.pause), cadence, noted=s.noted))


RULES: dict[str, Rule] = {
    "5,000 tokens and 3 calls, or a pause": lambda s: (
        s.context >= 10_000 if not s.noted else s.tokens >= 5_000 and (s.calls >= 3 or s.pause)
    ),
    "12 responses or 12,000 tokens; half at a pause": by(PAID),
    "24 responses or 24,000 tokens; half at a pause": by(Cadence(24_000, 24_000, 24, 12_000, 12)),
    "every turn": lambda s: s.pause and s.responses > 0,
}


def main() -> None:
    """Replays each file under each rule."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", type=Path)
    sessions = [messages_in(path) for path in options.parse_args().files]
    tokens = Estimator(lookup("claude-opus-4-8")).tokens
    sized = [(m, [round(tokens(outline_blocks(x.content))) for x in m]) for m in sessions]
    for name, rule in RULES.items():
        found = [replay(messages, sizes, rule) for messages, sizes in sized]
        updates, spent, whole = (sum(column) for column in zip(*((f[0], f[1], f[2]) for f in found), strict=True))
        unseen = [tokens for f in found for tokens in f[3]]
        requests = sum(m.kind == "response" for messages in sessions for m in messages)
        print(
            f"{name}: {updates} updates in {requests} requests, +{spent / whole:.1%}, "
            f"unseen {mean(unseen):,.0f} on average, {sorted(unseen)[int(0.95 * len(unseen))]:,} at the 95th percentile"
        )


def replay(messages: Sequence[Message], sizes: Sequence[int], rule: Rule) -> tuple[int, float, float, list[int]]:
    """Updates, their cost, the cost of the session, and the unseen tokens at each response."""
    quoted = Estimator(lookup("claude-haiku-4-5")).tokens
    context, begin, updates, spent, whole, unseen = OVERHEAD_TOKENS, 0, 0, 0.0, 0.0, list[int]()
    cached = 0
    for at, message in enumerate(messages):
        if message.kind == "response":
            whole += READ * cached + WRITE * (context - cached) + ANSWER * sizes[at]
            cached = context
        context += sizes[at]
        if context > TRIGGER_TOKENS:
            context, cached = AFTER_TOKENS, OVERHEAD_TOKENS
        if message.kind != "response":
            continue
        new = messages[begin : at + 1]
        state = State(
            sum(sizes[begin : at + 1]),
            sum(m.kind == "response" for m in new),
            sum(len(tool_uses(m)) for m in new),
            not tool_uses(message),
            updates > 0,
            context - OVERHEAD_TOKENS,
        )
        unseen.append(state.tokens)
        if rule(state):
            text = labelled(in_words(new), [f"m{n}" for n in range(len(new))])
            sent = NOTES_TOKENS + quoted(outline_blocks([{"type": "text", "text": text}]))
            spent += sent + ANSWER * UPDATE_TOKENS
            updates, begin = updates + 1, at + 1
    return updates, spent, whole, unseen


if __name__ == "__main__":
    main()
