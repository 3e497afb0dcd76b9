"""Single edits of a view, and which of them are worth making: what stages that replace contents share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from msgspec.structs import replace as replace_fields

from core.context.decisions import Collapsed, Committed, Decision, MediaReplaced, Replaced, Snipped
from core.errors import FoldmarkError
from core.model import JSON, Message, is_thinking
from core.stages.base import Plan, Scene, Stored, applied
from core.stages.receipt import page_name
from core.stages.verdict import Verdict
from core.stages.worth import weighing
from core.transcript.store import Store


@dataclass(frozen=True, slots=True)
class Edit:
    """One content that gives way; `at` is its message's place in the view."""

    at: int
    decision: Replaced | MediaReplaced
    freed_tokens: int
    """Less than 0 where what takes its place is longer."""
    body: Stored | None = None


def choose(scene: Scene, view: Sequence[Message], edits: Sequence[Edit]) -> tuple[list[Edit], Verdict | None]:
    """The edits that pay, and their verdict; where none do, the best verdict there is. A forced scene takes all.

    The first edit of what was sent before decides what is written to the cache anew: all edits behind it are free.
    So the start from which on all are made is chosen.  What has not been sent yet costs nothing to change.
    """
    if not edits:
        return [], None
    edits = sorted(edits, key=lambda e: e.at)
    sizes = scene.tokens(view)
    sent = max((i for i, m in enumerate(view) if m.kind == "response"), default=-1)
    behind = [*accumulate(reversed([size if i < sent else 0 for i, size in enumerate(sizes)]), initial=0)][::-1]
    verdicts = _verdicts(scene, sum(sizes), behind, edits)
    best = 0 if scene.forced else max(range(len(edits)), key=lambda n: (_gain(verdicts[n]), -n))
    pays = scene.forced or verdicts[best].pays
    return [e for n, e in enumerate(edits) if (pays and n >= best) or e.at > sent], verdicts[best]


def _verdicts(scene: Scene, view_tokens: int, behind: Sequence[int], edits: Sequence[Edit]) -> list[Verdict]:
    """For each edit the verdict on making it and all behind it."""
    weigh = weighing(scene, scene.overhead_tokens + view_tokens)
    found: list[Verdict] = []
    deleted_tokens = gone_tokens = 0
    for edit in reversed(edits):
        deleted_tokens += edit.freed_tokens
        found.append(weigh(max(0, deleted_tokens), max(0, behind[edit.at + 1] - gone_tokens)))
        gone_tokens += edit.freed_tokens if behind[edit.at] else 0
    return found[::-1]


def _gain(verdict: Verdict) -> float:
    return verdict.saves - verdict.costs


def editable_from(scene: Scene, view: Sequence[Message]) -> int:
    """The first message that may be changed: the one behind the last thinking of an unfinished tool loop, else 0."""
    if scene.may_edit:
        return 0
    holding = (i for i, m in enumerate(view) if m.kind == "response" and any(map(is_thinking, m.content)))
    return 1 + max(holding, default=len(view))


def plan_edits(
    stage: str,
    scene: Scene,
    view: Sequence[Message],
    edits: Sequence[Edit],
    before: Sequence[Decision] = (),
    reason: str = "",
) -> Plan:
    """The plan that makes the edits that pay, after the decisions `before`."""
    made, verdict = choose(scene, view, edits)
    bodies = {e.body.id: e.body for e in made if e.body}
    requests = scene.requests
    decisions = (*before, *(replace_fields(e.decision, at_request=requests) for e in made))
    if len(made) < len(edits):
        reason = f"{len(edits) - len(made)} of {len(edits)} stay: it would cost more than it saves"
    plan = Plan(stage, decisions, tuple(bodies.values()), reason=reason, verdict=verdict)
    return replace(plan, tokens_freed=freed_tokens(scene, plan))


def freed_tokens(scene: Scene, plan: Plan) -> int:
    """By how much the context is smaller with the plan, thinking that has to go included; at least 0."""
    return max(0, scene.total_tokens - applied(scene, plan).total_tokens)


def store_bodies(store: Store, scene: Scene, plan: Plan) -> Plan:
    """Stores what a plan takes out; decisions whose body could not be stored are dropped, and `reason` says why.

    When it returns, all that the decisions of the plan lean on is on the disk.
    """
    failed = _not_stored(store, plan.bodies)
    if not failed:
        return plan
    ids_of: dict[str, list[str]] = {}
    for ident, error in failed.items():
        ids_of.setdefault(error, []).append(ident)
    left = replace(
        plan,
        decisions=tuple(d for d in plan.decisions if not leans_on(d) & failed.keys()),
        bodies=tuple(b for b in plan.bodies if b.id not in failed),
        reason="; ".join(filter(None, (plan.reason, *(_stay(ids, error) for error, ids in ids_of.items())))),
    )
    return replace(left, tokens_freed=freed_tokens(scene, left))


def _not_stored(store: Store, bodies: Sequence[Stored]) -> dict[str, str]:
    """Stores some bodies at once; where that fails, in halves, so that one keeps no other out: why which were not."""
    try:
        store.put_all((body.id, _content(body), body.name) for body in bodies)
    except FoldmarkError as error:
        if len(bodies) == 1:
            return {bodies[0].id: str(error)}
        half = len(bodies) // 2
        return _not_stored(store, bodies[:half]) | _not_stored(store, bodies[half:])
    return {}


def _stay(ids: Sequence[str], error: str) -> str:
    if len(ids) == 1:
        return f"{ids[0]} stays, it could not be stored: {error}"
    return f"{ids[0]} and {len(ids) - 1} more stay, they could not be stored: {error}"


def _content(body: Stored) -> JSON:
    return body.content.get("content") if body.content.get("type") == "tool_result" else body.content


def store_pages(store: Store, scene: Scene, plan: Plan, session: str) -> None:
    """Stores one page for each snip and each span that a plan folds; raises WriteFailed."""
    messages = {m.uuid: m for m in scene.messages}
    committed = {s.id: s for s in applied(scene, plan).state.committed}
    for decision in plan.decisions:
        taken = [(page_name("snip", decision.id), decision.uuids)] if isinstance(decision, Snipped) else []
        if isinstance(decision, Committed):
            spans = (committed[ident] for ident in decision.ids if ident in committed)
            taken = [(page_name("span", span.id), span.uuids) for span in spans]
        for name, uuids in taken:
            gone = [messages[u] for u in uuids if u in messages]
            store.archive(name, gone, f"What was taken out of session {session}", name)


def leans_on(decision: Decision) -> set[str]:
    """The ids of the stored bodies, and of the pages, that a decision leans on."""
    match decision:
        case Replaced(id=ident) | MediaReplaced(body=ident):
            return {ident}
        case Snipped(id=ident):
            return {page_name("snip", ident)}
        case Collapsed(id=ident):
            return {page_name("span", ident)}
    return set()
