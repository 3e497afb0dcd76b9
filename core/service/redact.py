"""Find the secrets in a transcript and its stored outputs, and copy both without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from core.errors import Damaged, InputError, WrongFormat
from core.model import JSON, Block, mapping
from core.redact.text import Hit
from core.results import Result
from core.service.operation import Operation, Target, attempted, digest_of, source_of
from core.service.session import CLAUDE_CODE, Session, SessionRef, opened
from core.transcript.decode import decode_json
from core.transcript.materialize import derived_id
from core.transcript.page import Body
from core.transcript.projects import SessionFile
from core.transcript.records import REDACTED
from core.transcript.redacted import Copy, Found, StoredFile, redact_stored
from core.transcript.store import Store

_BLOCKS = {"thinking": "thinking", "tool_use": "tool input", "tool_result": "tool result"}
_FIELDS = {"message": "text", "content": "text", "rendered": "attachment"}


class Secret(Result):
    """One secret: `kind`, and where it is; `masked` shows what all of its kind begin with, and how long it is."""

    kind: str
    where: str
    """text, thinking, tool input, tool result, attachment, stored output, or the field of the row."""
    id: str
    """Of the tool call, or of the row; "" where there is none."""
    line: int
    """Of the transcript, or of the stored file; from 1."""
    file: str
    """The stored file; "" for the transcript itself."""
    masked: str


class RedactResult(Result):
    """The secrets of a session, and the copy without them: `changed` where it was written now, `output` where it is
    there."""

    session: SessionRef
    findings: list[Secret]
    output: str
    output_id: str
    changed: bool
    reason: str


def find_secrets(file: SessionFile) -> RedactResult:
    """Lists the secrets of a transcript of any format, whatever branch they are on, and of its stored outputs."""
    with opened(file) as session:
        job = _Job(session)
        for _ in job.rows():
            pass
        return job.result(False, "only looked at")


def redact_session(file: SessionFile, out_dir: Path | None = None) -> RedactResult:
    """Writes a copy without secrets, with the same rows under a new session id, and its stored outputs beside it.

    Nothing is written where there are none, or where the copy is there.  Raises WrongFormat for another client's
    transcript, WriteFailed: then nothing was written.
    """
    return attempted(lambda: _redacted(file, out_dir))


def _redacted(file: SessionFile, out_dir: Path | None) -> RedactResult:
    with opened(file) as session:
        if session.format != CLAUDE_CODE:
            raise WrongFormat(
                f"{session.path.name} is not a Claude Code transcript, and no other can be copied without its secrets",
                "{secrets} lists them: take them out with an editor",
            )
        job = _Job(session, out_dir)
        digest = digest_of(job.rows())
        if not job.findings:
            return job.result(False, "it holds no secrets that Foldmark knows")
        with job.operation.pending() as reason:
            if not reason:
                job.write(digest)
        return job.result(not reason, reason)


@dataclass
class _Job:
    """One session to look through, and the copy that it may become."""

    session: Session
    out_dir: Path | None = None
    findings: list[Secret] = field(default_factory=list)

    @cached_property
    def operation(self) -> Operation:
        """What is made: a copy of the session."""
        file = self.session.file
        new_id = derived_id("redacted", file.parent, file.id, str(file.size_bytes))
        return Operation(self.session, Target(Path(), self.out_dir), new_id)

    @property
    def store(self) -> Store:
        """Where the session's stored outputs are."""
        return Store.beside(self.session.path)

    def rows(self) -> Iterator[bytes]:
        """The rows of the copy; when all were taken, `findings` are complete."""
        copy = Copy(self.session.file.id, self.operation.new_id)
        yield from copy.rows(self._lines())
        if self.session.title:
            yield self.operation.title_row("redacted")
        self.findings = [finding for found in copy.found for finding in _in_row(found)]
        for name, stored in self._stored():
            self.findings += [
                _secret(hit, where="stored output", ident=ident, line=line, file=name)
                for ident, line, hit in stored.hits
            ]

    def write(self, digest: tuple[int, str]) -> None:
        """Writes what is stored first, then the rows, whose `digest` that is."""
        source = source_of(self.session, size=self.session.file.size_bytes)
        for name, stored in self._stored():
            self.operation.store.write({name: [stored.content]}, stored.bodies)
        self.operation.write_streamed(REDACTED, source, digest, self.rows())

    def result(self, changed: bool, reason: str) -> RedactResult:
        """What was found and done."""
        there = bool(self.findings) and self.session.format == CLAUDE_CODE and self.operation.output.exists()
        return RedactResult(
            session=self.session.ref,
            findings=self.findings,
            output=str(self.operation.output) if there else "",
            output_id=self.operation.new_id if there else "",
            changed=changed,
            reason=reason,
        )

    def _lines(self) -> Iterator[bytes]:
        """The lines as they were when the session was looked at; a document is one line."""
        left = self.session.file.size_bytes
        with self.session.path.open("rb") as file:
            if self.session.format != CLAUDE_CODE and _is_document(whole := file.read(left)):
                yield whole
                return
            file.seek(0)
            while left > 0 and (line := file.readline(left)):
                left -= len(line)
                yield line

    def _stored(self) -> Iterator[tuple[str, StoredFile]]:
        """The files of the store, redacted, by name; those that are gone are passed over."""
        by_file: dict[str, list[Body]] = {}
        for body in self.store.bodies() if self.session.format == CLAUDE_CODE else ():
            by_file.setdefault(body.file, []).append(body)
        for name, bodies in sorted(by_file.items()):
            try:
                raw = self.store.content(name)
            except InputError:
                continue
            yield name, redact_stored(raw, bodies)


def _is_document(raw: bytes) -> bool:
    try:
        return not isinstance(decode_json(raw), str)
    except Damaged:
        return False


def _in_row(found: Found) -> Iterator[Secret]:
    row = found.row or {}
    for place in found.places:
        name = str(place.path[0]) if place.path else "unreadable row"
        where, ident = _FIELDS.get(name, name), str(row.get("uuid") or "")
        block = _block(row, place.path)
        if block:
            where = _BLOCKS.get(str(block.get("type")), where)
            ident = str(block.get("tool_use_id") or block.get("id") or ident)
        yield _secret(place.hit, where, ident, found.line)


def _block(row: dict[str, JSON], path: tuple[str | int, ...]) -> Block:
    """The content block that a path leads into, {} for none."""
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) and path[:2] == ("message", "content") else None
    at = path[2] if len(path) > 2 else None
    block = content[at] if isinstance(content, list) and isinstance(at, int) else None
    return mapping(block)


def _secret(hit: Hit, where: str, ident: str, line: int, file: str = "") -> Secret:
    return Secret(kind=hit.kind, where=where, id=ident, line=line, file=file, masked=hit.masked)
