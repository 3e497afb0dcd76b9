"""From lines to entries, through every kind of damage."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from core.errors import Damaged
from core.transcript.decode import BOM
from core.transcript.entries import Entry, decode_entry
from core.transcript.findings import Finding, FindingKind
from core.transcript.recover import records_in

_RECORD_LINE = re.compile(rb'[ \t]*\{[ \t]*"')
"""How a line begins that begins a record.  It also ends a record over several lines that is not finished, so what
stands before it has no say in how it is read."""
_BLANKS = b" \t\r"
_BLANK_LINE = _BLANKS + b"\n"
"""What a line that says nothing begins with, or is its end."""
_RUNS: frozenset[FindingKind] = frozenset({"garbage-line", "not-a-row"})
"""Kinds of which a run of lines is one finding: a file of another kind has nothing else."""
_MAY_BE_READ = re.compile(rb'\{\s*(?:["}]|\Z)|\0|' + BOM)
"""What a line has in it that is a row, a part of one, or damaged in another way than being none."""


def first_record_line(data: bytes, start: int, end: int, any_line: bool = False) -> int | None:
    """Where the first line begins that begins a record (or any line), the line end before it in `data[start:end]`."""
    at = data.find(b"\n", start, end)
    while at >= 0:
        if any_line or _RECORD_LINE.match(data, at + 1):
            return at + 1
        at = data.find(b"\n", at + 1, end)
    return None


@dataclass(slots=True)
class Scan:
    """Entries and findings of a piece of a file, in order."""

    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def scan(data: bytes, start: int, end: int, offset: int, last: bool) -> Scan:
    """Reads the lines that `data` holds from `start` to `end`.

    `offset` is the place of `data` in the file.  `last`: it ends where the file ends, perhaps within a line.
    """
    scanner = _Scanner(offset)
    view = memoryview(data)
    found, open_record = scanner.scan.entries, scanner.open_record
    while (line_end := data.find(b"\n", start, end)) >= 0:
        if data[start] in _BLANK_LINE and not open_record and not data[start:line_end].strip(_BLANKS):
            start = line_end + 1
            continue
        line, at, start = view[start:line_end], offset + start, line_end + 1
        if at == scanner.run_end and not open_record and scanner.runs_on(line, at):
            continue
        try:
            entry = None if open_record else decode_entry(line, at)
        except Damaged:
            entry = None
        if entry:
            found.append(entry)
        else:
            scanner.odd_line(bytes(line), at)
    if start < end:
        scanner.last_line(view[start:end], offset + start)
    scanner.close(torn=last)
    return scanner.scan


class _Scanner:
    def __init__(self, offset: int) -> None:
        self.scan = Scan()
        self.open_record: list[bytes] = []
        """The lines so far of a record that is spread over several; one list for good: `scan` looks at it each time."""
        self._record_at = 0
        self.run_end = -1
        """Where the line begins that would go on the run of lines that the last finding is about."""
        self._run_lines = 0
        self._ran_on = False

    def runs_on(self, line: memoryview, at: int) -> bool:
        """Takes a line as one more of a run, where it is plainly no row: to decode each would take a hundred times."""
        if _MAY_BE_READ.search(line):
            return False
        self._note("garbage-line", "", at, len(line))
        return True

    def odd_line(self, line: bytes, at: int) -> None:
        """One line, without its end, that is no row by itself, or may be a part of a longer one."""
        if self.open_record and self._continued(line, at):
            return
        try:
            self._took(decode_entry(line, at), at, len(line))
        except Damaged:
            self._damaged(line, at)

    def last_line(self, line: memoryview, at: int) -> None:
        """The last line of a file that has no line end: whole, or torn."""
        if self.open_record and self._continued(bytes(line), at):
            whole = not self.open_record
        else:
            try:
                self._took(decode_entry(line, at), at, len(line))
                whole = True
            except Damaged:
                whole = self._recovered(bytes(line), at, last=True)
        if whole:
            self._note("no-final-newline", "the last line has no line end", at)

    def close(self, torn: bool) -> None:
        """The end of the piece: a record that is still open is no record."""
        if self.open_record and torn:
            self._note("torn-tail", "the last record is cut; it is left out", self._record_at)
        elif self.open_record:
            self._abandon(self._record_at)
        self._end_run()

    def _took(self, entry: Entry | None, at: int, size: int) -> None:
        if entry:
            self.scan.entries.append(entry)
        else:
            self._note("not-a-row", "JSON, but no row; it is left out", at, size)

    def _damaged(self, line: bytes, at: int) -> None:
        if line.rstrip(_BLANKS) == b"{":
            self.open_record.append(line)
            self._record_at = at
        else:
            self._recovered(line, at, last=False)

    def _recovered(self, line: bytes, at: int, last: bool) -> bool:
        """Reads what can be read of a damaged line; false if its end is lost."""
        text = line.replace(b"\0", b" ").replace(BOM, b"   ")
        if not text.strip():
            if line.strip():
                self._note("bad-bytes", f"{len(line)} NUL bytes or byte-order marks between rows", at)
            return False
        spans = records_in(text)
        entries = [entry for start, end in spans if (entry := _entry(text[start:end], at + start))]
        self.scan.entries += entries
        lost = _first_gap(text, spans)
        read_to_end = bool(spans) and not text[spans[-1][1] :].strip()
        if lost is None and len(spans) > 1:
            self._note("joined-line", f"{len(spans)} records on one line; all are read", at)
        elif lost is None:
            self._note("bad-bytes", "NUL bytes or a byte-order mark in a row; they are left out", at)
        elif last and not read_to_end and text.lstrip().startswith(b"{"):
            self._note("torn-tail", "the last record is cut; it is left out", at + lost)
        elif entries:
            found = f"{len(entries)} whole on the same line: read"
            self._note("spliced-line", f"a record is cut, and left out; {found}", at + lost)
        else:
            self._note("garbage-line", f"{len(line)} bytes that are no record; they are left out", at, len(line))
        return read_to_end

    def _continued(self, line: bytes, at: int) -> bool:
        """Takes a line as part of the record that is open; false if it is not."""
        if _RECORD_LINE.match(line):
            self._abandon(at)
            return False
        self.open_record.append(line)
        if line.rstrip(_BLANKS) == b"}":
            entry = _entry(b"\n".join(self.open_record), self._record_at)
            if entry is None:
                self._abandon(at + len(line) + 1)
            else:
                self.scan.entries.append(entry)
                message = f"a record over {len(self.open_record)} lines; it is read"
                self._note("pretty-printed", message, self._record_at)
                self.open_record.clear()
        return True

    def _abandon(self, end: int) -> None:
        lines = len(self.open_record)
        self.open_record.clear()
        self._note("garbage-line", f"{lines} lines that are no record; they are left out", self._record_at)
        self._run_lines += lines - 1
        self.run_end = end

    def _note(self, kind: FindingKind, message: str, at: int, size: int = 0) -> None:
        """A finding; a run of lines of one kind is one."""
        findings = self.scan.findings
        if kind in _RUNS and at == self.run_end:
            self._run_lines += 1
            self._ran_on = True
        else:
            self._end_run()
            self._run_lines = 1
            findings.append(Finding(kind, at, message))
        self.run_end = at + size + 1 if kind in _RUNS else -1

    def _end_run(self) -> None:
        """Says how long the run is that the last finding is about, if it is one."""
        if self._ran_on:
            message = f"{self._run_lines} lines in a row that are no rows; they are left out"
            self.scan.findings[-1] = replace(self.scan.findings[-1], message=message)
        self._ran_on = False


def _entry(raw: bytes, offset: int) -> Entry | None:
    try:
        return decode_entry(raw, offset)
    except Damaged:
        return None


def _first_gap(text: bytes, spans: list[tuple[int, int]]) -> int | None:
    """Where the first bytes are that belong to none of the spans; None if there are none."""
    at = 0
    for start, end in [*spans, (len(text), len(text))]:
        between = text[at:start]
        if between.strip():
            return at + len(between) - len(between.lstrip())
        at = end
    return None
