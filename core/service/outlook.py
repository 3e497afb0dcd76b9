"""What could be freed of a session: by each stage alone, and by a summary; nothing is changed."""

from __future__ import annotations

from core.errors import NothingToCompact
from core.service.by_summary import full
from core.service.context import StageOutlook
from core.service.job import Asked, Choices, Job
from core.service.micro import budget_of
from core.service.session import Session
from core.service.stages import StageRun
from core.stages.base import Plan
from core.stages.collapse import Collapse
from core.stages.microcompact import Microcompact
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip, SnipSettings
from core.summarizers.extractive import Extractive


def outlook(session: Session, choices: Choices) -> list[StageOutlook]:
    """All stages in the order of the pipeline, each on the session as it is, and a full compaction last.

    Each takes part in what the others could free: the figures do not add up.
    """
    tried = choices.tried_out
    run = StageRun(session, "outlook", (), tried.target, tried.settings)
    stages = (
        budget_of(run, choices.budget),
        ReadDedup(),
        Snip(SnipSettings(automatic=True)),
        Microcompact(),
        Collapse(),
    )
    return [*(_of(stage.plan(run.scene)) for stage in stages), _full(Job(session, Asked(Extractive()), tried))]


def _of(plan: Plan) -> StageOutlook:
    verdict = plan.verdict if plan.tokens_freed else None
    said = str(verdict) if verdict and verdict.deleted_tokens else ""
    return StageOutlook(stage=plan.stage, tokens_freed=plan.tokens_freed, reason=plan.reason or said)


def _full(job: Job) -> StageOutlook:
    try:
        done = full(job)
    except NothingToCompact as nothing:
        return StageOutlook(stage="full", tokens_freed=0, reason=str(nothing))
    return StageOutlook(stage="full", tokens_freed=done.tokens_before - done.tokens_after, reason="")
