"""Jobs whose summaries are asked for together: all are begun, then the batch is waited for, then they are ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cli.resources import Writer
from core.api.endpoint import ApiError
from core.errors import FoldmarkError, SummaryPending

if TYPE_CHECKING:
    from core.service.job import CompactResult
    from core.summarizers.base import Summarizer
    from core.summarizers.batch import BatchSummarizer

Job = TypeVar("Job", bound="Callable[[Summarizer], CompactResult | Exception]")


def batched(jobs: Sequence[Job], writer: Writer, folder: Path) -> Iterator[tuple[Job, CompactResult | Exception]]:
    """Each job with what came of it; those that need no summary first.

    What is not there within an hour is an error that says so: another run goes on with the same batch.
    """
    from core.summarizers import SUMMARY_MODEL, rescued
    from core.summarizers.batch import BatchSummarizer, Waiting
    from core.summarizers.model import ModelSummarizer

    endpoint, resources = writer.access.endpoint(), writer.access.resources(writer.fallback)
    model = ModelSummarizer(endpoint, resources.model or SUMMARY_MODEL, models=resources.models)
    batch = BatchSummarizer(endpoint, model, folder)
    pending = []
    for job in jobs:
        outcome = job(batch)
        if isinstance(outcome, SummaryPending):
            pending.append(job)
        else:
            yield job, outcome
    try:
        _submitted(batch)
        batch.wait(Waiting(time.monotonic, time.sleep))
    except FoldmarkError as error:
        yield from ((job, error) for job in pending)
        return
    summarizer = rescued(batch, resources)
    for job in pending:
        yield job, job(summarizer)
    batch.forget()


def _submitted(batch: BatchSummarizer) -> None:
    try:
        batch.submit()
    except ApiError as error:
        batch.give_up(error)
