"""One compaction as a caller of the server asks for it, and who writes its summary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from core.compaction.full import Options
from core.service.chosen import budget_of, hooks_of, notes_of, options_of
from core.service.compact import compact
from core.service.host import NAME, wanted
from core.service.inline import spooled, with_messages
from core.service.job import CompactResult, How
from core.service.persist import persist
from core.summarizers.base import Summarizer, SummaryRequest
from core.summarizers.given import Given
from core.transcript.projects import SessionFile
from mcp_server.config import Config
from mcp_server.work import Stoppable

SAMPLING = "sampling"
BY_RULE = "extractive"


@dataclass(frozen=True)
class Asked:
    """What is to be compacted, how, and by whom.  Without a `file`, `messages` are."""

    config: Config
    file: SessionFile | None
    messages: list[dict[str, Any]] = field(default_factory=list)
    how: How = "auto"
    summary: str = ""
    summarizer: str = NAME
    instructions: str = ""
    keep_tokens: int | None = None
    up_to: str = ""
    since: str = ""
    results: list[str] = field(default_factory=list)
    in_place: bool = False
    dry_run: bool = False

    @property
    def waits_for_summary(self) -> bool:
        """Whether the caller has its summary still to write, if one is needed."""
        return self.summarizer == NAME and not (self.summary or self.dry_run)

    @property
    def is_sampled(self) -> bool:
        """Whether the host's model is to write the summary, if one is needed."""
        return self.summarizer == SAMPLING and not (self.summary or self.dry_run)

    @property
    def asks_first(self) -> bool:
        """Whether there is something to ask that depends on what is to be summarised."""
        return self.is_sampled or (self.in_place and self.waits_for_summary)

    @staticmethod
    def is_request(found: object) -> bool:
        """Whether this is no result, but what is to be summarised."""
        return isinstance(found, SummaryRequest)

    def with_summary(self, text: str) -> Asked:
        """The same, with a summary that the host's model wrote; where that is empty, the caller is to write it."""
        return replace(self, summary=text, summarizer=NAME)

    def carried_out(self, is_stopped: Callable[[], bool]) -> CompactResult | SummaryRequest:
        """The result, or what the caller is to summarise.  Raises as `compact`, and when it is stopped."""
        if self.waits_for_summary:
            return wanted(self._run)
        return self._run(Stoppable(self._writer(is_stopped), is_stopped))

    def looked_at(self) -> CompactResult | SummaryRequest:
        """What it would come to, or what is to be summarised; nothing is written."""
        return wanted(lambda writer: self._run(writer, dry_run=True))

    def _writer(self, is_stopped: Callable[[], bool]) -> Summarizer:
        """Who writes the summary; a dry run takes what costs nothing."""
        if self.summary:
            return Given(self.summary)
        by_rule = self.dry_run or self.summarizer in (NAME, SAMPLING)
        return self.config.summarizer(BY_RULE if by_rule else self.summarizer, is_stopped)

    def _run(self, summarizer: Summarizer, dry_run: bool = False) -> CompactResult:
        config, settings, inline = self.config, self.config.settings, self.file is None
        dry_run = dry_run or self.dry_run
        target = config.target(self.in_place, dry_run, config.inline_dir if inline else None)
        budget = budget_of(settings)
        with self._source() as file:
            if self.results:
                done = persist(file, self.results, target, config.known, budget)
            else:
                done = compact(
                    file,
                    summarizer,
                    self._options,
                    target,
                    settings=config.known,
                    how=self.how,
                    budget=budget,
                    hooks=hooks_of(settings),
                    notes=None if self.summary or self.summarizer != NAME else notes_of(settings),
                )
            return with_messages(done) if inline and not dry_run else done

    def _source(self) -> AbstractContextManager[SessionFile]:
        return nullcontext(self.file) if self.file else spooled(self.messages)

    @property
    def _options(self) -> Options:
        options = options_of(self.config.settings, self.config.home, self.instructions)
        keep_tokens = options.keep_tokens if self.keep_tokens is None else self.keep_tokens
        return replace(options, keep_tokens=keep_tokens, up_to=self.up_to, since=self.since)
