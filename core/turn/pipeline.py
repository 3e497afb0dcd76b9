"""The stages in front of a request, in their order: cheap and local before dear and global."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.stages.base import Plan, Scene, Stage, applied

ORDER = (
    "budget",  # what is too large is stored before it is ever sent: nothing cheaper comes later
    "read-dedup",  # what is there already is pointed to
    "snip",  # ranges go that nobody needs
    "microcompact",  # old results go, where that pays
    "collapse",  # spans become notes
)


def run(scene: Scene, stages: Sequence[Stage]) -> tuple[Scene, list[Plan]]:
    """Gives each stage its say, in the order of the pipeline, on what those before it left; a plan for each of them."""
    plans = []
    for stage in sorted(stages, key=lambda s: ORDER.index(s.name)):
        plan = stage.plan(scene)
        scene = applied(scene, plan)
        plans.append(plan)
    return scene, plans


def run_until_settled(scene: Scene, stages: Sequence[Stage]) -> list[Plan]:
    """Runs the stages again on what they left until none has more to do: a plan of each, then what was added.

    What one frees, and the cache that it gives up, can make worth it what another left, or it itself.
    """
    scene, plans = run(scene, stages)
    more = plans
    while any(plan.decisions for plan in more):
        scene, more = run(scene, stages)
        added = [plan for plan in more if plan.decisions]
        again = {plan.stage for plan in added}
        plans = [_without_rest(plan) if plan.stage in again else plan for plan in plans] + added
    return plans


def _without_rest(plan: Plan) -> Plan:
    """The plan without what it says of the edits that it leaves: a later one of its stage does."""
    return replace(plan, reason="", verdict=plan.verdict if plan.verdict and plan.verdict.pays else None)
