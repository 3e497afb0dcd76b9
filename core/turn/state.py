"""What a conversation is: the pure fold of its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace as replace_fields

from core.context.decisions import Collapsed, Snipped, State, fold
from core.model import Message, Usage, call_id, tool_results, without_thinking
from core.turn.autocompact import AutoState
from core.turn.events import (
    Acted,
    Appended,
    Attached,
    Begun,
    Climbed,
    Compacted,
    Decided,
    Event,
    Failed,
    Limited,
    Paused,
    Recovered,
    Refilled,
    Row,
    Rung,
    Stripped,
)

_FREES = frozenset({"microcompact"})
"""Stages after which a warning would speak of a size that is no more."""


@dataclass(frozen=True, slots=True)
class Charged:
    """What the newest response with usage was charged for, that response included."""

    messages: tuple[Message, ...]
    decisions: State
    stale: frozenset[str]


@dataclass(frozen=True, slots=True)
class TurnState:
    """All there is to know: what is in front of the model, and what was decided and counted so far."""

    session: str = ""
    messages: tuple[Message, ...] = ()
    """Since the last compaction, as they were written; decisions are applied by the projection."""
    decisions: State = field(default_factory=State)
    stale: frozenset[str] = frozenset()
    """Messages that were kept by a compaction: their usage is of the context before it."""
    charged: Charged | None = None
    attachments: tuple[dict[str, object], ...] = ()
    """The data of those that are in view, oldest first."""
    auto: AutoState = field(default_factory=AutoState)
    requests: int = 0
    """Responses, since the beginning."""
    compactions: int = 0
    rungs: frozenset[Rung] = frozenset()
    """Steps of the recovery that were taken in this turn."""
    max_tokens: int | None = None
    """What the endpoint takes at most, where it had to say so."""
    quiet: bool = False
    """Something was taken out since the last usage figure: no warning by a size that is no more."""
    spent: Usage = field(default_factory=Usage)
    """What all calls together were charged for."""
    attached: frozenset[str] = frozenset()
    """The messages of the attachments that are in view."""


class Draft:
    """A state that is being folded."""

    def __init__(self) -> None:
        self._session = ""
        self._messages: list[Message] = []
        self._decisions = State()
        self._stale: frozenset[str] = frozenset()
        self._charged: Charged | None = None
        self._attached: dict[str, dict[str, object]] = {}
        self._auto = AutoState()
        self._requests = self._compactions = 0
        self._rungs: frozenset[Rung] = frozenset()
        self._max_tokens: int | None = None
        self._quiet = False
        self._spent = Usage()

    def add(self, event: Event) -> None:
        """Folds one event."""
        match event:
            case Begun(session=session):
                self._session = session
            case Appended(message=row):
                self._append(row.message())
            case Attached(message=row, data=data):
                self._messages.append(row.message())
                self._attached[row.uuids[0]] = data
            case Decided(decisions=decisions):
                self._decisions = fold(decisions, self._decisions)
                self._quiet |= event.stage in _FREES and event.tokens_freed > 0
                hidden = {u for d in _stands_in(self._decisions) for u in d.uuids}
                self._attached = {uuid: data for uuid, data in self._attached.items() if uuid not in hidden}
            case Compacted():
                self._compact(event)
            case Stripped(uuids=uuids):
                gone = frozenset(uuids)
                self._messages = [
                    m for m in (without_thinking(m) if m.uuid in gone else m for m in self._messages) if m.content
                ]
            case Limited(max_tokens=most):
                self._max_tokens = most
            case Climbed(rung=rung):
                self._rungs |= {rung}
            case Recovered():
                pass  # the events before it say what it did
            case _:
                self._about_auto(event)

    def state(self) -> TurnState:
        """The state so far."""
        return TurnState(
            self._session,
            tuple(self._messages),
            self._decisions,
            self._stale,
            self._charged,
            tuple(self._attached.values()),
            self._auto,
            self._requests,
            self._compactions,
            self._rungs,
            self._max_tokens,
            self._quiet,
            self._spent,
            frozenset(self._attached),
        )

    def _append(self, message: Message) -> None:
        self._messages.append(message)
        if message.kind == "prompt":
            self._rungs = frozenset()
        if message.kind != "response":
            return
        self._requests += 1
        self._auto = self._auto.requested()
        self._spend(message.usage)
        if message.usage and message.usage.prompt_tokens:
            self._charged = Charged(tuple(self._messages), self._decisions, self._stale)
            self._quiet = False

    def _compact(self, event: Compacted) -> None:
        self._compactions += 1
        self._messages = [*_laid_out(event.layout, self._messages, self._decisions)]
        there = frozenset(m.uuid for m in self._messages)
        self._decisions = _left(self._decisions, self._messages, there)
        self._stale = frozenset(m.uuid for m in self._messages if m.kind == "response")
        self._attached = {uuid: data for uuid, data in self._attached.items() if uuid in there}
        self._quiet = True
        self._spend(event.usage)
        self._auto = AutoState() if event.trigger == "manual" else self._auto.compacted()

    def _about_auto(self, event: Failed | Refilled | Paused | Acted) -> None:
        match event:
            case Failed():
                self._auto = self._auto.failed()
                self._spend(event.usage)
            case Refilled():
                self._auto = self._auto.refilled()
            case Paused(tokens=tokens):
                self._auto = self._auto.paused(tokens)
            case _:
                self._auto = AutoState()

    def _spend(self, usage: Usage | None) -> None:
        if usage is not None:
            self._spent += usage


def _laid_out(layout: Sequence[str | Row], messages: Sequence[Message], decisions: State) -> Iterable[Message]:
    """The messages of a layout; a snip or a span brings along all that it stands for."""
    by_uuid = {m.uuid: m for m in messages}
    parts = {d.id: d.uuids for d in _stands_in(decisions)}
    for item in layout:
        if isinstance(item, Row):
            yield item.message()
            continue
        uuids = (item,) if item in by_uuid else parts.get(item, ())
        yield from (bare for u in uuids if u in by_uuid and (bare := without_thinking(by_uuid[u])).content)


def _stands_in(decisions: State) -> tuple[Snipped | Collapsed, ...]:
    """What hides messages and stands for them."""
    return (*decisions.snips, *decisions.committed)


def _left(state: State, messages: Sequence[Message], there: frozenset[str]) -> State:
    """The decisions about what is still there; no thinking is left that they could be older than."""
    calls = frozenset(call_id(b) for m in messages for b in tool_results(m))
    edits = (replace_fields(e, ids=tuple(i for i in e.ids if i in calls)) for e in state.cache_edits)
    return State(
        seen=state.seen,
        replaced={c: replace_fields(r, at_request=0) for c, r in state.replaced.items() if c in calls},
        media={
            owner: {body: replace_fields(note, at_request=0) for body, note in notes.items()}
            for owner, notes in state.media.items()
            if owner in calls or owner in there
        },
        snips=tuple(replace_fields(s, at_request=0) for s in state.snips if there & {*s.uuids}),
        committed=tuple(replace_fields(s, at_request=0) for s in state.committed if there >= {*s.uuids}),
        cache_edits=tuple(e for e in edits if e.ids),
    )
