"""Compact one transcript: read, plan, store what goes, write what stays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.compaction.full import Options, Plan, plan, text_message
from core.context.sizes import measured, parts_of_messages, stale_uuids
from core.context.tokens.ledger import ContextSize, items_of, measure_like
from core.context.tokens.models import Model
from core.errors import Changed, NothingToCompact, WrongFormat
from core.model import Message
from core.service.session import Result, Session, SessionRef, model_of, opened
from core.summarizers.base import Summarizer
from core.transcript.formats import write_markdown, write_messages
from core.transcript.materialize import Compacted, derived_id, materialize
from core.transcript.projects import SUFFIX, SessionFile
from core.transcript.records import Record, Source
from core.transcript.store import Store
from core.transcript.writer import append, locked, write_new

ATTEMPTS = 3
"""How often a compaction in place starts anew because rows were written since the transcript was read."""
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


@dataclass(frozen=True, slots=True)
class Guards:
    """When a session is left alone: not over so many tokens, or written to since (seconds since 1970)."""

    over_tokens: int | None = None
    idle_since: float | None = None

    def reason(self, file: SessionFile, size: ContextSize) -> str:
        """Why the session is left alone, "" if it is not."""
        if self.idle_since is not None and file.mtime > self.idle_since:
            return "it was written to a short time ago"
        if self.over_tokens is not None and size.total_tokens <= self.over_tokens:
            return f"it has no more than {self.over_tokens} tokens"
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
    session_id: str
    how: str
    summarizer: str
    tokens_before: int
    tokens_after: int
    stages: list[StageReport]
    loss: Loss
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
        model = model_of(session, models_file)
        stale = stale_uuids(session.claude[1]) if session.claude else frozenset[str]()
        size = measured(parts_of_messages(session.messages, stale), model)
        if reason := guards.reason(file, size):
            return _unchanged(session, size, reason)
        new_id = _new_id(session, options, target)
        output = _output(session, new_id, target)
        try:
            planned = _planned(session, model, size, summarizer, options, _history(session, output, target))
        except NothingToCompact as nothing:
            return _unchanged(session, size, str(nothing))
        result = _result(session, summarizer, planned, new_id, output)
        if target.dry_run:
            return result.model_copy(update={"changed": False, "reason": "dry run"})
        if not target.in_place and output.exists():
            return result.model_copy(update={"changed": False, "reason": "the same compaction was written before"})
        _write(session, planned, new_id, output, summarizer, target)
        return result


def _planned(
    session: Session, model: Model, size: ContextSize, summarizer: Summarizer, options: Options, history: str
) -> Plan:
    def measure(messages: Sequence[Message]) -> list[int]:
        return list(measure_like(items_of(messages), model, size).item_tokens)

    sizes, overhead = size.item_tokens, size.overhead_tokens
    return plan(session.messages, sizes, overhead, measure, summarizer, options, session.cwd, history)


def _new_id(session: Session, options: Options, target: Target) -> str:
    """The session that the result is: the same for the same compaction of the same history."""
    if target.in_place:
        return session.file.id
    last = session.messages[-1].uuids[-1] if session.messages and session.messages[-1].uuids else ""
    return derived_id("session", session.file.id, last, str(options.keep_tokens), options.instructions)


def _output(session: Session, new_id: str, target: Target) -> Path:
    if target.in_place:
        if session.claude is None:
            raise WrongFormat(
                f"{session.path.name} is not a Claude Code transcript, and no other can be compacted in place",
                "leave out --in-place: the result goes to a file of its own",
            )
        return session.path
    folder = target.out_dir or session.path.parent
    if session.claude:
        return folder / f"{new_id}{SUFFIX}"
    return folder / f"{session.path.stem}.compacted{'.md' if target.markdown else '.json'}"


def _page(output: Path) -> tuple[Store, str]:
    """The store of the result, and the name of its page in it."""
    return Store.beside(output), output.stem[:8]


def _history(session: Session, output: Path, target: Target) -> str:
    """Where the model reads what was taken out: in the transcript itself, or on the page beside the new one."""
    if target.in_place:
        return str(session.path)
    store, name = _page(output)
    return str(store.page(name))


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
        changed=False,
        reason=reason,
    )


def _result(session: Session, summarizer: Summarizer, planned: Plan, new_id: str, output: Path) -> CompactResult:
    freed = planned.tokens_before - planned.tokens_after
    return CompactResult(
        source=session.ref,
        output=str(output),
        session_id=new_id,
        how="full",
        summarizer=summarizer.name,
        tokens_before=planned.tokens_before,
        tokens_after=planned.tokens_after,
        stages=[StageReport(stage="full", tokens_freed=freed)],
        loss=Loss(kept=len(planned.kept), reachable=len(planned.gone), gone=0),
        changed=True,
        reason="",
    )


def _write(session: Session, planned: Plan, new_id: str, output: Path, summarizer: Summarizer, target: Target) -> None:
    """Stores what goes, then writes what stays: a body is on disk before anything leans on it."""
    if not target.in_place:
        store, name = _page(output)
        store.archive(name, planned.gone, f"What a compaction took out of session {session.file.id}")
    if session.claude is None:
        write_new(output, [_document(session, planned, target)])
        return
    log, chain = session.claude
    rows = materialize(log, chain, _compacted(session, planned, new_id, target))
    block = b"".join(row + b"\n" for row in rows)
    record = Record(
        op="compact",
        id=derived_id("record", new_id, str(planned.tokens_before), str(log.size)),
        session_id=new_id,
        source=Source(str(session.path.resolve()), session.file.id, log.size),
        summarizer=summarizer.name,
        tokens_before=planned.tokens_before,
        tokens_after=planned.tokens_after,
    ).row(block)
    if target.in_place:
        with locked(output, target.lock_dir):
            append(output, record + block, log.size)
    else:
        write_new(output, [record, block])


def _document(session: Session, planned: Plan, target: Target) -> bytes:
    """The new context of another client's conversation, as a document."""
    front = [text_message("summary", planned.summary.text), *(text_message("meta", r.text) for r in planned.restored)]
    messages = [*front, *planned.kept]
    if target.markdown:
        return write_markdown(messages, session.title, session.system).encode()
    return write_messages(messages, session.system, session.tools)


def _compacted(session: Session, planned: Plan, new_id: str, target: Target) -> Compacted:
    return Compacted(
        session_id=new_id,
        summary=planned.summary.text,
        kept=planned.kept,
        prompt_tokens=planned.prompt_tokens,
        tokens_before=planned.tokens_before,
        tokens_after=planned.tokens_after,
        restored=[r.text for r in planned.restored],
        title=_TITLE_PREFIX + session.title.removeprefix(_TITLE_PREFIX),
        in_place=target.in_place,
    )
