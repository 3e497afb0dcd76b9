"""Take a range out of a transcript, or say which ranges may go."""

from __future__ import annotations

from core.context.short_ids import ShortIds
from core.service.compact import Target
from core.service.session import Result, Session, SessionRef
from core.service.stages import StageResult, StageRun, StageSettings, run_stages
from core.stages.snip import Snip, SnipPlan
from core.stages.verdict import Verdict
from core.transcript.projects import SessionFile


class SnipResult(StageResult):
    """A snip, done or planned: the first and the last row that it takes out, and of how many messages."""

    first: str
    last: str
    count: int


class SnipProposal(Result):
    """A range that may go: its ends are what `snip` takes, `pays_after` counts requests (None: never)."""

    from_id: str
    to_id: str
    messages: int
    tokens: int
    reasons: list[str]
    pays_after: float | None
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
    return SnipResult(**dict(result), first=plan.first, last=plan.last, count=plan.count)


def snip_proposals(session: Session, target: Target, settings: StageSettings) -> SnipProposals:
    """The ranges of an open session that may go."""
    run = StageRun(session, Snip.name, ("suggest",), target, settings)
    short = ShortIds.of(run.scene.messages).short
    found = [
        SnipProposal(
            from_id=short(p.from_id),
            to_id=short(p.to_id),
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


def _pays_after(verdict: Verdict | None) -> float | None:
    return verdict.pays_after if verdict else None
