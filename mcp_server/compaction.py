"""One compaction as a caller of the server asks for it, and who writes its summary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from core.service.compact import compact
from core.service.host import NAME, has_notes, wanted
from core.service.inline import spooled, with_messages
from core.service.job import Choices, CompactResult
from core.service.persist import persist
from core.summarizers.base import Summarizer, SummaryRequest
from core.summarizers.host import Given
from core.summarizers.rehearsal import Rehearsed, rehearsed
from core.transcript.projects import SessionFile
from mcp_server.config import Config

SAMPLING = "sampling"
BY_RULE = "extractive"
_NONE_NEEDED = "no summary is needed: call again with how={}"


@dataclass(frozen=True)
class Asked:
    """What is to be compacted, how, and by whom.  Without a `file`, `messages` are."""

    config: Config
    file: SessionFile | None
    messages: list[dict[str, Any]]
    choices: Choices
    summary: str
    summarizer: str
    results: list[str]

    @property
    def waits_for_summary(self) -> bool:
        """Whether the caller has its summary still to write, if one is needed."""
        return self.summarizer == NAME and not (self.summary or self.choices.target.dry_run)

    @property
    def is_sampled(self) -> bool:
        """Whether the host's model is to write the summary, if one is needed."""
        return self.summarizer == SAMPLING and not (self.summary or self.choices.target.dry_run)

    @property
    def asks_first(self) -> bool:
        """Whether there is something to ask that depends on what is to be summarised."""
        return self.is_sampled or (self.choices.target.in_place and self.waits_for_summary)

    @property
    def has_notes(self) -> bool:
        """Whether notes could stand in the place of a summary."""
        return self.file is not None and has_notes(self.file)

    @staticmethod
    def is_request(found: object) -> bool:
        """Whether this is no result, but what is to be summarised."""
        return isinstance(found, SummaryRequest)

    def with_summary(self, text: str) -> Asked:
        """The same, with a summary that the host's model wrote; where that is empty, the caller is to write it."""
        return replace(self, summary=text, summarizer=NAME)

    def carried_out(self, is_stopped: Callable[[], bool]) -> CompactResult | SummaryRequest:
        """The result, or what the caller is to summarise.  Raises as `compact`, and when it is stopped.

        Whoever has its summary still to write has nothing written before, but where it said that none is needed.
        """
        if not self.waits_for_summary:
            return self._run(self._writer(is_stopped), replace(self.choices, is_stopped=is_stopped))
        if self.choices.how == "auto" and not self.results:
            found = self.looked_at()
            if not isinstance(found, SummaryRequest) and found.how != "none":
                return msgspec.structs.replace(found, reason=_NONE_NEEDED.format(found.how))
        return wanted(lambda writer: self._run(writer, self.choices))

    def looked_at(self) -> CompactResult | SummaryRequest:
        """What it would come to, or what is to be summarised; nothing is written."""
        return wanted(lambda writer: self._run(writer, self.choices.tried_out))

    def _writer(self, is_stopped: Callable[[], bool]) -> Summarizer:
        """Who writes the summary; in a dry run, who costs nothing."""
        if self.summary:
            return Given(self.summary)
        is_dry, is_host = self.choices.target.dry_run, self.summarizer in (NAME, SAMPLING)
        if is_dry and is_host:
            return Rehearsed(self.summarizer)
        chosen = self.config.summarizer(BY_RULE if is_host else self.summarizer, is_stopped)
        return rehearsed(chosen) if is_dry else chosen

    def _run(self, summarizer: Summarizer, choices: Choices) -> CompactResult:
        with self._source() as file:
            if self.results:
                done = persist(file, self.results, choices.target, choices.settings, choices.budget)
            else:
                done = compact(file, summarizer, choices)
            return done if self.file or choices.target.dry_run else with_messages(done)

    def _source(self) -> AbstractContextManager[SessionFile]:
        return nullcontext(self.file) if self.file else spooled(self.messages)
