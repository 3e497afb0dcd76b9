"""Which rows the next request is made of: the leaf, the walk to its root, the siblings, the cut at the boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from core.transcript.entries import CHAIN_TYPES, Entry
from core.transcript.findings import Finding
from core.transcript.links import Tree, tree_of
from core.transcript.reader import Log, Reading, aopen_log, failing, open_log


@dataclass(frozen=True, slots=True)
class Chain:
    """The active rows of a transcript, in the order in which the model gets them.

    `boundary` is the compact boundary in front of them, if any.  `complete` is false when that cannot be told from
    the part of the file that was read: then it has to be read whole (`load` does).
    """

    entries: tuple[Entry, ...]
    boundary: Entry | None = None
    leaf: Entry | None = None
    complete: bool = True
    findings: tuple[Finding, ...] = ()


class Transcript(NamedTuple):
    """What was read of a Claude Code transcript, and its active chain."""

    log: Log
    chain: Chain


def load(path: Path, whole: bool = False, begun: Reading | None = None) -> Transcript:
    """A transcript and its active chain; no more is read than that takes, or all of it when `whole`.

    The chain is the same either way.  A reading that was `begun` is gone on with, if it is of this file.  The log has
    to be closed.  Raises `InputError` when the file cannot be read.
    """
    log = begun.finish() if begun and not whole and begun.is_of(path) else open_log(path, whole)
    with failing(log):
        chain = active_chain(log)
    if chain.complete:
        return Transcript(log, chain)
    log.close()
    log = open_log(path, whole=True)
    with failing(log):
        return Transcript(log, active_chain(log))


async def aload(path: Path, whole: bool = False) -> Transcript:
    """As `load`, for a server: see `aopen_log`."""
    import asyncio

    log = await aopen_log(path, whole)
    with failing(log):
        chain = await asyncio.to_thread(active_chain, log)
    if chain.complete:
        return Transcript(log, chain)
    log.close()
    log = await aopen_log(path, whole=True)
    with failing(log):
        return Transcript(log, await asyncio.to_thread(active_chain, log))


def active_chain(log: Log) -> Chain:
    """The active chain of what was read; deterministic, and of the rows alone (timestamps never count)."""
    tree = tree_of(log)
    if not tree.rows:
        return Chain(())
    leaf = _leaf(tree, _named_leaf(log.entries))
    path = _path(tree, leaf)
    order = _with_siblings(tree.rows, path)
    rows = [tree.rows[i] for i in order]
    cut = -1
    if tree.boundary >= 0:
        cut = next((k for k in reversed(range(len(rows))) if rows[k].is_boundary), -1)
    return Chain(
        tuple(rows[cut + 1 :]), rows[cut] if cut >= 0 else None, tree.rows[leaf], tree.complete, tuple(tree.findings)
    )


def _leaf(tree: Tree, named: str) -> int:
    """The last row without children; the last `last-prompt` row may name another one of these.

    Children that were written before the last boundary do not count: rows may be repeated behind it.
    """
    in_reach = tree.in_reach()
    on_chain = [row.type in CHAIN_TYPES for row in tree.rows]
    parents = _with_children(tree, on_chain, in_reach)
    chosen = tree.places.get(named)
    if chosen is not None and on_chain[chosen]:
        children = parents if chosen in in_reach else _with_children(tree, on_chain, range(len(tree.rows)))
        if chosen not in children:
            return chosen
    childless = (i for i in reversed(in_reach) if on_chain[i] and i not in parents)
    return next(childless, len(tree.rows) - 1)


def _with_children(tree: Tree, on_chain: Sequence[bool], children: Sequence[int]) -> set[int]:
    """The rows that others hang off, rows off the chain (progress) passed through."""
    found: set[int | None] = set()
    passed: set[int] = set()
    parent = tree.parent
    for child in children:
        if on_chain[child]:
            at = parent[child]
            while at is not None and not on_chain[at] and at not in passed:
                passed.add(at)
                at = parent[at]
            found.add(at)
    return found - {None}  # type: ignore[return-value]


def _named_leaf(entries: Sequence[Entry]) -> str:
    """What the last `last-prompt` row since the last boundary names."""
    for entry in reversed(entries):
        if entry.type == "last-prompt":
            return entry.leaf
        if entry.is_boundary:
            break
    return ""


def _path(tree: Tree, leaf: int) -> list[int]:
    """From the root to the leaf, boundaries and all."""
    path: list[int] = []
    seen: set[int] = set()
    at: int | None = leaf
    while at is not None:
        if at in seen:
            row = tree.rows[path[-1]]
            message = f"{row.uuid}: its parent hangs off it; it counts as a root"
            tree.findings.append(Finding("cycle", row.offset, message))
            break
        seen.add(at)
        path.append(at)
        at = tree.parent[at]
    return path[::-1]


def _with_siblings(rows: Sequence[Entry], path: list[int]) -> list[int]:
    """The path, with the other rows of its responses and the results of their calls: parallel calls branch the chain.

    Each stands behind the last row of its response on the path, in file order.
    """
    on_path = set(path)
    others = [i for i in range(len(rows)) if i not in on_path]
    spoken = [i for i in others if rows[i].response_id]
    results = [i for i in others if rows[i].tools and rows[i].type == "user"]
    if not (spoken or results):
        return path
    last, home, answered = _responses(rows, path, {tool for i in results for tool in rows[i].tools})
    extra: dict[int, list[int]] = {}
    for i in spoken:
        if rows[i].response_id in last:
            extra.setdefault(last[rows[i].response_id], []).append(i)
            home.update((tool, i) for tool in rows[i].tools)
    for i in results:
        tools = rows[i].tools
        if home.keys() >= set(tools) and not answered.issuperset(tools):
            call = home[tools[0]]
            extra.setdefault(last.get(rows[call].response_id, call), []).append(i)
            answered.update(tools)
    order: list[int] = []
    for i in path:
        order.append(i)
        if i in extra:
            order += sorted(extra[i])
    return order


def _responses(
    rows: Sequence[Entry], path: list[int], calls: set[str]
) -> tuple[dict[str, int], dict[str, int], set[str]]:
    """The last row on the path of each response; of the `calls`, the row that each is made in, and which are answered.

    All in one pass: a long session has a path of tens of thousands of rows.
    """
    last: dict[str, int] = {}
    home: dict[str, int] = {}
    answered: set[str] = set()
    for i in path:
        row = rows[i]
        if row.response_id:
            last[row.response_id] = i
        for tool in row.tools:
            if tool in calls:
                if row.type == "user":
                    answered.add(tool)
                else:
                    home[tool] = i
    return last, home, answered
