"""The rows of a transcript as a tree: which are in reach, and what each hangs off, as the client sees it.

Measured on four versions: the last row of an id counts; a row whose parent is unknown hangs off the row before it in
the file; rows that the last boundary names as kept follow its summary (or the boundary itself) instead of their old
parents, and what hung off the last of them still does; as soon as a file is large or any boundary has kept rows,
the rows before the last boundary are out of reach, but for those that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.model import JSON
from core.transcript.backwards import kept_uuids
from core.transcript.entries import Entry
from core.transcript.findings import Finding
from core.transcript.reader import Log


@dataclass(slots=True)
class Tree:
    """Rows in file order; places are indexes into them."""

    rows: list[Entry]
    places: dict[str, int]
    """By uuid."""
    parent: list[int | None]
    """The place of each row's parent; None for a root."""
    boundary: int = -1
    """The place of the last boundary of the file; -1 where there is none."""
    kept: Sequence[int] = ()
    """The places of the rows that the last boundary keeps, in their order."""
    complete: bool = True
    """False when a link leads to what was not read of the file and may be there."""
    findings: list[Finding] = field(default_factory=list)

    def in_reach(self) -> range:
        """The places of the rows that the next leaf can be among: those after the last boundary, and the kept ones."""
        return range(0 if self.kept else max(self.boundary, 0), len(self.rows))


def main_rows(entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, int]]:
    """Rows with a uuid, the last of each, without sidechains (unless there is nothing else: a subagent's own file).

    And the place of each among them, by its uuid.
    """
    rows = [e for e in entries if e.uuid and not e.sidechain]
    if not any(e.on_chain for e in rows):
        rows = [e for e in entries if e.uuid]
    places = _places(rows)
    if len(places) < len(rows):
        rows = [e for i, e in enumerate(rows) if places[e.uuid] == i]
        places = _places(rows)
    return rows, places


def _places(rows: Sequence[Entry]) -> dict[str, int]:
    return {row.uuid: i for i, row in enumerate(rows)}


def tree_of(log: Log) -> Tree:
    """The tree of the main conversation, or of a subagent's in its own file."""
    rows, places = main_rows(log.entries)
    bodies = {i: log.body(row) for i, row in enumerate(rows) if row.subtype and row.is_boundary}
    if not bodies:
        return _linked(Tree(rows, places, []), log, frozenset())
    boundary = max(bodies)
    tree = Tree(rows, places, [], boundary)
    kept = _kept(tree, log, bodies[boundary])
    dropped: frozenset[str] = frozenset()
    if log.large or any(map(kept_uuids, bodies.values())):
        front = sorted(i for i in kept if i < boundary)
        tree.rows = [rows[i] for i in front] + rows[boundary:]
        tree.places = _places(tree.rows)
        tree.boundary = len(front)
        if kept:
            names = {rows[i].uuid for i in kept}
            dropped = frozenset(row.uuid for row in rows[:boundary] if row.uuid not in names)
    _linked(tree, log, dropped, [rows[i].uuid for i in kept])
    _relink(tree, _anchor(bodies[boundary]))
    return tree


def _linked(tree: Tree, log: Log, dropped: frozenset[str], kept: Sequence[str] = ()) -> Tree:
    """Fills in the parents; a row whose parent was dropped hangs off the last kept one."""
    places = tree.places
    tree.kept = [places[uuid] for uuid in kept]
    tree.parent = [places.get(row.parent) for row in tree.rows]
    kept_places = frozenset(tree.kept)
    unknown = [i for i, at in enumerate(tree.parent) if at is None and tree.rows[i].parent]
    for i in unknown:
        row = tree.rows[i]
        if i == 0 or i == tree.boundary or row.is_boundary or i in kept_places:
            continue
        if row.parent in dropped:
            tree.parent[i] = tree.kept[-1]
            continue
        tree.parent[i] = i - 1
        # With kept rows, it makes a difference whether the parent is before the boundary or nowhere.
        tree.complete &= log.whole or not kept
        message = f"{row.uuid}: its parent is not there; the row before it stands in"
        tree.findings.append(Finding("missing-parent", row.offset, message))
    return tree


def _kept(tree: Tree, log: Log, boundary: dict[str, JSON]) -> list[int]:
    """The places of the rows that a boundary keeps, as far as they are in the file."""
    uuids = kept_uuids(boundary)
    places = [tree.places[uuid] for uuid in uuids if uuid in tree.places]
    if len(places) < len(uuids):
        message = f"{len(uuids) - len(places)} of the rows that a compaction kept are not in the file"
        tree.findings.append(Finding("preserved-not-in-file", tree.rows[tree.boundary].offset, message))
    elif uuids and not _names_all(boundary):
        segment = _segment(tree, *places)
        tree.complete &= log.whole or bool(segment)
        return segment
    return places


def _names_all(boundary: dict[str, JSON]) -> bool:
    metadata = boundary["compactMetadata"]
    named = metadata.get("preservedMessages") if isinstance(metadata, dict) else None
    return isinstance(named, dict) and isinstance(named.get("uuids"), list)


def _segment(tree: Tree, head: int, tail: int) -> list[int]:
    """The rows from the parents' end of a segment to its other one; none if no parents lead there."""
    path = [tail]
    seen = {tail}
    while path[-1] != head:
        row = tree.rows[path[-1]]
        at = tree.places.get(row.parent, path[-1] - 1) if row.parent else -1
        if at < 0 or at in seen:
            return []
        path.append(at)
        seen.add(at)
    return path[::-1]


def _anchor(boundary: dict[str, JSON]) -> JSON:
    """The row that the kept ones are put behind."""
    metadata = boundary.get("compactMetadata")
    for name in ("preservedMessages", "preservedSegment"):
        part = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(part, dict) and part.get("anchorUuid") is not None:
            return part["anchorUuid"]
    return None


def _relink(tree: Tree, anchor_uuid: JSON) -> None:
    anchor = tree.places.get(anchor_uuid) if isinstance(anchor_uuid, str) else None
    if not tree.kept or anchor is None:
        return
    kept = set(tree.kept)
    for child in range(tree.boundary + 1, len(tree.rows)):
        if tree.parent[child] == anchor and child not in kept:
            tree.parent[child] = tree.kept[-1]
    for before, place in zip([anchor, *tree.kept], tree.kept, strict=False):
        tree.parent[place] = before
