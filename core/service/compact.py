"""Compact one transcript: read, plan, store what goes, write what stays."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from core.compaction.full import Options, Plan, plan, text_message
from core.context.sizes import parts_of_conversation, parts_of_messages, projected_uuids, stale_uuids
from core.context.tokens.ledger import ContextSize, items_of, measure_like
from core.context.tokens.models import Model
from core.context.tokens.words import tokens as short
from core.errors import Changed, FoldmarkError, NothingToCompact, WrongFormat
from core.model import Message
from core.service.session import Result, Session, SessionRef, model_of, opened
from core.summarizers.base import Summarizer
from core.transcript.documents import write_document
from core.transcript.formats import FORMATS, write_markdown, write_messages
from core.transcript.formats.summarised import is_settled, with_head
from core.transcript.listing import last_written
from core.transcript.materialize import Compacted, derived_id, materialize
from core.transcript.note import note_of
from core.transcript.projects import SUFFIX, SessionFile
from core.transcript.records import STDIN, Record, Source, digest_of_ends
from core.transcript.store import Store
from core.transcript.writer import append, locked, make_private, write_new

ATTEMPTS = 3
"""How often a compaction in place starts anew because rows were written since the transcript was read."""
DRY_RUN = "dry run"
"""The reason for which a dry run changes nothing."""
_TITLE_PREFIX = "compacted: "


@dataclass(frozen=True, slots=True)
class Target:
    """Where a compaction goes: a new file in `out_dir` (None: beside the source), or the source itself."""

    lock_dir: Path
    out_dir: Path | None = None
    in_place: bool = False
    dry_run: bool = False
    markdown: bool = False
    """Of other clients' transcripts: Markdown instead of Messages JSON."""
    clock: Callable[[], float] | None = None
    """Seconds since 1970: in place, tells a row that is being written from a torn one (None: all are torn)."""


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


class StageReport(Result):
    """What one stage did."""

    stage: str
    tokens_freed: int


class Loss(Result):
    """Where the messages of before are now: word for word in the context, to be read on demand, or nowhere."""

    kept: int
    reachable: int
    gone: int


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
    for _ in range(ATTEMPTS - 1):
        with suppress(Changed):
            return _compact_once(file, summarizer, options, target, guards, models_file)
    return _compact_once(file, summarizer, options, target, guards, models_file)


def _compact_once(
    file: SessionFile,
    summarizer: Summarizer,
    options: Options,
    target: Target,
    guards: Guards,
    models_file: Path | None,
) -> CompactResult:
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
        result = _result(task, planned)
        if target.dry_run:
            return result.model_copy(update={"changed": False, "reason": DRY_RUN})
        if target.in_place and session.claude:
            task.append(planned)
            return result
        with task.store.locked():  # of two that do the same at once, the second finds it done
            if task.output.exists():
                return result.model_copy(update={"changed": False, "reason": "the same compaction was written before"})
            task.write(planned)
        return result


def size_of(session: Session, model: Model) -> ContextSize:
    """The size of a session's active view, as all results state it."""
    parts = parts_of_conversation(session.conversation) if session.conversation else []
    if session.claude:
        chain = session.claude[1]
        parts = parts_of_messages(session.messages, stale_uuids(chain), projected_uuids(chain))
    return session.measured(parts, model)


def output_path(session: Session, target: Target, new_id: str) -> Path:
    """The file that an operation writes.

    Raises WrongFormat for a change in place of what is no Claude Code transcript, and for Markdown of what is one.
    """
    path = session.path
    if target.markdown and session.claude:
        raise WrongFormat(f"{path.name} is a Claude Code transcript, which becomes another one", "leave out --markdown")
    if target.in_place:
        if session.claude is None:
            label = next(f.label for f in FORMATS if f.name == session.format)
            raise WrongFormat(
                f"{path.name} looks like {label}, and only a Claude Code transcript can be changed in place",
                "leave out --in-place: the result goes to a file of its own",
            )
        return path
    # What was a subagent's becomes a session of its own, which clients look for in the project's folder.  Absolute:
    # the summary names files, and the session may be resumed elsewhere.
    folder = (target.out_dir or (path.parents[2] if session.file.parent else path.parent)).absolute()
    if session.claude:
        return folder / f"{new_id}{SUFFIX}"
    return folder / f"{path.stem}.compacted-{new_id[:8]}{'.md' if target.markdown else '.json'}"


def new_session_id(session: Session, target: Target, *asked: str) -> str:
    """The session that an operation writes: the same for what was asked on the same history; in place, the source."""
    if target.in_place:
        return session.file.id
    form = ("markdown",) if target.markdown and session.claude is None else ()
    history = (uuid for message in session.messages for uuid in message.uuids)
    return derived_id("session", session.file.parent, session.file.id, *asked, *form, *history)


def source_of(session: Session, in_place: bool = False, size: int | None = None) -> Source:
    """How the record of an operation names what it was done to; `size`: the bytes of a transcript, if not all read."""
    file = session.file
    path = STDIN if file.piped else str(session.path.resolve())
    if session.claude is None:
        return Source(path, file.id, file.size_bytes)
    log = session.claude[0]
    fd, size = log.file.fileno(), log.size if size is None else size
    if in_place:
        return Source(path, file.id, size, os.fstat(fd).st_mtime_ns)
    return Source(path, file.id, size, ends_sha256=digest_of_ends(fd, size))


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
    def new_id(self) -> str:
        """The session that the result is: the same for the same compaction of the same history."""
        options = self.options
        limits = (options.restore.files, options.restore.file_tokens, options.restore.total_tokens)
        sizes = map(str, (options.keep_tokens, options.summary_chars, *limits))
        return new_session_id(self.session, self.target, self.summarizer.name, *sizes, options.instructions)

    @cached_property
    def output(self) -> Path:
        """The file that is written."""
        return output_path(self.session, self.target, self.new_id)

    @cached_property
    def store(self) -> Store:
        """Where the result finds what was taken out; in place, that stays in the transcript."""
        return Store.beside(self.output)

    @property
    def page(self) -> str:
        """The name of the compaction's page in the store."""
        return self.new_id[:8]

    def plan(self, model: Model, size: ContextSize) -> Plan:
        """What would be done; raises as `core.compaction.full.plan`."""

        def measure(messages: Sequence[Message]) -> list[int]:
            return list(measure_like(items_of(messages), model, size).item_tokens)

        session, sizes, overhead = self.session, size.item_tokens, size.overhead_tokens
        history = self.output if self.target.in_place else self.store.page(self.page)
        return plan(
            session.messages, sizes, overhead, measure, self.summarizer, self.options, session.cwd, str(history)
        )

    def write(self, planned: Plan) -> None:
        """Stores what goes, then writes what stays: a body is on disk before anything leans on it."""
        self.store.archive(self.page, planned.gone, f"What a compaction took out of session {self.session.file.id}")
        write_output(self.session, self.output, self._record(planned), self._content(planned), self.store)

    def append(self, planned: Plan) -> None:
        """Appends what stays to the transcript, in which all else is already."""
        append_block(self.session, self.target, self._record(planned), self._content(planned))

    def _record(self, planned: Plan) -> Record:
        source = source_of(self.session, self.target.in_place)
        return Record(
            op="compact",
            id=derived_id("record", self.new_id, str(planned.tokens_before), str(source.size)),
            session_id=self.new_id,
            source=source,
            summarizer=self.summarizer.name,
            tokens_before=planned.tokens_before,
            tokens_after=planned.tokens_after,
        )

    def _content(self, planned: Plan) -> bytes:
        """What is written, but for the record."""
        if self.session.claude:
            return b"".join(row + b"\n" for row in materialize(*self.session.claude, self._compacted(planned)))
        summary = planned.summary.text
        if not self.target.markdown:
            summary = with_head(summary, self.options.keep_tokens, planned.kept)
        front = [text_message("summary", summary)]
        front += [text_message("meta", r.text) for r in planned.restored]
        return document(self.session, [*front, *planned.kept], self.target)

    def _compacted(self, planned: Plan) -> Compacted:
        return Compacted(
            session_id=self.new_id,
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


def append_block(session: Session, target: Target, record: Record, block: bytes) -> None:
    """Appends a record and its block to the transcript; raises Locked, WriteFailed, Changed: it grows."""
    with locked(session.path, target.lock_dir):
        append(session.path, record.row(block) + block, expected_size=record.source.size, clock=target.clock)


def write_output(session: Session, output: Path, record: Record, content: bytes, store: Store) -> None:
    """Writes a new transcript or document with its record; raises WriteFailed: then what `store` added is gone too."""
    make_private(output.parent)
    try:
        if session.claude:
            write_new(output, [record.row(content), content])
        else:
            write_document(output, record, content)
    except FoldmarkError:
        if not output.exists():  # else another process did the same, and needs the store
            store.take_back()
        raise


def document(session: Session, messages: Sequence[Message], target: Target) -> bytes:
    """The new context of another client's conversation, as a document."""
    if target.markdown:
        return write_markdown(messages, session.title, session.system).encode()
    return write_messages(messages, session.system, session.tools)


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


def _result(task: _Task, planned: Plan) -> CompactResult:
    freed = planned.tokens_before - planned.tokens_after
    return CompactResult(
        source=task.session.ref,
        output=str(task.output),
        session_id=task.new_id,
        how="full",
        summarizer=planned.summary.summarizer,
        tokens_before=planned.tokens_before,
        tokens_after=planned.tokens_after,
        stages=[StageReport(stage="full", tokens_freed=freed)],
        loss=Loss(kept=len(planned.kept), reachable=len(planned.gone), gone=0),
        restored=[r.path for r in planned.restored if r.has_content],
        changed=True,
        reason="",
    )
