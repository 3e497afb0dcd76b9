"""What is wrong with a transcript: every finding with its line, and what a repair does about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from core.errors import FoldmarkError
from core.model import JSON, UNDECODABLE, mapping
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.findings import Finding, FindingKind
from core.transcript.persisted import gone_outputs, persisted_outputs
from core.transcript.reader import Log
from core.transcript.records import find_records, is_cut_off
from core.transcript.recover import wrong_bytes
from core.transcript.repair import Repairs, repairs_of
from core.transcript.store import Store

LONG_LINE_BYTES = 1 << 20
"""Of 150,000 rows of real sessions one was longer."""
_REPAIRED: dict[FindingKind, str] = {
    "joined-line": "each record gets its own line",
    "spliced-line": "the cut record is dropped",
    "torn-tail": "the cut record is dropped",
    "garbage-line": "dropped",
    "not-a-row": "dropped",
    "pretty-printed": "written on one line",
    "bad-bytes": "replaced",
    "no-final-newline": "added",
    "duplicate-uuid": "the last row stays",
    "missing-parent": "hung off the row before it",
    "cycle": "made a root",
    "no-timestamp": "set between its neighbours",
}
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def check(log: Log, chain: Chain) -> list[Finding]:
    """All that is wrong with a transcript that was read whole, in file order, with physical line numbers.

    `chain` is its active chain.  Kinds in `findings.NOTES` are worth knowing, but no damage.
    """
    repairs = repairs_of(log)
    found = [
        *log.findings,
        *(f for f in chain.findings if f.kind == "preserved-not-in-file"),
        *_of_links(log, repairs),
        *_of_pairs(log.entries),
        *_of_boundaries(log),
        *_of_blocks(log),
        *_of_outputs(log, Store.beside(log.path)),
        *(finding for entry in log.entries for finding in _of_row(log, entry)),
    ]
    found.sort(key=lambda f: f.offset)
    lines = _lines(log, (f.offset for f in found))
    return [replace(f, line=lines[f.offset], repaired=_repaired(f, repairs)) for f in found]


def _repaired(finding: Finding, repairs: Repairs) -> str:
    return "" if finding.offset in repairs.orphans else _REPAIRED.get(finding.kind, "")


def _of_links(log: Log, repairs: Repairs) -> Iterator[Finding]:
    for entry in log.entries:
        at = entry.offset
        if at in repairs.dropped:
            yield Finding("duplicate-uuid", at, f"{entry.uuid}: a later row has this id, and counts")
        elif at in repairs.orphans:
            yield Finding(
                "missing-parent", at, f"{entry.uuid}: its parent is not in the file, nor a row of its session"
            )
        elif at in repairs.parents and repairs.parents[at] is None:
            yield Finding("cycle", at, f"{entry.uuid}: its own ancestor; it counts as a root")
        elif at in repairs.parents:
            yield Finding(
                "missing-parent", at, f"{entry.uuid}: its parent is not in the file; the row before it stands in"
            )
        if at in repairs.timestamps:
            yield Finding("no-timestamp", at, f"{entry.uuid}: older clients cannot resume a session with such a row")


def _of_pairs(entries: Iterable[Entry]) -> Iterator[Finding]:
    """Calls and results without their other half, and ids that two rows have."""
    rows_of_talk = [*{e.uuid: e for e in entries if e.type in ("user", "assistant") and e.uuid}.values()]
    rows = [e for e in rows_of_talk if e.tools]
    calls = {t for e in rows if e.type == "assistant" for t in e.tools}
    results = {t for e in rows if e.type == "user" for t in e.tools}
    newest, seen = _newest_response(rows_of_talk), set[str]()
    for entry in rows:
        for tool in entry.tools:
            if entry.type == "user":
                if tool not in calls:
                    yield Finding("orphan-result", entry.offset, f"{tool}: a result of a call that is not in the file")
                continue
            if tool not in results:
                kind: FindingKind = "open-call" if entry.offset in newest else "unpaired-call"
                yield Finding(kind, entry.offset, f"{tool}: a call without a result in the file")
            if tool in seen:
                yield Finding("duplicate-call", entry.offset, f"{tool}: called before; the first pair counts")
            seen.add(tool)


def _newest_response(rows: Sequence[Entry]) -> set[int]:
    """The rows (by offset) of the last response, if nothing but results stands behind it: others may still come."""
    found: set[int] = set()
    response = ""
    for entry in reversed(rows):
        if entry.type == "user" and not entry.tools:
            break
        if entry.type == "assistant":
            if found and (not response or entry.response_id != response):
                break
            response = entry.response_id
            found.add(entry.offset)
    return found


def _of_boundaries(log: Log) -> Iterator[Finding]:
    known = {e.uuid for e in log.entries}
    for entry in log.entries:
        if entry.is_boundary:
            before = log.body(entry).get("logicalParentUuid")
            if isinstance(before, str) and before not in known:
                yield Finding("history-not-in-file", entry.offset, "history before this boundary is not in the file")


def _of_blocks(log: Log) -> Iterator[Finding]:
    for placed in find_records(log):
        if is_cut_off(log, placed):
            yield Finding("cut-block", placed.offset, "what Foldmark wrote from here on was cut off; undo takes it out")


def _of_outputs(log: Log, store: Store) -> Iterator[Finding]:
    """What was stored beside the transcript, by the client or by Foldmark, and is gone while the transcript is kept."""
    try:
        gone = gone_outputs(persisted_outputs(log, log.entries), store)
        lost = ({body.file for body in store.bodies()} | _named_by_records(log)) - store.files().keys()
    except FoldmarkError:  # no store that could be looked into
        return
    for entry in log.entries:
        for call in gone.keys() & {*entry.tools} if entry.type == "user" else ():
            yield Finding(
                "gone-output", entry.offset, f"{call}: its stored output is gone; its preview is all there is"
            )
    newest = max((placed.offset for placed in find_records(log)), default=0)
    for file in sorted(lost):
        yield Finding("gone-output", newest, f"{file}: what was taken out and stored there is gone")


def _named_by_records(log: Log) -> set[str]:
    """The files of the store that the records name; those that a repaired copy repeats are of its source's store."""
    records = find_records(log)
    made = records[0].record if records and records[0].offset == 0 else None
    own = (p.record for p in records if p.record and (made is None or p.record.session_id == made.session_id))
    return {file for record in own for file in record.stored or ()}


def _of_row(log: Log, entry: Entry) -> Iterator[Finding]:
    raw = log.raw(entry)
    wrong = wrong_bytes(raw)
    if wrong:
        yield Finding("bad-bytes", entry.offset, wrong)
    if entry.size > LONG_LINE_BYTES:
        yield Finding("long-line", entry.offset, _bulk(raw))
    if entry.type not in ("user", "assistant"):
        return
    message = log.body(entry).get("message") if not entry.outlines or b'"thinking"' in raw else None
    content = mapping(message).get("content")
    if not entry.uuid or (not entry.outlines and not isinstance(content, str | list)):
        yield Finding("odd-row", entry.offset, f"a row of type {entry.type} without an id or without content")
    if entry.type == "assistant" and isinstance(content, list) and any(map(_unsigned, content)):
        yield Finding("unsigned-thinking", entry.offset, f"{entry.uuid}: thinking without a signature; it is not sent")


def _unsigned(block: JSON) -> bool:
    return isinstance(block, dict) and block.get("type") == "thinking" and not block.get("signature")


def _bulk(raw: bytes) -> str:
    """How long a line is, and which field makes it so."""
    try:
        parts = {name: len(memoryview(part)) for name, part in _decode_parts(raw).items()}
    except UNDECODABLE:
        return f"a line of {len(raw):,} bytes"
    name = max(parts, key=lambda key: parts[key])
    return f"a line of {len(raw):,} bytes, {parts[name]:,} of them in {name}"


def _lines(log: Log, offsets: Iterable[int]) -> dict[int, int]:
    """The physical line number, from 1, of each offset (in ascending order), in one pass over the file."""
    lines: dict[int, int] = {}
    count, at = 1, 0
    for offset in offsets:
        count += sum(piece.count(b"\n") for piece in log.pieces(at, offset))
        at = offset
        lines[offset] = count
    return lines
