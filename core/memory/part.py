"""What the notes do not tell of yet: from where to where, how much it is, and whether it ends at a natural pause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from core.context.rounds import closed_points
from core.facts.milestones import closes
from core.memory.evidence import Evidence, evidence_of
from core.memory.notes import Notes
from core.model import Message, call_id, tool_results, tool_uses


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a conversation to be noted: `view` ends with it, and it begins at `start`."""

    notes: Notes
    view: Sequence[Message]
    """Without secrets; what is before the part is there for what it refers to."""
    start: int
    evidence: Evidence
    """Of the view."""
    title: str
    """What the client calls the session."""
    budget_tokens: int
    """The room of the notes."""

    @property
    def new(self) -> Sequence[Message]:
        """The messages of the part."""
        return self.view[self.start :]

    @property
    def covers(self) -> str:
        """What the notes cover once the part is noted."""
        return next((m.uuids[-1] for m in reversed(self.view) if m.uuids), self.notes.covers)


@dataclass(frozen=True, slots=True)
class Unseen:
    """What is between the notes and the end of a conversation."""

    start: int
    end: int
    """Behind the last message that leaves no call open."""
    tokens: int
    responses: int
    turns: int
    """All prompts of the conversation, those that the notes tell of too: what failures are counted in."""
    pause: bool
    """Whether it ends where nothing is half done: a turn is over, a task is, or a commit was made."""


def unseen(messages: Sequence[Message], sizes_tokens: Sequence[int], covers: str) -> Unseen:
    """What the notes that cover all up to a row do not tell of; all, where the row is not in the view."""
    places = {uuid: at for at, message in enumerate(messages) for uuid in message.uuids}
    end = noted_end(messages)
    start = min(end, places.get(covers, -1) + 1)
    new = messages[start:end]
    return Unseen(
        start,
        end,
        sum(sizes_tokens[start:end]),
        sum(message.kind == "response" for message in new),
        sum(message.kind == "prompt" for message in messages),
        _is_pause(new),
    )


def noted_end(messages: Sequence[Message]) -> int:
    """Where notes may end: behind the last message that leaves no call open; one that is made now is open."""
    end = len(messages)
    for at in range(end - 1, -1, -1):
        if messages[at].kind == "response":
            answered = {call_id(b) for m in messages[at:] for b in tool_results(m)}
            if any(call_id(b) not in answered for b in tool_uses(messages[at])):
                end = at
            break
    return max((point for point in closed_points(messages) if point <= end), default=0)


def chunks(sizes_tokens: Sequence[int], messages: Sequence[Message], what: Unseen, most_tokens: int) -> Iterator[int]:
    """The ends of pieces of at most so many tokens, or of one round that is larger."""
    points = [p for p in closed_points(messages) if what.start < p <= what.end]
    up_to_tokens = [0, *accumulate(sizes_tokens)]
    begin = what.start
    for at, point in enumerate(points):
        following = points[at + 1] if at + 1 < len(points) else None
        if following is None or up_to_tokens[following] - up_to_tokens[begin] > most_tokens:
            yield point
            begin = point


def _is_pause(new: Sequence[Message]) -> bool:
    last = max((at for at, m in enumerate(new) if m.kind == "response"), default=-1)
    if last < 0:
        return False
    if not tool_uses(new[last]):
        return True
    calls = evidence_of(new).calls
    return any(closed and call.at == last for call, closed in zip(calls, closes(calls), strict=True))
