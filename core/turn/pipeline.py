"""The stages in front of a request, in their order: cheap and local before dear and global."""

from __future__ import annotations

from collections.abc import Sequence

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
