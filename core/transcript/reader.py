"""From a file to its entries: by bytes, in batches, never line by line, never the whole file in memory.

A transcript is read either whole, or (when it is large) from its last compact boundary on: that is all that the
next request needs, however long the history before it is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from core.errors import Damaged, InputError
from core.model import JSON
from core.transcript.decode import decode_json
from core.transcript.entries import Entry, decode_entry
from core.transcript.recover import Finding, FindingKind, records_in

BATCH_BYTES = 1 << 20
"""What is read and parsed at a time."""
WHOLE_BYTES = 8 << 20
"""Up to this size a file is always read whole: 20 ms, and line numbers and old history come with it."""
_PRETTY_LINES = 20_000
"""How many lines a record that is spread over several lines may have."""
_BOUNDARY = b'"compact_boundary"'


@dataclass(slots=True)
class Log:
    """The entries of a transcript in file order, and the open file that their bodies are read from.

    `start` is the byte offset of the first entry that was looked at: 0, or the last boundary's.
    """

    path: Path
    file: BinaryIO
    size: int
    start: int
    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether the file was read from its first byte."""
        return self.start == 0

    def raw(self, entry: Entry) -> bytes:
        """The bytes of a row, exactly as in the file."""
        return os.pread(self.file.fileno(), entry.size, entry.offset)

    def row(self, entry: Entry) -> dict[str, JSON]:
        """A row, decoded; bad bytes and lone surrogates are U+FFFD."""
        value = decode_json(_clean(self.raw(entry)))
        assert isinstance(value, dict)
        return value

    def line_of(self, offset: int) -> int:
        """The physical line number (from 1) of a byte offset; costs a pass over what is before it."""
        count, at = 1, 0
        while at < offset:
            chunk = os.pread(self.file.fileno(), min(BATCH_BYTES, offset - at), at)
            if not chunk:
                break
            count += chunk.count(b"\n")
            at += len(chunk)
        return count

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Scanner:
    """Takes the bytes of a transcript piece by piece and holds its entries and findings."""

    def __init__(self, offset: int = 0) -> None:
        self.entries: list[Entry] = []
        self.findings: list[Finding] = []
        self._at = offset
        self._rest: list[bytes] = []
        self._open: list[bytes] = []
        self._open_at = 0

    def feed(self, chunk: bytes) -> None:
        head, end, tail = chunk.rpartition(b"\n")
        if not end:
            self._rest.append(chunk)
            return
        lines = b"".join([*self._rest, head]).split(b"\n")
        self._rest = [tail] if tail else []
        for line in lines:
            self._line(line)
            self._at += len(line) + 1

    def close(self) -> None:
        """The end of the file: what is left is a last line without a line end, whole or torn."""
        last = b"".join(self._rest)
        self._rest = []
        before = len(self.entries)
        if last.strip(b" \t\r\0"):
            self._line(last, last=True)
            kind: FindingKind = "no-final-newline" if len(self.entries) > before else "torn-tail"
            self._note(
                kind, "the last line has no line end" if kind == "no-final-newline" else "the last record is cut"
            )
        if self._open:
            self._give_up_open()

    def _line(self, line: bytes, last: bool = False) -> None:
        if self._open:
            self._continue_open(line)
            return
        try:
            entry = decode_entry(line, self._at)
        except Damaged:
            self._damaged(line, last)
            return
        if entry:
            self.entries.append(entry)
        else:
            self._note("not-a-row", "a JSON value that is no row")

    def _damaged(self, line: bytes, last: bool) -> None:
        clean = _clean(line)
        if not clean.strip():
            if clean != line.strip(b" \t\r"):
                self._note("garbage-line", "NUL bytes")
            return
        if clean.strip() == b"{":
            self._open, self._open_at = [line], self._at
            return
        if self._records(line, clean, last):
            return
        if not last:
            self._note("garbage-line", f"{len(line)} bytes that are no record")

    def _records(self, line: bytes, clean: bytes, last: bool) -> bool:
        spans = (
            records_in(line)
            if clean == line
            else records_in(line.replace(b"\0", b" ").replace(b"\xef\xbb\xbf", b"   "))
        )
        rows = [(a, e) for a, b in spans if (e := _try_entry(line[a:b], self._at + a))]
        self.entries += [e for _, e in rows]
        whole = bool(spans) and not line[spans[-1][1] :].strip(b" \t\r\0")
        covered = sum(b - a for a, b in spans) >= len(clean.strip()) - 2 * len(spans)
        if len(spans) > 1 and covered:
            self._note("joined-line", f"{len(spans)} records on one line")
        elif not covered and whole:
            self._note("spliced-line", "a cut record, and a whole one behind it on the same line")
        return bool(rows) and whole

    def _continue_open(self, line: bytes) -> None:
        self._open.append(line)
        if line.rstrip(b" \t\r") == b"}":
            raw = b"\n".join(self._open)
            entry = _try_entry(raw, self._open_at)
            if entry:
                self.entries.append(entry)
                self._note("pretty-printed", f"a record over {len(self._open)} lines", self._open_at)
                self._open = []
                return
        if line.startswith(b'{"') or len(self._open) > _PRETTY_LINES:
            self._give_up_open()
            self._line(line)

    def _give_up_open(self) -> None:
        self._note("garbage-line", f"{len(self._open)} lines that are no record", self._open_at)
        self._open = []

    def _note(self, kind: FindingKind, message: str, offset: int | None = None) -> None:
        self.findings.append(Finding(kind, self._at if offset is None else offset, message))


def _clean(raw: bytes) -> bytes:
    """Without what a crash or an editor leaves around a record: NUL bytes, a byte-order mark, a carriage return."""
    return raw.replace(b"\0", b"").removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")


def _try_entry(raw: bytes, offset: int) -> Entry | None:
    try:
        return decode_entry(raw, offset)
    except Damaged:
        return None


def open_log(path: Path, whole: bool = False) -> Log:
    """Opens a transcript and reads its entries: all of them, or those from the last boundary on.

    Raises `InputError` when the file cannot be opened.
    """
    log = _open(path)
    if not whole and log.size > WHOLE_BYTES:
        log.start = last_boundary(log)
    scanner = Scanner(log.start)
    for chunk in _chunks(log):
        scanner.feed(chunk)
    return _filled(log, scanner)


async def aopen_log(path: Path, whole: bool = False) -> Log:
    """As `open_log`, for a server: reading and parsing leave the event loop free."""
    import aiofiles

    log = await asyncio.to_thread(_open, path)
    if not whole and log.size > WHOLE_BYTES:
        log.start = await asyncio.to_thread(last_boundary, log)
    scanner = Scanner(log.start)
    async with aiofiles.open(path, "rb") as file:
        await file.seek(log.start)
        left = log.size - log.start
        while left and (chunk := await file.read(min(BATCH_BYTES, left))):
            await asyncio.to_thread(scanner.feed, chunk)
            left -= len(chunk)
    return _filled(log, scanner)


def _open(path: Path) -> Log:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "check the path and who may read it") from None
    return Log(path, file, os.fstat(file.fileno()).st_size, 0)


def _filled(log: Log, scanner: Scanner) -> Log:
    scanner.close()
    log.entries, log.findings = scanner.entries, scanner.findings
    return log


def _chunks(log: Log) -> Iterator[bytes]:
    at = log.start
    while at < log.size and (chunk := os.pread(log.file.fileno(), min(BATCH_BYTES, log.size - at), at)):
        yield chunk
        at += len(chunk)


def last_boundary(log: Log) -> int:
    """The byte offset of the row of the last compact boundary, found from the end; 0 when there is none."""
    fd, end, carry = log.file.fileno(), log.size, b""
    while end > 0:
        start = max(0, end - BATCH_BYTES)
        block = os.pread(fd, end - start, start) + carry
        at = len(block)
        while (at := block.rfind(_BOUNDARY, 0, at)) >= 0:
            if (row := _boundary_row(fd, start + at, log.size)) is not None:
                return row
        carry = block[: len(_BOUNDARY) - 1]
        end = start
    return 0


def _boundary_row(fd: int, at: int, size: int) -> int | None:
    """The offset of the row around `at`, if that row is a boundary (the words may stand in a row's content too)."""
    begin = _line_start(fd, at)
    raw = os.pread(fd, min(_LINE_BYTES, size - begin), begin).partition(b"\n")[0]
    entry = _try_entry(raw, begin)
    return begin if entry and entry.is_boundary else None


_LINE_BYTES = 64 << 10
"""A boundary's row is about 1 KB, with a long list of kept rows some 20 KB; a longer row is none."""


def _line_start(fd: int, at: int) -> int:
    begin = max(0, at - _LINE_BYTES)
    return begin + os.pread(fd, at - begin, begin).rfind(b"\n") + 1
