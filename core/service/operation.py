"""One operation on a session: what it makes, where that goes, and how it is written: once, and whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec

from core.errors import Changed, InputError, WrongFormat
from core.model import Message
from core.results import Result
from core.service.session import CLAUDE_CODE, Session, SessionRef
from core.transcript.documents import record_of, write_document
from core.transcript.formats import FORMATS
from core.transcript.formats.markdown import write_markdown
from core.transcript.formats.outgoing import write_messages
from core.transcript.live import FileState
from core.transcript.locks import locked
from core.transcript.materialize import NewHistory, derived_id, materialize
from core.transcript.projects import SUFFIX, as_text, session_id
from core.transcript.reader import Log
from core.transcript.records import STDIN, Record, Source, digest_of_ends, first_record
from core.transcript.store import Store
from core.transcript.writer import append, write_new

T = TypeVar("T")

ATTEMPTS = 3
"""How often an operation is tried, where rows are written between reading and writing."""
DRY_RUN = "dry run"
"""The reason for which a dry run changes nothing."""
WRITTEN_BEFORE = "the same was written before"
"""The reason for which an operation whose result is there changes nothing."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the result goes: a new file in `out_dir` (None: beside the source), or the source itself."""

    lock_dir: Path
    out_dir: Path | None = None
    in_place: bool = False
    dry_run: bool = False
    markdown: bool = False
    """Of other clients' transcripts: Markdown instead of Messages JSON."""
    clock: Callable[[], float] | None = None
    """Seconds since 1970: in place, tells a row that is being written from a torn one (None: all are torn)."""


class StageReport(Result):
    """What one stage did."""

    stage: str
    tokens_freed: int


class Loss(Result):
    """Where the messages of before are now: word for word in the context, to be read on demand, or nowhere."""

    kept: int
    reachable: int
    gone: int


class Outcome(Result):
    """What an operation did, would do, or found needless (`changed` is false, `reason` says why)."""

    session: SessionRef
    """What it was done to."""
    output: str
    """The file that was, or would be, written; that of the session where nothing is to be done."""
    output_id: str
    """Of the session in it, which the client resumes."""
    tokens_before: int
    tokens_after: int
    stages: list[StageReport]
    loss: Loss
    verdicts: list[str] = msgspec.field(default_factory=list)
    """What rewriting the prompt cache costs and what sending less saves, in words."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """What a person should know: what could not be stored, another summariser took over, a hook failed."""
    changed: bool
    reason: str

    derived: ClassVar = ("resume", "undo")

    @property
    def resume(self) -> str:
        """The command that goes on from the result; "" where it is not there, or no session of Claude Code."""
        return resume_command(self.output, self.output_id, self.session.format) if self._is_there else ""

    @property
    def undo(self) -> str:
        """The command that takes it back; "" where nothing is there."""
        return undo_command(self.output, self.output_id, self.session.format) if self._is_there else ""

    @property
    def standing(self) -> str:
        """Whether the result is written, or would be, and where, in words; else why it is not."""
        if self.changed:
            return f"written: {self.output}"
        if self.reason == DRY_RUN:
            return f"dry run: would {'append to' if self.output == self.session.path else 'write'} {self.output}"
        return f"nothing written: {self.reason}{f': {self.output}' if self._is_there else ''}"

    @property
    def _is_there(self) -> bool:
        return self.changed or self.reason == WRITTEN_BEFORE


def resume_command(output: str, output_id: str, source_format: str) -> str:
    """What goes on from a session that was written; "" for what was made of other clients' transcripts."""
    is_session = source_format == CLAUDE_CODE
    return f"claude --resume {_name(output, output_id, source_format)}" if is_session else ""


def undo_command(output: str, output_id: str, source_format: str) -> str:
    """What takes back what was written."""
    return f"foldmark undo {_name(output, output_id, source_format)}"


def _name(output: str, output_id: str, source_format: str) -> str:
    """The id of a session in a folder of the client's projects, else the file."""
    is_known = source_format == CLAUDE_CODE and "projects" in Path(output).parts[-3:-2]
    return output_id if is_known else shlex.quote(output)


@dataclass(frozen=True)
class Operation:
    """What is made of an open session: the session `new_id`, in the file `output`, with `store` beside it."""

    session: Session
    target: Target
    new_id: str

    def __post_init__(self) -> None:
        """Raises InputError where a transcript or a record could not name what it is made of, or what is stored."""
        path, folder = self.session.path, self.target.out_dir
        for each in (path.absolute(), path.resolve(), *([folder.absolute()] if folder else [])):
            if as_text(str(each)) != str(each):
                said = f"{as_text(str(each))}: the name is not UTF-8, and nothing that is written could lead back to it"
                raise InputError(said, "rename the file, or the folder")

    @classmethod
    def of(cls, session: Session, target: Target, *asked: str) -> Operation:
        """The operation that was asked for: the same of the same history is the same session; in place, the source."""
        if target.in_place:
            return cls(session, target, session.file.id)
        form = ("markdown",) if target.markdown and session.claude is None else ()
        history = (uuid for message in session.messages for uuid in message.uuids)
        return cls(
            session, target, derived_id("session", session.file.parent, session.file.id, *asked, *form, *history)
        )

    @cached_property
    def output(self) -> Path:
        """The file that is written.

        Raises WrongFormat for a change in place of what is no Claude Code transcript, and for Markdown of what is one.
        """
        session, target, path = self.session, self.target, self.session.path
        if target.markdown and session.claude:
            raise WrongFormat(
                f"{path.name} is a Claude Code transcript, which becomes another one", "leave out {markdown}"
            )
        if target.in_place:
            if session.claude is None:
                label = next(f.label for f in FORMATS if f.name == session.format)
                raise WrongFormat(
                    f"{path.name} looks like {label}, and only a Claude Code transcript can be changed in place",
                    "leave out {in_place}: the result goes to a file of its own",
                )
            return path
        # What was a subagent's becomes a session of its own, which clients look for in the project's folder.
        # Absolute: the summary names files, and the session may be resumed elsewhere.
        folder = (target.out_dir or (path.parents[2] if session.file.parent else path.parent)).absolute()
        if session.claude:
            return folder / f"{self.new_id}{SUFFIX}"
        return folder / f"{path.stem}.compacted-{self.new_id[:8]}{'.md' if target.markdown else '.json'}"

    @cached_property
    def store(self) -> Store:
        """Where the result finds what was taken out; it knows what this operation leans on."""
        return Store.beside(self.output)

    @cached_property
    def source(self) -> Source:
        """How the record names what the operation is done to."""
        return source_of(self.session, self.target.in_place)

    @property
    def written(self) -> Record | None:
        """The record of the result, where that is there already; never in place.  Raises as `output`."""
        if not self.output.exists() or self.target.in_place:
            return None
        return first_record(self.output) if self.session.claude else record_of(self.output)

    @contextmanager
    def pending(self) -> Iterator[str]:
        """Yields why nothing is to be written, "" where the result is; of two that do the same, one waits and sees it.

        Raises Locked, WriteFailed, Changed where rows were written since the transcript was read, and what the block
        raises: then what it stored is gone too.
        """
        if self.target.dry_run:
            yield DRY_RUN
            return
        with self._held():
            if self.session.claude:
                self._must_be_all(self.session.claude.log)
            if not self.target.in_place and self.output.exists():
                yield WRITTEN_BEFORE
                return
            try:
                yield ""
            except BaseException:  # Ctrl-C too
                if not self._may_be_there():  # else it leans on the store, whoever wrote it (a disk without locks)
                    self.store.take_back()
                raise

    def _held(self) -> AbstractContextManager[None]:
        """Keeps others from what is written: who holds a transcript may lock its store, and never the other way round.

        In place, whoever takes a block back (see `undo`) would remove what the new one is about to lean on.
        """
        return locked(self.output, self.target.lock_dir) if self.target.in_place else self.store.locked()

    def _may_be_there(self) -> bool:
        """Whether the result is there; in place, whether the transcript is any other than it was read."""
        if not self.target.in_place:
            return self.output.exists()
        with suppress(OSError):
            return self.output.stat().st_size != self.source.size
        return True

    def _must_be_all(self, log: Log) -> None:
        """Raises Changed where rows were written since the transcript was read: the result would not hold them."""
        if FileState.of(log.path).size != log.size:
            raise Changed(f"{log.path} was written by another program meanwhile", "run the command again")

    def rows(self, compacted: NewHistory) -> bytes:
        """The rows of a transcript's new history."""
        assert self.session.claude is not None
        return b"".join(row + b"\n" for row in materialize(*self.session.claude, compacted))

    def document(self, messages: Sequence[Message]) -> bytes:
        """The new context of another client's conversation."""
        session = self.session
        if self.target.markdown:
            return write_markdown(messages, session.title, session.system).encode()
        return write_messages(messages, session.system, session.tools)

    def write(self, record: Record, content: bytes) -> None:
        """Appends a record and its block to the transcript, or writes them as a new one, or as a document.

        It is for the block of `pending`; the record names what was stored there.  Raises WriteFailed, Changed (in
        place: the transcript grew); then nothing was written.
        """
        record = msgspec.structs.replace(record, stored=self._stored)
        if self.target.in_place:
            append(self.output, record.row(content) + content, record.source.size, self.target.clock)
        elif self.session.claude:
            write_new(self.output, [record.row(content), content])
        else:
            write_document(self.output, record, content)

    def write_streamed(self, op: str, source: Source, digest: tuple[int, str], rows: Iterable[bytes]) -> None:
        """Writes a record and rows, as they come, as a new transcript; `digest` is that of the rows.

        Raises WriteFailed; then nothing was written.
        """
        size, sha256 = digest
        ident = derived_id("record", self.new_id)
        record = Record(
            op=op, id=ident, session_id=self.new_id, size=size, sha256=sha256, source=source, stored=self._stored
        )
        write_new(self.output, chain([msgspec.json.encode(record) + b"\n"], rows))

    @property
    def _stored(self) -> tuple[str, ...] | msgspec.UnsetType:
        return tuple(sorted(self.store.written)) or msgspec.UNSET

    def titled(self, prefix: str) -> str:
        """The title of the result, which tells it from its source; a second prefix of the same is not added."""
        return f"{prefix}: " + self.session.title.removeprefix(f"{prefix}: ")

    def title_row(self, prefix: str) -> bytes:
        """The row that gives the result its title."""
        row = {"type": "custom-title", "customTitle": self.titled(prefix), "sessionId": self.new_id}
        return msgspec.json.encode(row) + b"\n"


def digest_of(rows: Iterable[bytes]) -> tuple[int, str]:
    """How many bytes the rows have, and their SHA-256."""
    digest, size = hashlib.sha256(), 0
    for row in rows:
        digest.update(row)
        size += len(row)
    return size, digest.hexdigest()


def attempted(once: Callable[[], T]) -> T:
    """What `once` gives; it starts anew where rows were written since the transcript was read."""
    for _ in range(ATTEMPTS - 1):
        with suppress(Changed):
            return once()
    return once()


def source_of(session: Session, in_place: bool = False, size: int | None = None) -> Source:
    """How the record of an operation names what it was done to; `size`: the bytes of a transcript, if not all read."""
    file = session.file
    real = session.path.resolve()
    path, ident = (STDIN, file.id) if file.piped else (str(real), session_id(real))
    if session.claude is None:
        return Source(path, ident, file.size_bytes)
    log = session.claude.log
    fd, size = log.file.fileno(), log.size if size is None else size
    if in_place:
        return Source(path, ident, size, os.fstat(fd).st_mtime_ns)
    return Source(path, ident, size, ends_sha256=digest_of_ends(fd, size))
