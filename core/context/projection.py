"""What the model sees of a history: the pure projection that applies a state of decisions to the messages.

It is deterministic, so a resumed session builds the same request, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType
from typing import TypeVar

from core.context.decisions import Away, Collapsed, Notes, Replaced, Request, Snipped, State
from core.context.rounds import contiguous
from core.model import JSON, Block, Message, call_id, is_media, text_block, tool_results, without_thinking
from core.transcript.blob import media_blob

_Item = TypeVar("_Item", bound=JSON)
_NO_NOTES: Notes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Projected:
    """The messages that the model sees, and from which of them on they are not what they were (None: unchanged).

    Thinking behind a change is bound to a prefix that is gone, and is left out, but for that of responses that came
    after the change was decided.
    """

    messages: tuple[Message, ...]
    changed_from: int | None


def project(messages: Sequence[Message], state: State) -> Projected:
    """Applies a state to the messages of a history: replacements, then snips and committed spans."""
    if not (state.replaced or state.media or state.snips or state.committed or state.away):
        return Projected(tuple(m for m in messages if m.content), None)
    stands_in = _stand_ins(messages, state)
    replaced = _holding(messages, state, stands_in)
    out: list[Message] = []
    changed_from: int | None = None
    placed: set[str] = set()
    bound = 0.0  # how many responses have seen what is before the message otherwise than it is now
    missed: set[Away] = set()  # the same of what was out of sight for some of them
    before = accumulate((m.kind == "response" for m in messages), initial=0)  # responses in front of each message
    for message, responses in zip(messages, before, strict=False):
        owner = stands_in.get(message.uuid)
        if owner is not None and owner.id in placed:
            continue
        if owner is None:
            new = _replaced(message, replaced, state.media)
            missed.update(away for away in state.away if message.uuid in away.uuids)
        else:
            placed.add(owner.id)
            new = owner
        if new is not message:
            changed_from = len(out) if changed_from is None else changed_from
            bound = max(bound, _bound([owner.at_request] if owner else _decided(message, replaced, state.media)))
        is_bound = responses < bound or any(away.covers(responses) for away in missed)
        out.append(without_thinking(new) if is_bound and new.kind == "response" else new)
    return Projected(tuple(m for m in out if m.content), changed_from)


def _decided(message: Message, replaced: Mapping[str, Replaced], media: Mapping[str, Notes]) -> Iterator[Request]:
    """When each of the decisions was made that change a message."""
    calls = [call_id(b) for b in tool_results(message)]
    yield from (replaced[call].at_request for call in calls if call in replaced)
    yield from (note.at_request for owner in (message.uuid, *calls) for note in media.get(owner, _NO_NOTES).values())


def _bound(decided: Iterable[Request]) -> float:
    """How many responses there were when all of that was decided: what they thought is bound to what was there."""
    return max(math.inf if at is None else at for at in decided)


@dataclass(frozen=True, slots=True)
class _StandIn(Message):
    id: str = ""
    at_request: Request = None


def _stand_ins(messages: Sequence[Message], state: State) -> dict[str, _StandIn]:
    """For each message that is gone, what stands in its place; the first of a span carries it.

    A decision holds only while all of its messages are there, next to each other where that matters: a span whose
    messages are gone, or in another one, is passed over.
    """
    index = {m.uuid: i for i, m in enumerate(messages)}
    owner: dict[str, _StandIn] = {}
    for span in state.committed:
        if contiguous(span.uuids, index) and not any(u in owner for u in span.uuids):
            owner |= dict.fromkeys(span.uuids, _stand_in(span, span.note, messages[index[span.uuids[0]]]))
    for snip in state.snips:
        present = [u for u in snip.uuids if u in index and u not in owner]
        if present:
            owner |= dict.fromkeys(present, _stand_in(snip, snip.marker, messages[index[present[0]]]))
    return owner


def _stand_in(decision: Snipped | Collapsed, text: str, first: Message) -> _StandIn:
    return _StandIn(
        "user",
        "meta",
        (text_block(text),),
        (decision.id,),
        timestamp=first.timestamp,
        id=decision.id,
        at_request=decision.at_request,
    )


def _holding(messages: Sequence[Message], state: State, stands_in: Mapping[str, _StandIn]) -> Mapping[str, Replaced]:
    """The replacements that hold: where the result that one points to is gone, the content comes back."""
    if not any(r.leans_on for r in state.replaced.values()):
        return state.replaced
    there = {call_id(b) for m in messages if m.uuid not in stands_in for b in tool_results(m)}
    whole = there - state.replaced.keys() - state.cleared_on_server
    return {call: r for call, r in state.replaced.items() if not r.leans_on or r.leans_on in whole}


def _replaced(message: Message, replaced: Mapping[str, Replaced], media: Mapping[str, Notes]) -> Message:
    if message.kind == "response" or not (replaced or media):
        return message
    noted = _noted(message.content, media.get(message.uuid, _NO_NOTES))
    content = tuple(_new_result(b, replaced, media) if b.get("type") == "tool_result" else b for b in noted)
    unchanged = all(a is b for a, b in zip(content, message.content, strict=True))
    return message if unchanged else replace(message, content=content)


def _new_result(block: Block, replaced: Mapping[str, Replaced], media: Mapping[str, Notes]) -> Block:
    call = call_id(block)
    content, decision, notes = block.get("content"), replaced.get(call), media.get(call, _NO_NOTES)
    new: JSON = list[JSON](_noted(content, notes)) if isinstance(content, list) else content
    if decision is not None and isinstance(new, list):
        kept = [i for i in new if decision.reason == "budget" and (is_media(i) or _is_note(i, notes))]
        new = [text_block(decision.text), *kept]
    elif decision is not None:
        new = decision.text
    return block if new == content else {**block, "content": new}


def _noted(items: Sequence[_Item], notes: Notes) -> list[_Item | Block]:
    """The items, with notes in the place of the images and documents that have one."""
    return [_note_for(item, notes) for item in items] if notes else [*items]


def _note_for(item: _Item, notes: Notes) -> _Item | Block:
    note = notes.get(media_blob(item).id) if isinstance(item, dict) and is_media(item) else None
    return item if note is None else text_block(note.text)


def _is_note(item: JSON, notes: Notes) -> bool:
    return isinstance(item, dict) and any(item.get("text") == note.text for note in notes.values())
