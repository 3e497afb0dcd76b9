"""What a replay compares: nothing, each stage alone, all of them, and the usual rule of keeping the newest results."""

from __future__ import annotations

from core.context.decisions import CacheEdited
from core.context.tokens.cost import CacheLife
from core.stages.base import Plan, Scene
from core.stages.collapse import Collapse
from core.stages.microcompact import Microcompact, MicrocompactSettings
from core.stages.read_dedup import ReadDedup
from core.stages.results import tool_results_of
from core.stages.snip import Snip, SnipSettings
from core.stages.tool_budget import ToolBudget
from core.turn.replay import CLEARED_TOKENS, Policy

TRIGGER_TOKENS = 100_000
"""Where the public context editing clears by default."""
KEPT_RESULTS = 3
"""What it keeps by default."""


class KeepNewest:
    """Above a size, every result but the newest goes, if that frees enough: what the public edit does by itself."""

    name = "microcompact"

    def __init__(self, least_tokens: int) -> None:
        self.least_tokens = least_tokens

    def plan(self, scene: Scene) -> Plan:
        """The results to clear on the server."""
        view = scene.view().messages
        results = tool_results_of(view)
        cleared = scene.state.cleared_on_server
        sizes = {r.id: max(0, scene.block_tokens([r.block]) - CLEARED_TOKENS) for r in results}
        total_tokens = scene.overhead_tokens + sum(scene.tokens(view)) - sum(sizes[i] for i in cleared & sizes.keys())
        old = [r.id for r in results[:-KEPT_RESULTS] if r.id not in cleared]
        freed_tokens = sum(sizes[i] for i in old)
        if total_tokens <= TRIGGER_TOKENS or freed_tokens < max(1, self.least_tokens):
            return Plan(self.name, reason="below the limits")
        return Plan(self.name, (CacheEdited(tuple(old), view[-1].uuid),), tokens_freed=freed_tokens)


def policies(life: CacheLife) -> tuple[Policy, ...]:
    """All policies, in the order of a report; the first does nothing."""
    micro = Microcompact(MicrocompactSettings(life=life))
    public = Microcompact(MicrocompactSettings(form="public", life=life))
    pinned = Microcompact(MicrocompactSettings(form="pinned", life=life))
    snip = Snip(SnipSettings(automatic=True))
    return (
        Policy("none"),
        Policy("keep-3", (KeepNewest(0),)),
        Policy("keep-3-at-least-20k", (KeepNewest(20_000),)),
        Policy("budget", (ToolBudget(),)),
        Policy("read-dedup", (ReadDedup(),)),
        Policy("snip", (snip,)),
        Policy("microcompact", (micro,)),
        Policy("microcompact-public", (public,)),
        Policy("microcompact-pinned", (pinned,), keeps_cache=True),
        Policy("collapse", (Collapse(),)),
        Policy("all", (ToolBudget(), ReadDedup(), snip, micro, Collapse())),
    )
