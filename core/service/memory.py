"""Session memory: show the notes of a session, bring them up to its end, change them as a caller says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from core.errors import ApiError, Changed, Damaged, FoldmarkError, IdNotFound, NothingNoted, WrongFormat
from core.ids import one_of
from core.memory.brief import brief, notes_in
from core.memory.cadence import Cadence, due
from core.memory.evidence import Evidence, evidence_of
from core.memory.extract import Extracted, Extractor
from core.memory.files import MemoryFiles
from core.memory.limits import DEFAULT_LIMITS, MemoryLimits
from core.memory.notes import Notes, budget_tokens
from core.memory.operations import Add, Operation, Replace, apply
from core.memory.part import Part, Unseen, chunks, unseen
from core.model import JSON, Message, Usage, block_text
from core.redact.values import redact_messages
from core.results import Result
from core.service.session import Session, SessionRef, opened
from core.service.usage import Spent, spent
from core.transcript.live import FileState
from core.transcript.projects import SessionFile

ATTEMPTS = 3
"""How often an update is made anew on what a person wrote into the notes meanwhile."""
_HALVINGS = 3
"""How often a part that is too long for the model is halved."""
_NO_FAILURE = ("spend", "deadline", "cancelled")
"""Kinds of errors that say nothing about the session."""
CALLER = "caller"
"""Who says how notes change where operations are given."""
_SHOWN_CHARS = 200
_WHOLE = 1_000_000_000
"""A room in which nothing is cut."""


class MemoryView(Result):
    """The notes of a session."""

    session: SessionRef
    path: str
    exists: bool
    text: str
    """As a model reads them, whole."""
    updates: int
    covers: str
    """The last message that they tell of, by its row; "" where that is not known."""
    unseen_messages: int
    unseen_tokens: int
    failures: int
    """How many of the last updates failed, one after the other."""


class MemoryUpdate(Result):
    """An update of the notes of one session, or why there was none (`changed` is false)."""

    session: SessionRef
    path: str
    changed: bool
    reason: str
    """Why it was due, or why nothing was written."""
    summarizer: str
    messages: int = 0
    """How many were noted."""
    tokens: int = 0
    """What these have in the context."""
    operations: int = 0
    """How many changes were made."""
    refused: list[str] = msgspec.field(default_factory=list)
    """What was not done, and why."""
    archived: int = 0
    """How many entries left the notes."""
    covers: str = ""
    calls: int = 0
    """Of a model."""
    usage: Spent = Spent()


def show(file: SessionFile, limits: MemoryLimits = DEFAULT_LIMITS) -> MemoryView:
    """The notes of a session, and how much they do not tell of.

    Raises as `opened`, and Damaged for notes that are no file.
    """
    with _read(file, limits) as desk:
        held, path = desk.files.read(), str(desk.files.notes_path)
        seen = desk.unseen(held.notes.covers)
        return MemoryView(
            session=desk.session.ref,
            path=path,
            exists=held.exists,
            text=brief(held.notes, _WHOLE, path) if held.exists else "",
            updates=held.notes.update,
            covers=held.notes.covers,
            unseen_messages=seen.end - seen.start,
            unseen_tokens=seen.tokens,
            failures=desk.files.state().failures,
        )


def update(
    file: SessionFile,
    extractor: Extractor,
    limits: MemoryLimits = DEFAULT_LIMITS,
    *,
    when_due: bool = False,
) -> MemoryUpdate:
    """Bring the notes up to the end of the session.

    `when_due`: only if enough is new, and a session where it is not is remembered.  Raises as `opened`, Locked when
    another update takes longer than is waited for, Changed when somebody else changed the notes meanwhile, what the
    extractor raises, WriteFailed: the notes are then as they were, or as an earlier piece of this update left them.
    """
    with MemoryFiles.beside(file).locked(limits.wait_s), _read(file, limits) as desk:
        work = _Work(desk, extractor.name)
        seen = desk.unseen(work.notes.covers)
        if seen.start == seen.end:
            return work.left_alone("nothing is new", "", remembered=when_due)
        reason = work.due(seen, limits.cadence or extractor.cadence) if when_due else "asked"
        if not reason:
            return work.left_alone("too little is new", extractor.name, remembered=True)
        work.note(seen, extractor)
        return work.result(reason)


def edit(file: SessionFile, operations: Sequence[JSON], limits: MemoryLimits = DEFAULT_LIMITS) -> MemoryUpdate:
    """Carry out operations that a caller gives; messages go by their ids or the begin of them.

    What is no operation, or must not be done, is refused and said so.  Raises as `update`.
    """
    with MemoryFiles.beside(file).locked(limits.wait_s), _read(file, limits) as desk:
        work = _Work(desk, CALLER)
        evidence = evidence_of(desk.clean)
        found, refused = list[Operation](), list[str]()
        for raw in operations:
            try:
                found.append(_with_whole_ids(msgspec.convert(raw, Operation), evidence))
            except (msgspec.ValidationError, IdNotFound) as error:
                refused.append(f"{_in_short(raw)}: {error}")
        work.write(evidence, "", Extracted(tuple(found), tuple(refused)))
        return work.result("asked")


@dataclass(frozen=True)
class _Desk:
    """An open session with its notes."""

    session: Session
    files: MemoryFiles
    limits: MemoryLimits

    @cached_property
    def clean(self) -> tuple[Message, ...]:
        """The messages without secrets, as the notes and a caller know them."""
        return redact_messages(self.session.messages)

    @property
    def sizes_tokens(self) -> Sequence[int]:
        return self.session.size.item_tokens

    @property
    def budget_tokens(self) -> int:
        """The room of the notes."""
        return budget_tokens(self.limits.most_tokens, self.session.window_tokens)

    def unseen(self, covers: str) -> Unseen:
        return unseen(self.session.messages, self.sizes_tokens, covers)

    def looked_at(self) -> FileState:
        """The transcript as it was read: what is appended later makes another state."""
        found = FileState.of(self.session.path)
        return replace(found, size=self.session.claude.log.size) if self.session.claude else found


@contextmanager
def _read(file: SessionFile, limits: MemoryLimits) -> Iterator[_Desk]:
    with opened(file, measuring=limits.measuring) as session:
        if session.claude is None:
            raise WrongFormat(f"{file.path.name} is no Claude Code transcript", "notes are kept beside those only")
        yield _Desk(session, MemoryFiles.beside(file), limits)


class _Work:
    """An update of the notes, and what it did so far."""

    def __init__(self, desk: _Desk, summarizer: str) -> None:
        self.desk, self.files, self.summarizer = desk, desk.files, summarizer
        self.held, self.state = self.files.read(), self.files.state()
        self.notes = self._notes()
        self.messages = self.tokens = self.operations = self.archived = self.calls = 0
        self.refused: tuple[str, ...] = ()
        self.usage = Usage()

    def _notes(self) -> Notes:
        """What is changed: the notes of the file, else those that the session began with."""
        notes, session = self.held.notes, self.files.session
        if self.held.exists:
            if notes.session not in ("", session):
                raise Damaged(f"{self.files.notes_path} holds notes of session {notes.session}", "move the file away")
            return replace(notes, session=session)
        first = next(iter(self.desk.session.messages), None)
        if first is None or first.kind != "summary":
            return notes
        return notes_in("\n".join(map(block_text, first.content)), session) or notes

    def due(self, seen: Unseen, cadence: Cadence) -> str:
        """Why an update is due."""
        failures, turns = self.state.failures, self.state.failed_turns
        return due(seen, cadence, noted=self.notes.update > 0, failures=failures, failed_turns=turns)

    def note(self, seen: Unseen, extractor: Extractor) -> None:
        """Note what is new, piece by piece; pieces that are too long for a model are halved."""
        messages, sizes = self.desk.clean, self.desk.sizes_tokens
        most, halvings = extractor.part_tokens, 0
        while seen.start < seen.end:
            end = next(chunks(sizes, messages, seen, most))
            view = messages[:end]
            evidence = evidence_of(view)
            part = Part(self.notes, view, seen.start, evidence, self.desk.session.title, self.desk.budget_tokens)
            tokens = sum(sizes[seen.start : end])
            try:
                found = extractor.extract(part)
            except (ApiError, NothingNoted) as error:
                halvings += 1
                if isinstance(error, ApiError) and error.kind == "too-long" and halvings <= _HALVINGS:
                    most = min(most, tokens) // 2
                    continue
                self._failed(error, seen)
                raise
            self.write(evidence, part.covers, found)
            self.messages += end - seen.start
            self.tokens += tokens
            seen = replace(seen, start=end)
        self.state = self.state.looked_at(self.desk.looked_at())
        self.files.save_state(self.state)

    def write(self, evidence: Evidence, covers: str, found: Extracted) -> None:
        """Carry out operations and write the notes; anew on what a person wrote meanwhile."""
        attempts = ATTEMPTS
        while True:
            done = apply(self.notes, found.operations, evidence, self.desk.budget_tokens, covers)
            state = msgspec.structs.replace(
                self.state,
                calls=self.state.calls + found.calls,
                tokens=self.state.tokens + found.usage.total_tokens,
                failures=0,
            )
            try:
                self.state = self.files.save(self.held, done.notes, done.dropped, state)
                break
            except Changed:
                attempts, before = attempts - 1, self.notes.covers
                self.held = self.files.read()
                self.notes = self._notes()
                if not attempts or self.notes.covers != before:  # another update did it
                    raise
        self.held, self.notes = self.files.read(), done.notes
        self.operations += len(found.operations) - len(done.refused)
        self.refused += (*found.refused, *(f"{_in_short(r.operation)}: {r.reason}" for r in done.refused))
        self.archived += len(done.dropped)
        self.calls += found.calls
        self.usage += found.usage

    def _failed(self, error: FoldmarkError, seen: Unseen) -> None:
        if isinstance(error, ApiError) and error.kind in _NO_FAILURE:
            return
        failures = self.state.failures + 1
        self.files.save_state(msgspec.structs.replace(self.state, failures=failures, failed_turns=seen.turns))

    def left_alone(self, reason: str, waits_for: str, *, remembered: bool) -> MemoryUpdate:
        """Nothing is written but, if asked for, that the transcript was looked at."""
        if remembered:
            self.files.save_state(self.state.looked_at(self.desk.looked_at(), waits_for))
        return self.result(reason, changed=False)

    def result(self, reason: str, *, changed: bool = True) -> MemoryUpdate:
        """What was done."""
        return MemoryUpdate(
            session=self.desk.session.ref,
            path=str(self.files.notes_path),
            changed=changed,
            reason=reason,
            summarizer=self.summarizer,
            messages=self.messages,
            tokens=self.tokens,
            operations=self.operations,
            refused=[*self.refused],
            archived=self.archived,
            covers=self.notes.covers,
            calls=self.calls,
            usage=spent(self.usage),
        )


def _with_whole_ids(operation: Operation, evidence: Evidence) -> Operation:
    """The operation with whole ids of messages in the place of those that a caller shortened."""
    match operation:
        case Add() | Replace():
            sources = tuple(_whole(source, evidence) for source in operation.sources)
            return msgspec.structs.replace(operation, sources=sources)
        case _:
            return msgspec.structs.replace(operation, evidence=_whole(operation.evidence, evidence))


def _whole(ident: str, evidence: Evidence) -> str:
    known = [(uuid, uuid) for uuid in evidence.places]
    return ident and one_of(ident, known, "message of the active context", "{search} finds ids")


def _in_short(value: object) -> str:
    return msgspec.json.encode(value).decode()[:_SHOWN_CHARS]
