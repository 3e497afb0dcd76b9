"""Compact many sessions: one after the other, several at a time, or with all summaries asked for together.

What is wrong with one session does not end the others: its error is what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from core.errors import ApiError, FoldmarkError, SummaryPending
from core.service.compact import compact
from core.service.job import Choices, CompactResult
from core.summarizers import SUMMARY_MODEL, Resources, rescued
from core.summarizers.base import Summarizer
from core.transcript.projects import SessionFile

if TYPE_CHECKING:
    from core.api.anthropic import AnthropicEndpoint
    from core.summarizers.batch import BatchSummarizer, Waiting

Done: TypeAlias = tuple[SessionFile, CompactResult | Exception]
"""A session, and what came of it."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One session, in this process or another, where its summariser is made."""

    make: Callable[[], Summarizer]
    choices: Choices

    def __call__(self, file: SessionFile) -> Done:
        try:
            return file, compact(file, self.make(), self.choices)
        except Exception as error:  # noqa: BLE001 (said above)
            return file, error


def compact_each(
    files: Sequence[SessionFile], make: Callable[[], Summarizer], choices: Choices, jobs: int = 1
) -> Iterator[Done]:
    """Each session with what came of it, in order; `jobs` at a time, in processes to which all goes as plain data."""
    task = _Task(make, choices)
    if jobs == 1 or len(files) < 2:
        yield from map(task, files)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(jobs, len(files))) as pool:
        yield from pool.map(task, files)


def compact_batched(
    files: Sequence[SessionFile],
    choices: Choices,
    endpoint: AnthropicEndpoint,
    resources: Resources,
    folder: Path,
    waiting: Waiting,
) -> Iterator[Done]:
    """Each session with what came of it, those that need no summary first; then one batch is waited for.

    What is not there in time is an error that says so: another run goes on with the same batch, which `folder` holds.
    """
    from core.summarizers.batch import BatchSummarizer
    from core.summarizers.model import ModelSummarizer

    model = ModelSummarizer(endpoint, resources.model or SUMMARY_MODEL, models=resources.models)
    batch = BatchSummarizer(endpoint, model, folder)
    pending = []
    for done in compact_each(files, lambda: batch, choices):
        if isinstance(done[1], SummaryPending):
            pending.append(done[0])
        else:
            yield done
    try:
        _submitted(batch)
        batch.wait(waiting)
    except FoldmarkError as error:
        yield from ((file, error) for file in pending)
        return
    summarizer = rescued(batch, resources)
    yield from compact_each(pending, lambda: summarizer, choices)
    batch.forget()


def _submitted(batch: BatchSummarizer) -> None:
    try:
        batch.submit()
    except ApiError as error:
        batch.give_up(error)
