"""Compact one transcript: read, plan, store what goes, write what stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from core.compaction.full import Options, Plan, plan, text_message
from core.context.tokens.ledger import ContextSize, items_of, measure_like
from core.context.tokens.models import Model
from core.context.tokens.words import tokens as short
from core.errors import NothingToCompact
from core.model import Message
from core.service.operation import Loss, Operation, StageReport, Target, attempted
from core.service.session import Result, Session, SessionRef, model_of, opened, size_of
from core.summarizers.base import Summarizer
from core.transcript.formats.summarised import is_settled, with_head
from core.transcript.listing import last_written
from core.transcript.materialize import Compacted, derived_id
from core.transcript.note import note_of
from core.transcript.projects import SessionFile
from core.transcript.records import Record

_TITLE_PREFIX = "compacted: "


@dataclass(frozen=True, slots=True)
class Guards:
    """When a session is left alone: not over so many tokens, or written to since (seconds since 1970)."""

    over_tokens: int | None = None
    idle_since: float | None = None

    def reason(self, file: SessionFile, size: ContextSize) -> str:
        """Why the session is left alone, "" if it is not."""
        if self.idle_since is not None and max(file.mtime, last_written(file)) > self.idle_since:
            return "it was written to a short time ago"
        if self.over_tokens is not None and size.total_tokens <= self.over_tokens:
            return f"it has no more than {short(self.over_tokens)} tokens"
        return ""


NO_GUARDS = Guards()


class CompactResult(Result):
    """One compaction, done, planned, or found to be needless (`changed` is false, `reason` says why)."""

    source: SessionRef
    output: str
    """The file that was, or would be, written; the source where nothing is to be done."""
    session_id: str
    """What the client resumes."""
    how: Literal["full", "micro", "none"]
    """full: by a summary.  micro: by tool results that give way.  none: nothing is to be done, `reason` says why."""
    summarizer: str
    tokens_before: int
    tokens_after: int
    stages: list[StageReport]
    loss: Loss
    restored: list[str]
    """The files whose content, as it is on disk now, the model gets again."""
    verdicts: tuple[str, ...] = ()
    """What rewriting the prompt cache costs and what sending less saves, in words."""
    changed: bool
    reason: str


def compact(
    file: SessionFile,
    summarizer: Summarizer,
    options: Options,
    target: Target,
    guards: Guards = NO_GUARDS,
    models_file: Path | None = None,
) -> CompactResult:
    """Compacts a transcript; the source keeps its bytes, unless `in_place` appends to it.

    A session in which nothing is to do gives a result that says so.  Raises what reading, summarising and writing
    raise; then nothing was changed.
    """

    def once() -> CompactResult:
        with opened(file) as session:
            task = _Task(session, summarizer, options, target)
            model = model_of(session, models_file)
            size = size_of(session, model)
            if reason := guards.reason(file, size) or _done_before(session, options):
                return _unchanged(session, size, reason)
            try:
                planned = task.plan(model, size)
            except NothingToCompact as nothing:
                return _unchanged(session, size, str(nothing))
            with task.operation.pending() as reason:
                if not reason:
                    task.write(planned)
            return _result(task, planned, reason)

    return attempted(once)


def _done_before(session: Session, options: Options) -> str:
    """Whether this is what a compaction left, and it was asked to keep no more than now."""
    if session.conversation:
        settled = is_settled(session.conversation.active, options.keep_tokens)
    else:
        note = note_of(*session.claude) if session.claude else None
        leaf = session.claude[1].leaf if session.claude else None
        settled = bool(note and leaf and leaf.uuid == note.leaf_uuid and note.keep_tokens <= options.keep_tokens)
    return "nothing was added since the last compaction" if settled else ""


@dataclass(frozen=True)
class _Task:
    """One compaction: of what, how, and where it goes."""

    session: Session
    summarizer: Summarizer
    options: Options
    target: Target

    @cached_property
    def operation(self) -> Operation:
        """The same for the same compaction of the same history."""
        options = self.options
        limits = (options.restore.files, options.restore.file_tokens, options.restore.total_tokens)
        sizes = map(str, (options.keep_tokens, options.summary_chars, *limits))
        return Operation.of(self.session, self.target, self.summarizer.name, *sizes, options.instructions)

    @property
    def page(self) -> str:
        """The name of the compaction's page in the store."""
        return self.operation.new_id[:8]

    def plan(self, model: Model, size: ContextSize) -> Plan:
        """What would be done; raises as `core.compaction.full.plan`."""

        def measure(messages: Sequence[Message]) -> list[int]:
            return list(measure_like(items_of(messages), model, size).item_tokens)

        session, sizes, overhead = self.session, size.item_tokens, size.overhead_tokens
        history = self.operation.output if self.target.in_place else self.operation.store.page(self.page)
        return plan(
            session.messages, sizes, overhead, measure, self.summarizer, self.options, session.cwd, str(history)
        )

    def write(self, planned: Plan) -> None:
        """Stores what goes, then writes what stays: a body is on disk before anything leans on it.

        In place, what goes is in the transcript already.
        """
        operation = self.operation
        if not self.target.in_place:
            header = f"What a compaction took out of session {self.session.file.id}"
            operation.store.archive(self.page, planned.gone, header)
        operation.write(self._record(planned), self._content(planned))

    def _record(self, planned: Plan) -> Record:
        operation = self.operation
        return Record(
            op="compact",
            id=derived_id("record", operation.new_id, str(planned.tokens_before), str(operation.source.size)),
            session_id=operation.new_id,
            source=operation.source,
            summarizer=self.summarizer.name,
            tokens_before=planned.tokens_before,
            tokens_after=planned.tokens_after,
        )

    def _content(self, planned: Plan) -> bytes:
        """What is written, but for the record."""
        if self.session.claude:
            return self.operation.rows(self._compacted(planned))
        summary = planned.summary.text
        if not self.target.markdown:
            summary = with_head(summary, self.options.keep_tokens, planned.kept)
        front = [text_message("summary", summary)]
        front += [text_message("meta", r.text) for r in planned.restored]
        return self.operation.document([*front, *planned.kept])

    def _compacted(self, planned: Plan) -> Compacted:
        return Compacted(
            session_id=self.operation.new_id,
            summary=planned.summary.text,
            kept=planned.kept,
            prompt_tokens=planned.prompt_tokens,
            tokens_before=planned.tokens_before,
            tokens_after=planned.tokens_after,
            restored=[r.text for r in planned.restored],
            title=_TITLE_PREFIX + self.session.title.removeprefix(_TITLE_PREFIX),
            in_place=self.target.in_place,
            keep_tokens=self.options.keep_tokens,
            overhead_tokens=planned.overhead_tokens,
        )


def _unchanged(session: Session, size: ContextSize, reason: str) -> CompactResult:
    return CompactResult(
        source=session.ref,
        output=str(session.path),
        session_id=session.file.id,
        how="none",
        summarizer="",
        tokens_before=size.total_tokens,
        tokens_after=size.total_tokens,
        stages=[],
        loss=Loss(kept=len(session.messages), reachable=0, gone=0),
        restored=[],
        changed=False,
        reason=reason,
    )


def _result(task: _Task, planned: Plan, reason: str) -> CompactResult:
    freed = planned.tokens_before - planned.tokens_after
    return CompactResult(
        source=task.session.ref,
        output=str(task.operation.output),
        session_id=task.operation.new_id,
        how="full",
        summarizer=planned.summary.summarizer,
        tokens_before=planned.tokens_before,
        tokens_after=planned.tokens_after,
        stages=[StageReport(stage="full", tokens_freed=freed)],
        loss=Loss(kept=len(planned.kept), reachable=len(planned.gone), gone=0),
        restored=[r.path for r in planned.restored if r.has_content],
        changed=not reason,
        reason=reason,
    )
