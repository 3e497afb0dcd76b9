"""Compact one transcript, in the way that was asked for, or in the first one that is of use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import msgspec

from core.errors import ApiError, NothingToCompact, NoUsableMemory, SummaryRejected
from core.service.automatic import warnings_of
from core.service.by_notes import memory
from core.service.by_summary import done_before, full, partial
from core.service.job import Asked, Choices, CompactResult, How, Job
from core.service.micro import micro
from core.service.operation import attempted
from core.service.session import opened
from core.summarizers.base import Summarizer
from core.transcript.projects import SessionFile

__all__ = ["WAYS", "CompactResult", "compact"]


def compact(file: SessionFile, summarizer: Summarizer, choices: Choices) -> CompactResult:
    """Compacts a transcript; the source keeps its bytes, unless the target says that it is appended to.

    A session in which nothing is to do gives a result that says so.  When rows are written meanwhile it starts anew,
    with the summary that it has.  Raises what reading, summarising and writing raise; then nothing was changed.
    """
    asked, guards = Asked(summarizer, choices.is_stopped), choices.guards

    def once() -> CompactResult:
        with opened(file, measuring=choices.settings.measuring) as session:
            job = Job(session, asked, choices)
            if reason := guards.reason(session):
                return job.unchanged(reason)
            try:
                result = WAYS[choices.how](job)
            except NothingToCompact as nothing:
                result = job.unchanged(str(nothing))
            return msgspec.structs.replace(result, warnings=[*result.warnings, *warnings_of(session)])

    breaker = None if choices.target.dry_run else guards.breaker(file)
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
    if job.choices.notes and not job.options.instructions:
        with suppress(NoUsableMemory):
            return memory(job)
    if _newest_is_too_large(job) and _is_enough(job):
        return micro(job)
    try:
        return full(job)
    except NothingToCompact:
        if job.session.size.total_tokens >= job.session.levels.auto_threshold and (done := micro(job)).how != "none":
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
    return any(sum(job.session.size.item_tokens[at:]) > job.options.keep_tokens for at in prompts[-1:])


def _is_enough(job: Job) -> bool:
    """Whether all is within what is kept once the tool results gave way."""
    planned = micro(replace(job, choices=job.choices.tried_out))
    return planned.how != "none" and planned.tokens_after - job.session.size.overhead_tokens <= job.options.keep_tokens
