"""One session to compact: what is asked for, what every way of doing it starts from, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from core.compaction.full import Context, Options
from core.compaction.hooks import NO_HOOKS, About, Hooks
from core.compaction.memory import DEFAULT_TAIL, TailRules
from core.context.tokens.ledger import items_of, measure_like
from core.errors import CompactionError
from core.memory.limits import DEFAULT_LIMITS, MemoryLimits
from core.model import Message
from core.report.data import Fidelity
from core.service.automatic import NO_GUARDS, Guards
from core.service.operation import Loss, Outcome, Target
from core.service.session import Session
from core.service.stages import NO_SETTINGS, StageSettings
from core.service.usage import Spent
from core.stages.tool_budget import ToolBudgetSettings
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.host import Given

How = Literal["auto", "memory", "full", "micro", "partial"]
"""The ways to compact; auto is the first of memory, full and micro that is of use."""


Done = Literal["memory", "full", "partial", "micro", "none"]
"""In which way it was done."""


class CompactResult(Outcome):
    """One compaction, done, planned, or found to be needless (`changed` is false, `reason` says why)."""

    how: Done
    """memory: by the notes of the session.  full: by a summary.  partial: by a summary of one part.  micro: by tool
    results that give way.  none: nothing is to be done, `reason` says why."""
    summarizer: str = ""
    restored: list[str] = msgspec.field(default_factory=list)
    """What the model gets again: files by their path, as they are on disk now; plan, skills and the like by name."""
    usage: Spent = Spent()
    """All zeros where no model was asked."""
    fidelity: Fidelity | None = None
    """Of the summary as it was written, before what was wrong or missing in it was mended."""


@dataclass(frozen=True, slots=True)
class NotesRules:
    """How the notes of a session stand for what goes: how large they may be, and what stays behind them."""

    limits: MemoryLimits = DEFAULT_LIMITS
    tail: TailRules = DEFAULT_TAIL


DEFAULT_NOTES = NotesRules()


def going_on() -> bool:
    """Somebody waits."""
    return False


@dataclass(frozen=True, slots=True)
class Choices:
    """All that was chosen about a compaction, whichever session it is of."""

    options: Options
    target: Target
    how: How = "full"
    settings: StageSettings = NO_SETTINGS
    budget: ToolBudgetSettings | None = None
    hooks: Hooks = NO_HOOKS
    notes: NotesRules | None = DEFAULT_NOTES
    """None: automatically, they stand for nothing."""
    guards: Guards = NO_GUARDS
    is_stopped: Callable[[], bool] = going_on
    """Whether nobody waits for the result any more: then nothing is written."""

    @property
    def tried_out(self) -> Choices:
        """The same, as a dry run."""
        return replace(self, target=replace(self.target, dry_run=True))


@dataclass
class Asked:
    """The summariser, and what it said: when rows are written meanwhile, they are kept behind the same summary."""

    summarizer: Summarizer
    is_stopped: Callable[[], bool] = going_on
    new_id: str = ""
    """The session that the first attempt was to write."""
    gone: tuple[str, ...] = ()
    """The messages that it took out."""
    request: SummaryRequest | None = None
    summary: Summary | None = None

    @property
    def name(self) -> str:
        """That of the summariser."""
        return self.summarizer.name

    @property
    def choice(self) -> tuple[str, ...]:
        """What makes its summary another one than others: its name, and a text that was handed in."""
        return (self.name, self.summarizer.text) if isinstance(self.summarizer, Given) else (self.name,)

    def summarize(self, request: SummaryRequest) -> Summary:
        """The summary; the same where the same is asked again.  Raises CompactionError where nobody waits for it."""
        self._check()
        if self.summary is None or self.request != request:
            self.summary, self.request = self.summarizer.summarize(request), request
        self._check()
        return self.summary

    def _check(self) -> None:
        if self.is_stopped():
            raise CompactionError("the call was cancelled; nothing was written")


@dataclass(frozen=True)
class Job:
    """An open session to compact, who writes its summary, and all that was chosen about it."""

    session: Session
    asked: Asked
    choices: Choices

    @property
    def options(self) -> Options:
        """What stays, and what the summary is to be."""
        return self.choices.options

    @property
    def target(self) -> Target:
        """Where the result goes."""
        return self.choices.target

    @property
    def hooks(self) -> Hooks:
        """Who has a say: nobody where nothing is done."""
        return NO_HOOKS if self.target.dry_run else self.choices.hooks

    @property
    def about(self) -> About:
        """What hooks are told."""
        return About(self.session.file.id, str(self.session.path), self.session.cwd)

    def context(self, history: str) -> Context:
        """The context before; `history` names where all that goes from it can be read."""
        session, size = self.session, self.session.size
        return Context(session.messages, size.item_tokens, size.overhead_tokens, self.measure, session.cwd, history)

    def measure(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each of some new messages, as the old ones were measured."""
        return list(measure_like(items_of(messages), self.session.model, self.session.size).item_tokens)

    def unchanged(self, reason: str) -> CompactResult:
        """What there is where nothing is to be done: the source, as it is."""
        session, total = self.session, self.session.size.total_tokens
        return CompactResult(
            session=session.ref,
            output=str(session.path),
            output_id=session.file.id,
            how="none",
            tokens_before=total,
            tokens_after=total,
            stages=[],
            loss=Loss(kept=len(session.messages), reachable=0, gone=0),
            changed=False,
            reason=reason,
        )
