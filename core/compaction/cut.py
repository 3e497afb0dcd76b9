"""What a compaction takes out: a run of messages, between two places at which the history may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.context.rounds import cut_points, in_thinking_loop, tail_start
from core.context.short_ids import ShortIds
from core.context.tokens.words import tokens as short
from core.errors import CompactionError, NothingToCompact
from core.model import Message, call_id, tool_results, tool_uses

SLACK = 1.25
"""What was compacted and has since grown to no more than this much of what is kept is left alone."""
Direction = Literal["", "up_to", "from"]
"""Of a partial compaction, in the client's words."""


@dataclass(frozen=True, slots=True)
class Cut:
    """`messages[start:end]` go; those before stay in front of the summary, untouched, those behind stay behind it."""

    start: int
    end: int
    direction: Direction = ""


def all_but_the_tail(
    messages: Sequence[Message], sizes_tokens: Sequence[int], keep_tokens: int, in_place: bool = False
) -> Cut:
    """All that does not fit into `keep_tokens`; in place, the last group stays however large it is.

    Raises NothingToCompact where nothing but an earlier summary would go, or where hardly anything was added since;
    CompactionError where the messages cannot be cut in place.
    """
    end = tail_start(messages, sizes_tokens, keep_tokens)
    if in_place:
        _refuse_thinking_loop(messages)
        # What a running client writes next hangs off the last row: some row must stay.
        last_group = cut_points(messages)[:-1][-1:]
        end = min(*last_group, end, len(messages))
    if _settled(messages, sizes_tokens, keep_tokens) or not _worth(messages[:end]):
        raise NothingToCompact(_why_not(messages, sum(sizes_tokens), keep_tokens), "a smaller {keep} takes out more")
    return Cut(0, end)


def up_to(messages: Sequence[Message], name: str, in_place: bool = False) -> Cut:
    """What is before a message; it stays, with the rest, and with what it cannot be parted from.

    Raises IdNotFound, NothingToCompact, and CompactionError where the messages cannot be cut in place.
    """
    if in_place:
        _refuse_thinking_loop(messages)
    end = _cut_at(messages, name)
    if in_thinking_loop(messages) and end < len(messages):
        raise CompactionError(
            "the session is in the middle of a turn whose thinking cannot be moved", "let the turn end first"
        )
    if not _worth(messages[:end]):
        raise NothingToCompact(f"nothing but a summary is before {name}")
    return Cut(0, end, "up_to")


def onwards_from(messages: Sequence[Message], name: str, in_place: bool = False) -> Cut:
    """A message and all behind it, with what it cannot be parted from.

    Raises IdNotFound, NothingToCompact, and CompactionError in place while a call waits for its result: that would
    come behind a summary which does not hold the call.
    """
    if in_place and _waits_for_tools(messages):
        raise CompactionError(
            "a tool is still at work in the session",
            "let the turn end first, or compact into a new file (without {in_place})",
        )
    start = _cut_at(messages, name)
    if not _worth(messages[start:]):
        raise NothingToCompact(f"nothing but a summary is from {name} on")
    return Cut(start, len(messages), "from")


def _cut_at(messages: Sequence[Message], name: str) -> int:
    """The last cut that is not behind the message of that name."""
    uuid = ShortIds.of(messages).find(name)
    at = next(i for i, message in enumerate(messages) if message.uuid == uuid)
    return max((point for point in cut_points(messages) if point <= at), default=0)


def _refuse_thinking_loop(messages: Sequence[Message]) -> None:
    if in_thinking_loop(messages):
        raise CompactionError(
            "the session is in the middle of a turn whose thinking cannot be moved",
            "let the turn end first, or compact into a new file (without {in_place})",
        )


def _waits_for_tools(messages: Sequence[Message]) -> bool:
    """Whether the last response has a call without a result."""
    last = max((i for i, m in enumerate(messages) if m.kind == "response"), default=len(messages))
    answered = {call_id(b) for m in messages[last:] for b in tool_results(m)}
    return any(call_id(b) not in answered for m in messages[last : last + 1] for b in tool_uses(m))


def _why_not(messages: Sequence[Message], size_tokens: int, keep_tokens: int) -> str:
    if not messages:
        return "it holds no messages"
    if size_tokens > keep_tokens:
        return "all of it is within what is kept"
    return f"only {short(size_tokens)} tokens are messages, and the newest {short(keep_tokens)} stay"


def _worth(gone: Sequence[Message]) -> bool:
    return any(m.kind in ("prompt", "response", "results") for m in gone)


def _settled(messages: Sequence[Message], sizes_tokens: Sequence[int], keep_tokens: int) -> bool:
    """Whether an earlier compaction did it already, and hardly anything was added since."""
    if not messages or messages[0].kind != "summary":
        return False
    since = sum(t for m, t in zip(messages, sizes_tokens, strict=True) if m.kind not in ("summary", "meta"))
    return since <= SLACK * keep_tokens
