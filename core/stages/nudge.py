"""When to propose a snip, and how: the text of a `context_efficiency` attachment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.context.decisions import Nudged
from core.context.rounds import cut_points
from core.context.short_ids import ShortIds
from core.model import Message, tool_uses
from core.stages.base import Plan, Scene
from core.stages.round_facts import facts_of
from core.stages.snip import Proposal, Snip
from core.stages.worth import effective_tokens

FIRST_SHARE = 0.40
"""Of the effective window: before that there is room enough."""
MIN_RESPONSES = 8
"""Between two nudges, and after a snip."""
MIN_TOKENS, MIN_SHARE = 4_000, 0.03
"""What the proposals must free together to be worth a nudge; the share is of the effective window."""
IGNORED, MAX_DOUBLINGS = 2, 2
"""After so many nudges without a snip the step doubles, at most twice: 15,000, 30,000, 60,000 tokens."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """A proposal to snip, to be shown as an attachment; `plan` records that it was shown."""

    plan: Plan
    text: str
    proposals: tuple[Proposal, ...]


def nudge(stage: Snip, scene: Scene) -> Nudge | None:
    """The proposal to show now, if one is due: the context grew, a turn or a task ended, and it is worth it."""
    messages = scene.view().messages
    sizes = scene.tokens(messages)
    total_tokens = scene.overhead_tokens + sum(sizes)
    if not messages or not _is_due(stage, scene, messages, sizes, total_tokens) or not _at_pause(scene, messages):
        return None
    proposals = tuple(p for p in stage.suggest(scene) if p.rank > 0)
    freed_tokens = sum(p.tokens for p in proposals)
    if freed_tokens < max(MIN_TOKENS, MIN_SHARE * effective_tokens(scene)):
        return None
    responses = sum(m.kind == "response" for m in scene.messages)
    shown = Nudged(total_tokens, responses, messages[-1].uuid)
    return Nudge(Plan(stage.name, (shown,)), _text(scene, proposals, total_tokens), proposals)


def _is_due(stage: Snip, scene: Scene, messages: Sequence[Message], sizes: Sequence[int], total_tokens: int) -> bool:
    """By what came since the last nudge, snip or compaction; what is not in the view any more was before all of it."""
    places = {uuid: i for i, m in enumerate(messages) for uuid in m.uuids}
    boundary = max((i for i, m in enumerate(messages) if m.kind == "summary"), default=-1)
    snip = max((places.get(s.after, -1) for s in scene.state.snips), default=-1)
    shown = [at for n in scene.state.nudges if (at := places.get(n.after, -1)) > boundary]
    if not shown and snip <= boundary:
        return total_tokens >= FIRST_SHARE * effective_tokens(scene)
    last = max([snip, *shown])
    since = messages[last + 1 :]
    ignored = sum(at > snip for at in shown)
    step = stage.settings.nudge_tokens << min(ignored // IGNORED, MAX_DOUBLINGS)
    rested = sum(m.kind == "response" for m in since) >= MIN_RESPONSES
    new_turn = not shown or any(m.kind == "prompt" for m in messages[max(shown) + 1 :])
    return sum(sizes[last + 1 :]) >= step and rested and new_turn


def _at_pause(scene: Scene, messages: Sequence[Message]) -> bool:
    """Whether a turn has ended or begins, or the last round completed a task."""
    last = next((m for m in reversed(messages) if m.kind in ("prompt", "response", "results")), None)
    if last is None or last.kind == "prompt" or (last.kind == "response" and not tool_uses(last)):
        return last is not None
    begin = cut_points(messages)[-2]
    span = messages[begin:]
    return facts_of(scene, span, scene.tokens(span), [(0, len(span))])[0].closes


def _text(scene: Scene, proposals: Sequence[Proposal], total_tokens: int) -> str:
    ids = ShortIds.of(scene.messages)
    lines = [f"The context holds {total_tokens:,} tokens. These parts seem to be needed no more:"]
    lines += [
        f"- {ids.short(p.from_id)} to {ids.short(p.to_id)}: {p.tokens:,} tokens, {p.plan.count} messages "
        f"({', '.join(p.reasons)})"
        for p in proposals
    ]
    lines.append(
        "Take one out by its two ids (snip_range). What is taken out can be read again; the rest stays as it is."
    )
    return "\n".join(lines)
