"""Compact one transcript, in the way that was asked for, or in the first one that is of use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from core.api.endpoint import ApiError
from core.compaction.full import Options
from core.compaction.hooks import NO_HOOKS, Hooks
from core.context.tokens.ledger import ContextSize
from core.context.tokens.words import tokens as short
from core.errors import NothingToCompact, NoUsableMemory, SummaryRejected
from core.service.automatic import stopped, warnings_of
from core.service.job import DEFAULT_NOTES, Asked, CompactResult, How, Job, NotesRules
from core.service.micro import micro
from core.service.noted import memory
from core.service.operation import Target, attempted
from core.service.session import Session, opened
from core.service.stages import NO_SETTINGS, StageSettings
from core.service.summarised import done_before, full, partial
from core.stages.tool_budget import ToolBudgetSettings
from core.summarizers.base import Summarizer
from core.transcript.listing import last_written
from core.transcript.projects import SessionFile
from core.turn.breaker import Breaker

__all__ = ["NO_GUARDS", "WAYS", "CompactResult", "Guards", "compact"]


@dataclass(frozen=True, slots=True)
class Guards:
    """When a session is left alone: not over so many tokens, or written to since (seconds since 1970).

    Who says `over_tokens` compacts automatically: then a session is left alone, too, where that failed too often, or
    does not help.
    """

    over_tokens: int | None = None
    idle_since: float | None = None
    failures_dir: Path | None = None
    """Where failures are counted from run to run; None: they are not."""

    def reason(self, session: Session, size: ContextSize) -> str:
        """Why the session is left alone, "" if it is not."""
        file = session.file
        if self.idle_since is not None and max(file.mtime, last_written(file)) > self.idle_since:
            return "it was written to a short time ago"
        if self.over_tokens is None:
            return ""
        if size.total_tokens <= self.over_tokens:
            return f"it has no more than {short(self.over_tokens)} tokens"
        return stopped(session, self.breaker(file))

    def breaker(self, file: SessionFile) -> Breaker | None:
        """The counter of a session's failures."""
        folder = None if file.piped else self.failures_dir
        return Breaker(folder, str(file.path.resolve())) if folder else None


NO_GUARDS = Guards()


def compact(
    file: SessionFile,
    summarizer: Summarizer,
    options: Options,
    target: Target,
    guards: Guards = NO_GUARDS,
    settings: StageSettings = NO_SETTINGS,
    *,
    how: How = "full",
    budget: ToolBudgetSettings | None = None,
    hooks: Hooks = NO_HOOKS,
    notes: NotesRules | None = DEFAULT_NOTES,
) -> CompactResult:
    """Compacts a transcript; the source keeps its bytes, unless `target` says that it is appended to.

    A session in which nothing is to do gives a result that says so.  When rows are written meanwhile it starts anew,
    with the summary that it has.  Raises what reading, summarising and writing raise; then nothing was changed.
    """
    asked = Asked(summarizer)

    def once() -> CompactResult:
        with opened(file) as session:
            job = Job(session, asked, options, target, settings, budget, NO_HOOKS if target.dry_run else hooks, notes)
            if reason := guards.reason(session, job.size):
                return job.unchanged(reason)
            try:
                result = WAYS[how](job)
            except NothingToCompact as nothing:
                result = job.unchanged(str(nothing))
            return result.model_copy(update={"remarks": (*result.remarks, *warnings_of(session))})

    breaker = None if target.dry_run else guards.breaker(file)
    try:
        result = attempted(once)
    except (SummaryRejected, ApiError) as error:
        if breaker and not (isinstance(error, ApiError) and error.kind == "cancelled"):
            breaker.failed(str(error))
        raise
    if breaker and result.changed:
        breaker.reset()
    return result


def auto(job: Job) -> CompactResult:
    """The first way that is of use: notes, the tool results of a turn that is too large by itself, a summary.

    Where a summary has nothing to take out and the context is too full still, tool results give way.  Notes know
    nothing of instructions.  Raises as `full`.
    """
    if reason := done_before(job):
        return job.unchanged(reason)
    if job.notes and not job.options.instructions:
        with suppress(NoUsableMemory):
            return memory(job)
    if _newest_is_too_large(job) and _is_enough(job):
        return micro(job)
    try:
        return full(job)
    except NothingToCompact:
        if job.size.total_tokens >= job.levels.auto_threshold and (done := micro(job)).how != "none":
            return done
        raise


WAYS: Mapping[How, Callable[[Job], CompactResult]] = {
    "auto": auto,
    "memory": memory,
    "full": full,
    "micro": micro,
    "partial": partial,
}
"""How to compact, by name; each raises NothingToCompact where it has nothing to do."""


def _newest_is_too_large(job: Job) -> bool:
    """Whether the newest turn is more than what is kept: then a summary would take its question out."""
    prompts = [at for at, message in enumerate(job.session.messages) if message.kind == "prompt"]
    return any(sum(job.size.item_tokens[at:]) > job.options.keep_tokens for at in prompts[-1:])


def _is_enough(job: Job) -> bool:
    """Whether all is within what is kept once the tool results gave way."""
    planned = micro(replace(job, target=replace(job.target, dry_run=True)))
    return planned.how != "none" and planned.tokens_after - job.size.overhead_tokens <= job.options.keep_tokens
