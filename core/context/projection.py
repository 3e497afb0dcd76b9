"""Decisions about a history, and the pure fold that turns a history and its decisions into what the model sees.

Every change short of a compaction is a decision: a small record that names what it is about by id.  Decisions are
appended, never edited; a later one may take back an earlier one.  `fold` gives the state they amount to, `project`
applies it to the messages.  Both are deterministic, so a resumed session builds the same request, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace as replace_fields

from core.model import JSON, Block, Message, call_id, is_media, text_block, tool_results, without_thinking
from core.transcript.blob import media_blob

Request: TypeAlias = int | None
"""When something was decided: how many responses there were.  What they thought is bound to what they saw; what comes
after them is thought in sight of the change.  None where that is not known: then no thinking behind it counts."""
Reason: TypeAlias = Literal["budget", "cleared", "unchanged"]
"""budget: too large, stored.  cleared: old, stored.  unchanged: a second read of what an earlier result shows."""


class Seen(msgspec.Struct, frozen=True, tag_field="kind", tag="seen"):
    """Results that the budget has looked at and left alone: they are never replaced by it later."""

    ids: tuple[str, ...]


class Replaced(msgspec.Struct, frozen=True, tag_field="kind", tag="replaced"):
    """A tool result whose content is `text` from now on, whatever the template becomes later.

    `id` is that of the call.  The budget leaves images and documents in their place.
    """

    id: str
    text: str
    reason: Reason
    leans_on: str = ""
    """The call whose result `text` points to: the replacement holds only while that result is there, whole."""
    at_request: Request = None


class MediaReplaced(msgspec.Struct, frozen=True, tag_field="kind", tag="media-replaced"):
    """An image or document that has this note in its place from now on."""

    owner: str
    """The call whose result holds it, or the uuid of the message."""
    body: str
    """The id of its content, which finds it in the store: places shift when other decisions are written out."""
    text: str
    at_request: Request = None


class Snipped(msgspec.Struct, frozen=True, tag_field="kind", tag="snipped"):
    """Messages taken out of the middle; one line stands in their place."""

    id: str
    uuids: tuple[str, ...]
    marker: str
    tokens: int = 0
    after: str = ""
    """The newest message when it was decided."""
    at_request: Request = None


class Collapsed(msgspec.Struct, frozen=True, tag_field="kind", tag="collapsed"):
    """A span of messages with a note that stands for it once it is committed."""

    id: str
    uuids: tuple[str, ...]
    note: str
    tokens: int = 0
    note_tokens: int = 0
    tier: int = 0
    """How often notes were merged into this one."""
    at_request: Request = None
    """When it was staged; of a committed one in a state, when that was."""


class Committed(msgspec.Struct, frozen=True, tag_field="kind", tag="committed"):
    """Staged spans that are projected from now on, in one batch."""

    ids: tuple[str, ...]
    at_request: Request = None


class Withdrawn(msgspec.Struct, frozen=True, tag_field="kind", tag="withdrawn"):
    """Snips and spans that do not hold any more: undone, expanded, rejected, or merged into another."""

    ids: tuple[str, ...]
    why: str = ""
    at_request: Request = None


class CacheEdited(msgspec.Struct, frozen=True, tag_field="kind", tag="cache-edited"):
    """Results that the server deletes from its cached prefix; the edit stays pinned behind message `after`."""

    ids: tuple[str, ...]
    after: str
    at_request: int = 0


class Nudged(msgspec.Struct, frozen=True, tag_field="kind", tag="nudged"):
    """A proposal to snip was shown, at this size of the context in tokens, after so many responses."""

    tokens: int
    at_request: int
    after: str = ""
    """The newest message when it was shown: what came since is counted from there."""


Decision: TypeAlias = (
    Seen | Replaced | MediaReplaced | Snipped | Collapsed | Committed | Withdrawn | CacheEdited | Nudged
)
Notes: TypeAlias = Mapping[str, MediaReplaced]
"""What stands in the place of images and documents, by the ids of their content."""

_Item = TypeVar("_Item", bound=JSON)
_NONE: Mapping[str, Replaced] = MappingProxyType({})
_NO_MEDIA: Mapping[str, Notes] = MappingProxyType({})
_NO_NOTES: Notes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Away:
    """Messages that were out of sight for a while: what was thought meanwhile is bound to a history without them."""

    uuids: frozenset[str]
    since: Request
    until: Request

    def covers(self, request: int) -> bool:
        """Whether a response, counted from 0, came meanwhile."""
        return (self.since or 0) <= request and (self.until is None or request < self.until)


@dataclass(frozen=True, slots=True)
class State:
    """What all decisions amount to."""

    seen: frozenset[str] = frozenset()
    replaced: Mapping[str, Replaced] = field(default_factory=lambda: _NONE)
    media: Mapping[str, Notes] = field(default_factory=lambda: _NO_MEDIA)
    """By the call or the message that holds them."""
    snips: tuple[Snipped, ...] = ()
    staged: tuple[Collapsed, ...] = ()
    committed: tuple[Collapsed, ...] = ()
    cache_edits: tuple[CacheEdited, ...] = ()
    nudges: tuple[Nudged, ...] = ()
    last_commit_request: int = 0
    away: tuple[Away, ...] = ()
    """By snips and spans that were withdrawn."""

    @property
    def cleared_on_server(self) -> frozenset[str]:
        """Results that the server does not show the model any more."""
        return frozenset(i for edit in self.cache_edits for i in edit.ids)


def fold(decisions: Iterable[Decision], state: State | None = None) -> State:
    """The state after all decisions, in their order; ids that are not there (any more) are passed over."""
    draft = _Draft(state or State())
    for decision in decisions:
        draft.add(decision)
    return draft.state()


class _Draft:
    """A state that is being folded: a decision changes it where it is, so that each costs the same."""

    def __init__(self, state: State) -> None:
        self.seen = set(state.seen)
        self.replaced = dict(state.replaced)
        self.media = {owner: dict(notes) for owner, notes in state.media.items()}
        self.snips, self.staged, self.committed = [*state.snips], [*state.staged], [*state.committed]
        self.cache_edits, self.nudges = [*state.cache_edits], [*state.nudges]
        self.last_commit_request = state.last_commit_request
        self.away = [*state.away]

    def add(self, decision: Decision) -> None:
        match decision:
            case Seen(ids=ids):
                self.seen.update(ids)
            case Replaced(id=call):
                if call not in self.replaced:  # frozen: the first decision holds
                    self.seen.add(call)
                    self.replaced[call] = decision
            case MediaReplaced(owner=owner, body=body):
                self.media.setdefault(owner, {}).setdefault(body, decision)
            case Snipped():
                self.snips.append(decision)
            case Collapsed():
                self.staged.append(decision)
            case Committed(ids=ids, at_request=at):
                self.committed += [replace_fields(s, at_request=at) for s in self.staged if s.id in ids]
                self.staged = [s for s in self.staged if s.id not in ids]
                self.last_commit_request = at or 0
            case Withdrawn(ids=ids, at_request=at):
                held: list[Snipped | Collapsed] = [*self.snips, *self.committed]
                self.away += [Away(frozenset(d.uuids), d.at_request, at) for d in held if d.id in ids]
                self.snips = [s for s in self.snips if s.id not in ids]
                self.staged = [s for s in self.staged if s.id not in ids]
                self.committed = [s for s in self.committed if s.id not in ids]
            case CacheEdited():
                self.cache_edits.append(decision)
            case Nudged():
                self.nudges.append(decision)

    def state(self) -> State:
        return State(
            frozenset(self.seen),
            self.replaced,
            self.media,
            tuple(self.snips),
            tuple(self.staged),
            tuple(self.committed),
            tuple(self.cache_edits),
            tuple(self.nudges),
            self.last_commit_request,
            tuple(self.away),
        )


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
        places = [index[u] for u in span.uuids if u in index]
        contiguous = len(places) == len(span.uuids) and places == list(range(places[0], places[0] + len(places)))
        if contiguous and not any(u in owner for u in span.uuids):
            owner |= dict.fromkeys(span.uuids, _stand_in(span, span.note, messages[places[0]]))
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
