"""A full compaction as a plan: what goes, what stays, what stands for it, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from core.compaction.restore import Restored, RestoreLimits, restore
from core.context.rounds import cut_points, in_thinking_loop, tail_start
from core.errors import CompactionError, NothingToCompact, SummaryRejected
from core.model import Message
from core.redact.text import redact
from core.redact.values import redact_messages
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.media import in_words

Measure = Callable[[Sequence[Message]], list[int]]
"""Tokens of each of some new messages, by the estimator that measured the old ones."""

MIN_GAIN = 0.1
"""A compaction that frees less than this share of the messages' tokens costs more (the cache is written anew) than
it is worth."""
_THINKING = ("thinking", "redacted_thinking")
SLACK = 1.25
"""What was compacted and has since grown to no more than this much of what is kept is left alone."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose about a compaction."""

    keep_tokens: int
    summary_chars: int
    instructions: str = ""
    restore: RestoreLimits = field(default_factory=RestoreLimits)
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction that has not been written."""

    gone: tuple[Message, ...]
    """Without the secrets in them: what is summarised, sent or stored holds none.  What is kept stays as it is."""
    kept: tuple[Message, ...]
    summary: Summary
    restored: tuple[Restored, ...]
    sizes_tokens: tuple[int, ...]
    """Of summary, restored files, kept messages, in this order."""
    tokens_before: int
    tokens_after: int

    @property
    def overhead_tokens(self) -> int:
        """What is sent beside the messages."""
        return self.tokens_after - sum(self.sizes_tokens)

    @property
    def prompt_tokens(self) -> list[int]:
        """The projected size of the request in front of each kept message."""
        front = 1 + len(self.restored)
        running = [*accumulate(self.sizes_tokens, initial=self.overhead_tokens)]
        return running[front : front + len(self.kept)]


def plan(
    messages: Sequence[Message],
    sizes_tokens: Sequence[int],
    overhead_tokens: int,
    measure: Measure,
    summarizer: Summarizer,
    options: Options,
    cwd: str,
    history: str,
) -> Plan:
    """The compaction of an active view; `history` names where all that goes can be read.

    Raises `NothingToCompact` when nothing but an earlier summary lies in front of what is kept, or when too little
    would be freed; `CompactionError` when the messages cannot be cut in place; `SummaryRejected` when the summariser
    gave nothing.
    """
    start = _start(messages, sizes_tokens, options)
    gone, kept = redact_messages(messages[:start]), tuple(messages[start:])
    if _settled(messages, sizes_tokens, options) or all(m.kind not in ("prompt", "response", "results") for m in gone):
        raise NothingToCompact("all of it is within what is kept", "a smaller --keep takes out more")
    summary = _summarised(gone, summarizer, options, cwd, history)
    restored = tuple(restore(messages, kept, cwd, options.restore))
    planned = assembled(gone, kept, summary, restored, sizes_tokens, overhead_tokens, measure)
    if too_little := gain_missing(planned):
        raise NothingToCompact(too_little)
    return planned


def assembled(
    gone: tuple[Message, ...],
    kept: tuple[Message, ...],
    summary: Summary,
    restored: tuple[Restored, ...],
    sizes_tokens: Sequence[int],
    overhead_tokens: int,
    measure: Measure,
) -> Plan:
    """The plan that these parts make; `sizes_tokens` are those of all messages, of which the last ones are kept."""
    front = measure([text_message("summary", summary.text), *(text_message("meta", r.text) for r in restored)])
    tail = _without_thinking(kept, sizes_tokens[len(sizes_tokens) - len(kept) :], measure)
    before, after = sum(sizes_tokens), sum(front) + sum(tail)
    sizes = (*front, *tail)
    return Plan(gone, kept, summary, restored, sizes, overhead_tokens + before, overhead_tokens + after)


def gain_missing(planned: Plan) -> str:
    """Why a plan frees too little to be worth it, "" if it frees enough."""
    before = planned.tokens_before - planned.overhead_tokens
    freed = planned.tokens_before - planned.tokens_after
    return f"only {max(0, freed)} of {before} tokens would be freed" if freed < MIN_GAIN * before else ""


def _start(messages: Sequence[Message], sizes_tokens: Sequence[int], options: Options) -> int:
    if not options.in_place:
        return tail_start(messages, sizes_tokens, options.keep_tokens)
    if in_thinking_loop(messages):
        raise CompactionError(
            "the session is in the middle of a turn whose thinking cannot be moved",
            "let the turn end first, or compact into a new file (without --in-place)",
        )
    # What a running client writes next hangs off the last row: some row must stay.
    last_group = cut_points(messages)[:-1][-1:]
    return min(*last_group, tail_start(messages, sizes_tokens, options.keep_tokens), len(messages))


def _without_thinking(kept: Sequence[Message], sizes_tokens: Sequence[int], measure: Measure) -> list[int]:
    """Tokens of the messages that stay: thinking is bound to the messages before it, and goes with them."""
    bare = [replace(m, content=tuple(b for b in m.content if b.get("type") not in _THINKING)) for m in kept]
    rest = zip(kept, bare, sizes_tokens, measure(bare), strict=True)
    return [size if len(new.content) == len(old.content) else min(size, estimate) for old, new, size, estimate in rest]


def _settled(messages: Sequence[Message], sizes_tokens: Sequence[int], options: Options) -> bool:
    """Whether an earlier compaction did it already, and hardly anything was added since."""
    if not messages or messages[0].kind != "summary":
        return False
    since = sum(t for m, t in zip(messages, sizes_tokens, strict=True) if m.kind not in ("summary", "meta"))
    return since <= SLACK * options.keep_tokens


def _summarised(gone: Sequence[Message], summarizer: Summarizer, options: Options, cwd: str, history: str) -> Summary:
    asked = redact(options.instructions)[0]
    summary = summarizer.summarize(SummaryRequest(in_words(gone), options.summary_chars, asked, "", cwd, history))
    if not summary.text.strip():
        raise SummaryRejected(
            f"the summariser {summarizer.name} gave no text", "try again, or choose another --summarizer"
        )
    return summary


def text_message(kind: Literal["summary", "meta"], text: str) -> Message:
    """A user message that the client made."""
    return Message("user", kind, ({"type": "text", "text": text},))
