"""Decisions about a history, and the pure fold that gives the state they amount to.

Every change short of a compaction is a decision: a small record that names what it is about by id.  Decisions are
appended, never edited; a later one may take back an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace as replace_fields

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

_NONE: Mapping[str, Replaced] = MappingProxyType({})
_NO_MEDIA: Mapping[str, Notes] = MappingProxyType({})


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
    def leaned_on(self) -> frozenset[str]:
        """Results that others point to: those hold only while these are whole."""
        return frozenset(r.leans_on for r in self.replaced.values()) - {""}

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
            case Collapsed() if decision.uuids:  # one of nothing has no place
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
