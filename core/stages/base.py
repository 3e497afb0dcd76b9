"""What a stage is: a rule that looks at a history and proposes decisions.

    plan = stage.plan(scene)      what it would do, what that frees and costs: nothing is changed
    scene = applied(scene, plan)  the same history with those decisions

Stages do not know each other; their order is the pipeline's.  What a plan takes out is stored before its decisions
are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from core.context.decisions import Decision, State, fold
from core.context.projection import Projected, project
from core.context.rounds import in_thinking_loop
from core.context.tokens.estimate import PRIOR, Calibration, Estimator
from core.context.tokens.models import Model
from core.model import Block, Message
from core.stages.verdict import Verdict
from core.transcript.outline import outline_blocks


@lru_cache(maxsize=8)
def _estimator(model: Model, calibration: Calibration) -> Estimator:
    """Its table takes longer to make than one block to count."""
    return Estimator(model, calibration)


@dataclass(frozen=True, slots=True)
class Scene:
    """A history, the decisions about it so far, and what is known about its next request."""

    messages: Sequence[Message]
    """The active chain as it was written; decisions are applied by `view`."""
    model: Model
    state: State = field(default_factory=State)
    calibration: Calibration = PRIOR
    overhead_tokens: int = 0
    store_folder: str = ""
    """The folder that bodies are stored in, as the model is told it."""
    now: datetime | None = None
    """None where no clock was handed in: then nothing counts as old."""
    auto_threshold_tokens: int = 0
    """Where automatic compaction is due."""
    forced: bool = False
    """Do what costs more than it saves, too."""

    def view(self) -> Projected:
        """What the model sees."""
        return project(self.messages, self.state)

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message, by one estimator for everything that a stage compares."""
        estimator = _estimator(self.model, self.calibration)
        return [round(estimator.tokens(outline_blocks(m.content))) for m in messages]

    def block_tokens(self, blocks: Sequence[Block]) -> int:
        """Tokens of some blocks."""
        return round(_estimator(self.model, self.calibration).tokens(outline_blocks(blocks)))

    @property
    def total_tokens(self) -> int:
        """The size of the next request's context."""
        return self.overhead_tokens + sum(self.tokens(self.view().messages))

    @property
    def requests(self) -> int:
        """How many responses there are: when a decision is made now."""
        return sum(m.kind == "response" for m in self.messages)

    @property
    def may_edit(self) -> bool:
        """Whether anything may be changed: never in front of an unfinished tool loop that holds thinking."""
        return not in_thinking_loop(self.messages)


@dataclass(frozen=True, slots=True)
class Stored:
    """A body to store before the decisions of a plan hold: the id that finds it, the tool, and the content whole."""

    id: str
    name: str
    content: Block


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stage would do; without decisions it does nothing, and `reason` says why."""

    stage: str
    decisions: tuple[Decision, ...] = ()
    bodies: tuple[Stored, ...] = ()
    tokens_freed: int = 0
    reason: str = ""
    verdict: Verdict | None = None


class Stage(Protocol):
    """One rule."""

    @property
    def name(self) -> str:
        """What reports and settings call it."""

    def plan(self, scene: Scene) -> Plan:
        """What it would do with the scene."""


def applied(scene: Scene, plan: Plan) -> Scene:
    """The scene with the decisions of a plan."""
    return replace(scene, state=fold(plan.decisions, scene.state)) if plan.decisions else scene
