"""Snip: messages are taken out of the middle, and one line stands in their place; nothing is summarised.

A person or the model names a range, or takes one that `suggest` proposes.  A range is widened to whole rounds; what a
person wrote in it, and what else is no response and no result, stays unless it is named itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from core.context.decisions import Snipped, Withdrawn
from core.context.rounds import closed_points
from core.context.short_ids import ShortIds
from core.errors import IdNotFound, InputError
from core.model import Message, text_block
from core.stages.base import Plan, Scene
from core.stages.receipt import page_name, page_of, receipt
from core.stages.snip_scores import Candidate, candidates
from core.stages.verdict import Verdict
from core.stages.worth import weighing
from core.transcript.materialize import derived_id

REMOVABLE = ("response", "results")
"""Kinds of messages that go without being named: what a person wrote and what the client said stay."""
PROTECTED_TURNS, PROTECTED_RESPONSES = 2, 8
PROTECTED_TOKENS = 20_000
"""The last two turns are protected as far as they lie within the newest 20,000 tokens (what a compaction keeps): a
session may be one turn of hundreds of rounds.  The last 8 responses always are."""
MOST_PROPOSALS = 5


@dataclass(frozen=True, slots=True)
class SnipSettings:
    """What a person may choose about it."""

    nudge_tokens: int = 15_000
    """Growth from one nudge to the next."""
    pinned: frozenset[str] = frozenset()
    """Uuids of messages that are never taken out."""
    automatic: bool = False
    """Take what `suggest` proposes and what pays, without asking."""


@dataclass(frozen=True, slots=True)
class SnipPlan(Plan):
    """A snip: the first and the last message that it takes out, and how many there are in all."""

    first: str = ""
    last: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A range that may go; `plan` is what accepting it does, `reasons` are words for a reader."""

    from_id: str
    to_id: str
    tokens: int
    """What it frees."""
    value: float
    reasons: tuple[str, ...]
    plan: SnipPlan

    @property
    def rank(self) -> float:
        """The value by what is left of the savings when the cache is paid for."""
        verdict = self.plan.verdict
        return self.value * (1 - verdict.costs / verdict.saves) if verdict and verdict.pays else 0.0


@dataclass(frozen=True, slots=True)
class _Look:
    """What the model sees, measured."""

    scene: Scene
    messages: tuple[Message, ...]
    sizes: list[int]
    protected: int
    """Index of the first message of the protected tail."""
    markers: frozenset[str]
    """Ids of what stands in for others: never taken out, they say where the others are."""
    weigh: Callable[[int, int], Verdict]
    """The verdict on what is deleted, with what follows it and stays, in tokens."""


class Snip:
    """The stage."""

    name = "snip"

    def __init__(self, settings: SnipSettings | None = None) -> None:
        self.settings = settings or SnipSettings()

    def plan(self, scene: Scene) -> Plan:
        """Nothing by itself; when `automatic`, the proposals that pay."""
        if not self.settings.automatic:
            return Plan(self.name, reason="a person or the model decides what is snipped")
        chosen = [p.plan for p in self.suggest(scene) if p.rank > 0 or scene.forced]
        if not chosen:
            return Plan(self.name, reason="no range is worth it")
        decisions = tuple(d for plan in chosen for d in plan.decisions)
        freed = sum(plan.tokens_freed for plan in chosen)
        return Plan(self.name, decisions, tokens_freed=freed, verdict=chosen[0].verdict)

    def plan_range(self, scene: Scene, from_id: str, to_id: str, earlier: Collection[str] = ()) -> SnipPlan:
        """What taking out a range does; its ends are whatever `ShortIds.find` takes, `earlier` ids out of the context.

        Raises IdNotFound for an id that is none, InputError where the range cannot go: its ends are reversed, lie
        before the last compaction, in the protected tail or in what is gone already, or nothing would be left.
        """
        look = self._look(scene)
        first, last = (_place(look, name, earlier) for name in (from_id, to_id))
        if first > last:
            raise InputError(f"{from_id} stands behind {to_id}", "give the older end first")
        points = closed_points(look.messages)
        begin, end = points[bisect_right(points, first) - 1], points[bisect_right(points, last)]
        responses = [i for i, m in enumerate(look.messages) if m.kind == "response"]
        if all(begin <= i < end for i in responses):
            raise InputError("that is the whole history", "{compact} summarises it instead")
        if end > look.protected:
            hint = f"it ends before {look.messages[look.protected].uuid}; {{compact}} takes out more"
            raise InputError(f"{to_id} lies in the protected tail, the newest messages", hint)
        if not scene.may_edit:
            raise InputError("an unfinished tool loop holds thinking that is bound to it", "let the turn end first")
        gone = [i for i in range(begin, end) if self._may_go(look, i, named=i in (first, last))]
        return self._planned(look, gone)

    def undo(self, scene: Scene, name: str) -> Plan:
        """Puts the messages of a snip back; `name` is its id, the name of its page, or the start of one.

        Raises IdNotFound for no snip or several, InputError for one whose messages are not in the scene any more.
        """
        found = page_of("snip", name, scene.state.snips)
        there = {m.uuid for m in scene.messages}
        if not any(u in there for u in found.uuids):
            hint = "{undo} takes back what was written"
            raise InputError(f"the messages of {page_name('snip', found.id)} are not in this transcript any more", hint)
        return Plan(self.name, (Withdrawn((found.id,), "undone", scene.requests),))

    def suggest(self, scene: Scene) -> list[Proposal]:
        """At most 5 ranges that may go, the best first; disjoint, each may be accepted or not."""
        if not scene.may_edit:
            return []
        look = self._look(scene)
        found = candidates(scene, look.messages, look.sizes, look.protected, look.markers | self.settings.pinned)
        proposals = [self._proposal(look, c) for c in found]
        return sorted(proposals, key=lambda p: (-p.rank, -p.value))[:MOST_PROPOSALS]

    def _look(self, scene: Scene) -> _Look:
        messages = scene.view().messages
        sizes = scene.tokens(messages)
        state = scene.state
        markers = frozenset([*(d.id for d in state.snips), *(d.id for d in state.committed)])
        protected = _protected_from(messages, sizes)
        weigh = weighing(scene, scene.overhead_tokens + sum(sizes))
        return _Look(scene, messages, sizes, protected, markers, weigh)

    def _may_go(self, look: _Look, at: int, named: bool) -> bool:
        message = look.messages[at]
        if message.uuid in look.markers or message.uuid in self.settings.pinned:
            return False
        return message.kind in REMOVABLE or named

    def _planned(self, look: _Look, gone: Sequence[int]) -> SnipPlan:
        scene, messages = look.scene, [look.messages[i] for i in gone]
        if not messages:
            raise InputError("nothing in that range can go", "name a message itself to take out what a person wrote")
        ident = derived_id("snip", *(m.uuid for m in messages))
        tokens = sum(look.sizes[i] for i in gone)
        marker = receipt("removed", messages, tokens, page_name("snip", ident), scene.store_folder)
        freed = tokens - scene.block_tokens([text_block(marker)])
        if freed <= 0:
            raise InputError(f"the line in its place is as long as the {tokens} tokens of that range", "name more")
        uuids = tuple(u for m in messages for u in m.uuids)
        decision = Snipped(ident, uuids, marker, freed, after=look.messages[-1].uuid, at_request=scene.requests)
        behind = sum(look.sizes[gone[0] :]) - tokens
        return SnipPlan(
            self.name,
            (decision,),
            tokens_freed=freed,
            verdict=look.weigh(freed, behind),
            first=messages[0].uuids[0],
            last=messages[-1].uuids[-1],
            count=len(messages),
        )

    def _proposal(self, look: _Look, candidate: Candidate) -> Proposal:
        gone = [i for i in range(candidate.begin, candidate.end) if self._may_go(look, i, named=False)]
        plan = self._planned(look, gone)
        ends = look.messages[gone[0]].uuid, look.messages[gone[-1]].uuid
        return Proposal(*ends, plan.tokens_freed, candidate.value, candidate.reasons, plan)


def _place(look: _Look, name: str, earlier: Collection[str]) -> int:
    """The index of the message that a name means."""
    try:
        uuid = ShortIds.of(look.scene.messages).find(name)
    except IdNotFound:
        _must_not_be_gone(look, name)
        if name in earlier:
            hint = "what a compaction took out is out of the context already"
            raise InputError(f"{name} lies before the last compaction", hint) from None
        raise
    _must_not_be_gone(look, uuid)
    place = next((i for i, m in enumerate(look.messages) if m.uuid == uuid), None)
    if place is None:
        raise InputError(f"{name} holds nothing that is sent", "name the message before or behind it")
    if look.messages[place].kind == "summary":
        raise InputError(f"{name} is the summary of an earlier compaction", "begin behind it")
    return place


def _must_not_be_gone(look: _Look, name: str) -> None:
    state = look.scene.state
    taken = [(d.id, d.uuids, page_name("snip", d.id), "snipped") for d in state.snips]
    taken += [(d.id, d.uuids, page_name("span", d.id), "folded into a note") for d in state.committed]
    for ident, uuids, page, how in taken:
        if name in uuids or name in (ident, page):
            raise InputError(f"{name} is {how} already", f"{{output}} {page} shows what it was")


def _protected_from(messages: Sequence[Message], sizes: Sequence[int]) -> int:
    """Where the protected tail begins."""
    prompts = [i for i, m in enumerate(messages) if m.kind == "prompt"]
    responses = [i for i, m in enumerate(messages) if m.kind == "response"]
    if len(responses) < PROTECTED_RESPONSES:
        return 0
    turns = prompts[-PROTECTED_TURNS] if len(prompts) >= PROTECTED_TURNS else 0
    newest, at = 0, len(messages)
    while at > turns and newest + sizes[at - 1] <= PROTECTED_TOKENS:
        at -= 1
        newest += sizes[at]
    return min(responses[-PROTECTED_RESPONSES], at)
