"""Which rows the next request is made of: the leaf, the walk to its root, the boundary, the siblings.

Measured on four versions of the client: what it sends on resume is the rows from the newest leaf up to the last
boundary, with the parallel results that hang off that path, and with rows that a compaction kept in their old place
moved behind its summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.model import JSON
from core.transcript.entries import Entry
from core.transcript.reader import Log
from core.transcript.recover import Finding


@dataclass(frozen=True, slots=True)
class Chain:
    """The active rows of a transcript, in the order in which the model gets them.

    `boundary` is the compact boundary in front of them, if any.  `complete` is false when the walk left what was
    read of the file: then the whole file has to be read.
    """

    entries: tuple[Entry, ...]
    boundary: Entry | None = None
    leaf: Entry | None = None
    complete: bool = True
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Walk:
    log: Log
    rows: list[Entry]
    by_uuid: dict[str, int]
    parent: dict[int, int | None]
    """Index of each row's parent after re-linking; None for a root."""
    findings: list[Finding] = field(default_factory=list)
    complete: bool = True


def active_chain(log: Log) -> Chain:
    """The active chain of what was read; deterministic, and of the rows alone (timestamps never count)."""
    walk = _prepare(log)
    if not walk.rows:
        return Chain((), findings=tuple(walk.findings), complete=log.whole)
    _relink_kept(walk)
    leaf = _leaf(walk)
    entries, boundary = _cut(walk, _with_siblings(walk, _path(walk, leaf)))
    return Chain(tuple(walk.rows[i] for i in entries), boundary, walk.rows[leaf], walk.complete, tuple(walk.findings))


def _prepare(log: Log) -> _Walk:
    """Rows with a uuid, the last of each, without sidechains (unless there is nothing else: a subagent's own file)."""
    findings: list[Finding] = []
    linked = [e for e in log.entries if e.uuid]
    main = [e for e in linked if not e.sidechain]
    if any(e.on_chain for e in main):
        linked = main
    by_uuid: dict[str, int] = {}
    rows: list[Entry] = []
    for entry in linked:
        if entry.uuid in by_uuid:
            findings.append(Finding("duplicate-uuid", rows[by_uuid[entry.uuid]].offset, f"{entry.uuid}: the last row of that uuid counts"))
            by_uuid.pop(entry.uuid)
        by_uuid[entry.uuid] = len(rows)
        rows.append(entry)
    alive = sorted(by_uuid.values())
    rows = [rows[i] for i in alive]
    by_uuid = {e.uuid: i for i, e in enumerate(rows)}
    walk = _Walk(log, rows, by_uuid, {}, findings)
    for i, entry in enumerate(rows):
        walk.parent[i] = _parent(walk, i, entry)
    return walk


def _parent(walk: _Walk, i: int, entry: Entry) -> int | None:
    if not entry.parent:
        return None
    known = walk.by_uuid.get(entry.parent)
    if known is not None:
        return known
    if i == 0 or entry.is_boundary:
        return None
    walk.findings.append(Finding("missing-parent", entry.offset, f"{entry.uuid}: its parent is not in the file; the row before it stands in"))
    return i - 1


def _relink_kept(walk: _Walk) -> None:
    """Rows that the last boundary names as kept follow its summary (or the boundary) instead of their old parents."""
    at = next((i for i in range(len(walk.rows) - 1, -1, -1) if walk.rows[i].is_boundary), None)
    if at is None:
        return
    kept, anchor = _kept(walk, at)
    if not kept or anchor is None:
        return
    for child, parent in list(walk.parent.items()):
        if parent == anchor and child not in kept and child > at:
            walk.parent[child] = kept[-1]
    for before, row in zip([anchor, *kept], kept, strict=False):
        walk.parent[row] = before


def _kept(walk: _Walk, at: int) -> tuple[list[int], int | None]:
    metadata = walk.log.row(walk.rows[at]).get("compactMetadata")
    if not isinstance(metadata, dict):
        return [], None
    named, segment = metadata.get("preservedMessages"), metadata.get("preservedSegment")
    if isinstance(named, dict) and isinstance(named.get("uuids"), list):
        uuids = [u for u in named["uuids"] if isinstance(u, str)]
        present = [walk.by_uuid[u] for u in uuids if u in walk.by_uuid]
        missing = len(uuids) - len(present)
        if missing:
            walk.findings.append(Finding("preserved-not-in-file", walk.rows[at].offset, f"{missing} kept rows are not in the file"))
            walk.complete &= walk.log.whole
        return present, _index(walk, named.get("anchorUuid"))
    if isinstance(segment, dict):
        head, tail = _index(walk, segment.get("headUuid")), _index(walk, segment.get("tailUuid"))
        return _segment(walk, head, tail), _index(walk, segment.get("anchorUuid"))
    return [], None


def _segment(walk: _Walk, head: int | None, tail: int | None) -> list[int]:
    rows: list[int] = []
    seen: set[int] = set()
    at = tail
    while at is not None and at not in seen:
        rows.append(at)
        seen.add(at)
        if at == head:
            return rows[::-1]
        at = walk.parent[at]
    walk.complete &= walk.log.whole
    return []


def _index(walk: _Walk, uuid: JSON) -> int | None:
    return walk.by_uuid.get(uuid) if isinstance(uuid, str) else None


def _leaf(walk: _Walk) -> int:
    """The last row without children; the last `last-prompt` row may name another one of these."""
    parents = {_above(walk, i) for i, row in enumerate(walk.rows) if row.on_chain}
    childless = [i for i, row in enumerate(walk.rows) if row.on_chain and i not in parents]
    named = _named_leaf(walk.log)
    chosen = walk.by_uuid.get(named)
    if chosen is not None and chosen in childless:
        return chosen
    return childless[-1] if childless else len(walk.rows) - 1


def _above(walk: _Walk, i: int) -> int | None:
    """The nearest ancestor on the chain: rows of other types (progress) are passed through."""
    seen: set[int] = set()
    at = walk.parent[i]
    while at is not None and not walk.rows[at].on_chain and at not in seen:
        seen.add(at)
        at = walk.parent[at]
    return at


def _named_leaf(log: Log) -> str:
    """What the last `last-prompt` row since the last boundary names."""
    for entry in reversed(log.entries):
        if entry.type == "last-prompt":
            return entry.leaf
        if entry.is_boundary:
            break
    return ""


def _path(walk: _Walk, leaf: int) -> list[int]:
    """From the root to the leaf, boundaries and all."""
    path: list[int] = []
    seen: set[int] = set()
    at: int | None = leaf
    while at is not None:
        if at in seen:
            walk.findings.append(Finding("cycle", walk.rows[at].offset, f"{walk.rows[at].uuid}: its own ancestor"))
            break
        seen.add(at)
        path.append(at)
        at = walk.parent[at]
    return path[::-1]


def _cut(walk: _Walk, order: Sequence[int]) -> tuple[list[int], Entry | None]:
    """What follows the last boundary on the chain."""
    at = next((k for k in range(len(order) - 1, -1, -1) if walk.rows[order[k]].is_boundary), None)
    if at is None:
        walk.complete &= walk.log.whole
        return list(order), None
    return list(order[at + 1 :]), walk.rows[order[at]]


def _with_siblings(walk: _Walk, path: Sequence[int]) -> list[int]:
    """The path, with the other rows of its responses and the results of their calls (parallel calls branch the chain)."""
    on_path = set(path)
    responses = {walk.rows[i].response_id: i for i in path if walk.rows[i].response_id}
    calls = {t for i in path if walk.rows[i].type == "assistant" for t in walk.rows[i].tools}
    answered = {t for i in path if walk.rows[i].type == "user" for t in walk.rows[i].tools}
    extra: list[int] = []
    for i, row in enumerate(walk.rows):
        if i in on_path:
            continue
        if row.type == "assistant" and row.response_id in responses:
            extra.append(i)
            calls.update(row.tools)
        elif row.type == "user" and row.tools and calls.issuperset(row.tools) and not answered.issuperset(row.tools):
            extra.append(i)
            answered.update(row.tools)
    return _placed(walk, path, extra)


def _placed(walk: _Walk, path: Sequence[int], extra: Sequence[int]) -> list[int]:
    """Each extra row behind the last row of its response on the path, in file order."""
    if not extra:
        return list(path)
    last: dict[str, int] = {}
    home: dict[str, str] = {}
    for place, i in enumerate(path):
        row = walk.rows[i]
        if row.type == "assistant":
            last[row.response_id] = place
            home.update(dict.fromkeys(row.tools, row.response_id))
    by_place: dict[int, list[int]] = {}
    for i in extra:
        row = walk.rows[i]
        if row.type == "assistant":
            home.update(dict.fromkeys(row.tools, row.response_id))
        response = row.response_id or next(home[t] for t in row.tools if t in home)
        by_place.setdefault(last[response], []).append(i)
    return [k for place, i in enumerate(path) for k in (i, *by_place.get(place, ()))]
