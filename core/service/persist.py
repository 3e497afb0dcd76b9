"""Put the tool results that are named into the store; a preview stands in the place of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.ids import one_of
from core.service.job import CompactResult
from core.service.micro import as_compaction, budget_of
from core.service.operation import Target
from core.service.stages import StageRun, StageSettings, run_stages
from core.stages.base import Plan
from core.stages.edits import editable_from, plan_edits
from core.stages.results import ToolResult, tool_results_of
from core.stages.tool_budget import ToolBudgetSettings
from core.transcript.projects import SessionFile

NAME = "persist"


def persist(
    file: SessionFile,
    ids: Sequence[str],
    target: Target,
    settings: StageSettings,
    budget: ToolBudgetSettings | None = None,
) -> CompactResult:
    """Stores these results, whatever that costs and whichever tool they are of: they were named.

    Raises IdNotFound for an id, or the start of one, that no result of the active view has, or several have, and what
    reading and writing raise; then nothing was changed.
    """

    def choose(run: StageRun) -> list[Plan]:
        view = run.scene.view().messages
        start = editable_from(run.scene, view)
        stage = budget_of(run, replace(budget or ToolBudgetSettings(), exempt=()))
        named = _named(ids, tool_results_of(view))
        found = [r for r in named if r.at >= start and r.id not in run.scene.state.replaced]
        edits = [edit for result in found if (edit := stage.stored(run.scene, result))]
        reason = "" if edits else "they are stored already, too short for that, or in an unfinished turn"
        return [plan_edits(NAME, run.scene, view, edits, reason=reason)]

    return as_compaction(run_stages(file, NAME, ids, choose, target, replace(settings, forced=True)))


def _named(ids: Sequence[str], results: Sequence[ToolResult]) -> list[ToolResult]:
    known = {r.id: r for r in results}
    pairs, hint = [(ident, ident) for ident in known], "{context} names the largest"
    return [known[one_of(ident, pairs, "tool result of the active context", hint)] for ident in dict.fromkeys(ids)]
