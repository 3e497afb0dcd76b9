"""A full compaction as a plan: what goes, what stays, what stands for it, and what that is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.compaction.restore import Restored, RestoreLimits, restore
from core.context.rounds import cut_points, tail_start
from core.errors import NothingToCompact, SummaryRejected
from core.model import Message
from core.summarizers.base import Summarizer, Summary, SummaryRequest

Measure = Callable[[Sequence[Message]], list[int]]
"""Tokens of each message, by one estimator before and after."""


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
    kept: tuple[Message, ...]
    summary: Summary
    restored: tuple[Restored, ...]
    sizes_tokens: tuple[int, ...]
    """Of summary, restored files, kept messages, in this order."""
    tokens_before: int
    tokens_after: int

    @property
    def front_tokens(self) -> int:
        """What stands in front of the kept messages."""
        return sum(self.sizes_tokens[: 1 + len(self.restored)])


def plan(
    messages: Sequence[Message],
    overhead_tokens: int,
    measure: Measure,
    summarizer: Summarizer,
    options: Options,
    cwd: str,
    history: str,
) -> Plan:
    """The compaction of an active view; `history` names where all that goes can be read.

    Raises `NothingToCompact` when nothing but an earlier summary lies in front of what is kept, or when the result
    would not be smaller; `SummaryRejected` when the summariser gave nothing.
    """
    sizes = measure(messages)
    start = tail_start(messages, sizes, options.keep_tokens)
    if options.in_place and start == len(messages):
        start = _last_group(messages)
    gone, kept = tuple(messages[:start]), tuple(messages[start:])
    if all(m.kind in ("summary", "meta", "command", "attachment") for m in gone):
        raise NothingToCompact("all messages are within what is kept", "choose a smaller --keep to take out more")
    summary = _summarised(gone, summarizer, options, cwd, history)
    restored = tuple(restore(messages, kept, cwd, options.restore))
    front = [_text_message("summary", summary.text), *(_text_message("meta", r.text) for r in restored)]
    sizes_after = [*measure(front), *sizes[start:]]
    before, after = overhead_tokens + sum(sizes), overhead_tokens + sum(sizes_after)
    if after >= before:
        raise NothingToCompact(f"the result would not be smaller ({before} tokens before, {after} after)")
    return Plan(gone, kept, summary, restored, tuple(sizes_after), before, after)


def _summarised(gone: Sequence[Message], summarizer: Summarizer, options: Options, cwd: str, history: str) -> Summary:
    summary = summarizer.summarize(SummaryRequest(gone, options.summary_chars, options.instructions, "", cwd, history))
    if not summary.text.strip():
        raise SummaryRejected(
            f"the summariser {summarizer.name} gave no text", "try again, or choose another --summarizer"
        )
    return summary


def _last_group(messages: Sequence[Message]) -> int:
    """In place at least the last group stays: what a running client writes next hangs off its last row."""
    return cut_points(messages)[:-1][-1]


def _text_message(kind: str, text: str) -> Message:
    return Message("user", "summary" if kind == "summary" else "meta", ({"type": "text", "text": text},))


def counted(messages: Sequence[Message]) -> dict[str, int]:
    """How many messages of each kind."""
    return dict(sorted(Counter(m.kind for m in messages).items()))
