"""The cheap way to make room: large and old tool results give way, no message goes, no summary is written."""

from __future__ import annotations

from core.service.job import CompactResult, Job
from core.service.operation import Outcome
from core.service.stages import StageResult, StageRun, write_projection
from core.stages.microcompact import Microcompact
from core.stages.read_dedup import ReadDedup
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.transcript.persisted import gone_outputs, persisted_outputs
from core.transcript.store import Store
from core.turn import pipeline

NAME = "micro"


def micro(job: Job) -> CompactResult:
    """Runs the stages that touch tool results alone: the budget, read de-duplication, microcompact.

    What goes is stored beside the result, and named by the id that finds it.  Raises what writing raises; then
    nothing was changed.
    """
    run = StageRun(job.session, NAME, (), job.target, job.choices.settings)
    stages = (budget_of(run, job.choices.budget), ReadDedup(), Microcompact())
    return as_compaction(write_projection(run, pipeline.run_until_settled(run.scene, stages)))


def as_compaction(done: StageResult) -> CompactResult:
    """What stages did to tool results, as a compaction."""
    is_needed = done.changed or done.tokens_after < done.tokens_before
    same = {key: getattr(done, key) for key in Outcome.__struct_fields__}
    return CompactResult(**same, how="micro" if is_needed else "none")


def budget_of(run: StageRun, settings: ToolBudgetSettings | None) -> ToolBudget:
    """The budget leaves alone what the client itself stored, and tells where such a file is gone."""
    if run.session.claude is None:
        return ToolBudget(settings)
    log, chain = run.session.claude
    persisted = persisted_outputs(log, chain.entries)
    return ToolBudget(settings, frozenset(persisted), gone_outputs(persisted, Store.beside(run.session.path)))
