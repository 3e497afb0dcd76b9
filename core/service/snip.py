"""Take a range out of a transcript, or say which ranges may go."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from core.results import Result
from core.service.operation import Target
from core.service.session import Session, SessionRef
from core.service.stages import StageResult, StageRun, StageSettings, run_stages
from core.stages.snip import Snip, SnipPlan
from core.stages.verdict import Verdict
from core.transcript.projects import SessionFile

SHORT_CHARS = 8
"""Of a random id: among 10,000 messages one pair in a hundred sessions has them in common, and then it is longer."""


class SnipResult(StageResult):
    """A snip, done or planned."""

    from_id: str
    """The first row that it takes out."""
    to_id: str
    """The last."""
    messages: int
    """How many it takes out."""


class SnipProposal(Result):
    """A range that may go, and why."""

    from_id: str
    """The start of an id, long enough for `snip` and `output`."""
    to_id: str
    messages: int
    tokens: int
    reasons: list[str]
    pays_after: float | None
    """After how many requests (null: never)."""
    verdict: str


class SnipProposals(Result):
    """What may go, the best first."""

    session: SessionRef
    proposals: list[SnipProposal]
    reason: str
    """Why there are none."""


def snip(file: SessionFile, from_id: str, to_id: str, target: Target, settings: StageSettings) -> SnipResult:
    """Takes out a range; the source keeps its bytes, unless `in_place` appends to it.

    Raises what `Snip.plan_range` and writing raise; then nothing was changed.
    """
    made: list[SnipPlan] = []

    def choose(run: StageRun) -> list[SnipPlan]:
        made[:] = [Snip().plan_range(run.scene, from_id, to_id, run.earlier)]
        return made

    result = run_stages(file, Snip.name, (from_id, to_id), choose, target, settings)
    plan = made[0]
    return SnipResult(**msgspec.structs.asdict(result), from_id=plan.first, to_id=plan.last, messages=plan.count)


def snip_proposals(session: Session, target: Target, settings: StageSettings) -> SnipProposals:
    """The ranges of an open session that may go."""
    run = StageRun(session, Snip.name, ("suggest",), target, settings)
    known = _ids(session)
    found = [
        SnipProposal(
            from_id=_start_of(p.from_id, known),
            to_id=_start_of(p.to_id, known),
            messages=p.plan.count,
            tokens=p.tokens,
            reasons=[*p.reasons],
            pays_after=_pays_after(p.plan.verdict),
            verdict=str(p.plan.verdict),
        )
        for p in Snip().suggest(run.scene)
    ]
    reason = "" if found else "nothing is both large and superseded, given up, finished or old"
    if not run.scene.may_edit:
        reason = "an unfinished tool loop holds thinking that is bound to what is before it"
    return SnipProposals(session=session.ref, proposals=found, reason=reason)


def _ids(session: Session) -> set[str]:
    """All ids that a name may lead to."""
    if session.claude is None:
        return {m.uuid for m in session.messages}
    return {name for entry in session.claude.log.entries for name in (entry.uuid, *entry.tools)}


def _start_of(ident: str, known: Collection[str]) -> str:
    """The shortest start of an id, of at least `SHORT_CHARS`, with which no other begins."""
    lengths = range(SHORT_CHARS, len(ident))
    return next((ident[:n] for n in lengths if sum(k.startswith(ident[:n]) for k in known) < 2), ident)


def _pays_after(verdict: Verdict | None) -> float | None:
    return None if verdict is None or verdict.pays_after is None else round(verdict.pays_after, 1)
