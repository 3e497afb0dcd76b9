"""A compaction as rows that every version of the client resumes: boundary, summary, restored context, kept rows.

Measured on four versions: only a boundary cuts; timestamps must strictly increase (older versions choose the leaf by
them); the last boundary that names a row as kept has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import msgspec

from core.model import JSON, Message, call_id, tool_results
from core.times import stamp, time_from
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.note import END_TYPE, KEY, Note
from core.transcript.reader import Log
from core.transcript.rewrite import Rewriter, user_row

_NAMESPACE = UUID("6f9b1f0e-3c55-5d0e-9a55-3a1f3a0c7d11")
"""Of all ids that are derived: the same compaction has the same ids, whenever it is run."""
_ENVELOPE = ("userType", "cwd", "version", "gitBranch", "slug")
_SINGLETONS = ("permission-mode", "mode", "agent-name", "tag", "pr-link")
"""Rows of which the last one counts; without `permission-mode` a session could not be resumed in its mode."""
_TITLES = ("ai-title", "custom-title")
"""The same for titles; a new session has one of its own."""
_EPOCH, _END = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def derived_id(*parts: str) -> str:
    """A stable id made of what it stands for."""
    return str(uuid5(_NAMESPACE, "\0".join(parts)))


@dataclass(frozen=True, slots=True)
class NewHistory:
    """What the new history is made of.

    `kept` are the messages that stay, or that stand in for others; `prompt_tokens` the projected size of the request
    before each of them; `restored` texts that the client shows to the model as its own notes.
    """

    session_id: str
    summary: str
    """Stands for all that was before; "" where nothing was summarised: then all other rows stay too."""
    kept: Sequence[Message]
    prompt_tokens: Sequence[int]
    tokens_before: int
    tokens_after: int
    summary_at: int = 0
    """How many of the kept messages stand in front of the summary, as they are."""
    gone: frozenset[str] = frozenset()
    """The rows of what the summary stands for."""
    direction: str = ""
    """Of a partial compaction, in the client's words: up_to or from."""
    restored: Sequence[str] = ()
    title: str = ""
    permission_mode: str = ""
    """The mode that the session was in; "" where it is not known."""
    changed_from: int = 0
    """Index of the first kept message that has another history than it had: from there on thinking and usage go."""
    dropped: frozenset[str] = frozenset()
    """Rows that neither stay nor are within what is summarised."""
    in_place: bool = False
    """Kept rows stay as complete as a running client needs them: its next row hangs off one of them."""
    keep_tokens: int = 0
    overhead_tokens: int = 0
    """These two are noted for the next compaction and the next measurement (see `Note`)."""


@dataclass(slots=True)
class _Writer:
    plan: NewHistory
    envelope: dict[str, JSON]
    place: dict[str, JSON]
    rewriter: Rewriter
    parent: str | None = None
    clock: datetime = _EPOCH

    def put(self, row: dict[str, JSON], uuid: str, at: datetime) -> dict[str, JSON]:
        """The row in its new place: behind the one before, later than it."""
        self.clock = max(at, self.clock + timedelta(milliseconds=1))
        link: dict[str, JSON] = {"uuid": uuid, "parentUuid": self.parent, "timestamp": stamp(self.clock)}
        self.parent = uuid
        return {**row, **self.place, **link}


def materialize(log: Log, chain: Chain, plan: NewHistory) -> list[bytes]:
    """The rows of the new history, in file order, without line ends."""
    leaf = chain.leaf
    assert leaf is not None  # nothing is compacted of an empty chain
    last = log.row(leaf)
    envelope = {k: last[k] for k in _ENVELOPE if k in last}
    answered = frozenset(call_id(b) for m in plan.kept for b in tool_results(m))
    rewriter = Rewriter(
        log, envelope, plan.in_place, bool(plan.summary), plan.changed_from, plan.prompt_tokens, answered
    )
    writer = _Writer(plan, envelope, _place(plan, last), rewriter)
    order = _order(plan, chain)
    front = list(_boundary(writer, leaf))
    head = list(_kept(writer, [item for item in order if item[0] < plan.summary_at]))
    if head and plan.summary_at == len(plan.kept):  # older clients would go on from what is gone, if that was later
        writer.clock = max(writer.clock, *(_time(entry.timestamp) for entry in chain.entries))
    front += [*head, *_summary(writer, leaf)]
    anchor = writer.parent
    tail = list(_kept(writer, [item for item in order if item[0] >= plan.summary_at]))
    if plan.in_place and all(row["uuid"] != leaf.uuid for row in (*head, *tail)):
        tail.append(
            writer.put(rewriter.left_out(), leaf.uuid, writer.clock)
        )  # a running client's next row hangs off it
    if plan.summary:
        front[0][KEY] = msgspec.to_builtins(Note(writer.parent or "", plan.keep_tokens, plan.overhead_tokens))
    if plan.in_place:
        # An older boundary of this file may name the same rows as kept: the last one that names them has them.
        # A row that is not named, and whose id stood before the boundary, counts as gone, and what hangs off it would
        # follow the last one that is named: behind a head, the summary has to be named too.
        named: JSON = [row["uuid"] for row in ((*front[1:], *tail) if head else tail)]
        preserved: JSON = {"anchorUuid": front[0]["uuid"] if head else anchor, "uuids": named, "allUuids": named}
        front[0]["compactMetadata"] = {**_metadata(plan), "preservedMessages": preserved}
        # Older clients go on from the latest leaf of a file, and other branches stay in it.
        stays = {row["uuid"] for row in (*front, *tail)}
        others = [_time(e.timestamp) for e in log.entries if e.on_chain and e.uuid not in stays]
        after = max(others, default=_EPOCH) + timedelta(milliseconds=1)
        [*front, *tail][-1]["timestamp"] = stamp(max(writer.clock, after))
    rows = [*front, *tail, *_singletons(log, plan, writer.parent or "")]
    if plan.in_place:
        rows.append({"type": END_TYPE, "sessionId": writer.place["sessionId"]})
    return [msgspec.json.encode(row) for row in rows]


def _place(plan: NewHistory, last: dict[str, JSON]) -> dict[str, JSON]:
    """Where a row belongs: a session of its own; in place, whatever the last row belongs to (a subagent, say)."""
    own: dict[str, JSON] = {"isSidechain": False, "entrypoint": "cli", "sessionId": plan.session_id}
    return own | {k: last[k] for k in ("isSidechain", "sessionId", "agentId") if k in last} if plan.in_place else own


def _boundary(writer: _Writer, leaf: Entry) -> Iterator[dict[str, JSON]]:
    plan = writer.plan
    if not (plan.summary or plan.in_place):
        return
    lead = timedelta(milliseconds=2 + len(plan.restored))
    start = _time(plan.kept[0].timestamp) - lead if plan.kept else _time(leaf.timestamp) + timedelta(milliseconds=1)
    boundary: dict[str, JSON] = {
        "logicalParentUuid": leaf.uuid,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
        "level": "info",
        "compactMetadata": _metadata(plan),
    }
    yield writer.put({**writer.envelope, **boundary}, _derived(plan, leaf, "boundary"), start)


def _summary(writer: _Writer, leaf: Entry) -> Iterator[dict[str, JSON]]:
    plan = writer.plan
    if not plan.summary:
        return
    mark: dict[str, JSON] = {"isVisibleInTranscriptOnly": True}
    if plan.direction:
        mark = {"summarizeMetadata": {"messagesSummarized": len(plan.gone), "direction": plan.direction}}
    summary = {**writer.envelope, **user_row(plan.summary), "isCompactSummary": True, **mark}
    yield writer.put(summary, _derived(plan, leaf, "summary"), writer.clock)
    for n, text in enumerate(plan.restored):
        note = {**writer.envelope, **user_row(text), "isMeta": True}
        yield writer.put(note, _derived(plan, leaf, "restored", str(n)), writer.clock)


def _derived(plan: NewHistory, leaf: Entry, *name: str) -> str:
    return derived_id(*name, plan.session_id, leaf.uuid, plan.summary)


def _metadata(plan: NewHistory) -> dict[str, JSON]:
    counted: dict[str, JSON] = {"messagesSummarized": len(plan.gone)} if plan.direction else {}
    return {"trigger": "manual", "preTokens": plan.tokens_before, "postTokens": plan.tokens_after, **counted}


def _kept(writer: _Writer, order: Sequence[tuple[int, Entry | None]]) -> Iterator[dict[str, JSON]]:
    """The kept rows in the order in which they are sent, with those between them that are not sent but stay."""
    for place, entry in order:
        message = writer.plan.kept[place]
        if entry is None:
            yield writer.put(writer.rewriter.new_row(place, message), message.uuid, _time(message.timestamp))
        elif row := writer.rewriter.row(place, message if entry.uuid in message.uuids else None, entry):
            yield writer.put(row, entry.uuid, _time(entry.timestamp))


def _order(plan: NewHistory, chain: Chain) -> list[tuple[int, Entry | None]]:
    """Each row with the place of the message that it belongs to, or stands behind; None for one that has no row yet.

    A row behind one that is gone is gone too.
    """
    places = {uuid: place for place, message in enumerate(plan.kept) for uuid in message.uuids}
    order: list[tuple[int, Entry | None]] = []
    place = -1 if plan.summary and not plan.summary_at else 0
    for entry in chain.entries:
        place = -1 if entry.uuid in plan.gone else places.get(entry.uuid, place)
        if place >= 0 and entry.uuid not in plan.dropped:
            order.append((place, entry))
    with_rows = {entry.uuid for entry in chain.entries}
    order += [(place, None) for place, message in enumerate(plan.kept) if message.uuid not in with_rows]
    return sorted(order, key=lambda item: item[0])


def _singletons(log: Log, plan: NewHistory, leaf: str) -> list[dict[str, JSON]]:
    """The newest of the rows that count once: in place, a list that reads the end of a file finds them there again."""
    types = (*_SINGLETONS, *(_TITLES if plan.in_place else ()))
    last = {e.type: e for e in log.entries if e.type in types or e.type == "last-prompt"}
    own: dict[str, JSON] = {} if plan.in_place else {"sessionId": plan.session_id}
    rows: list[dict[str, JSON]] = [{**log.row(last[t]), **own} for t in types if t in last]
    if plan.permission_mode:  # clients without such rows keep it in their prompts, of which the last may be gone
        mode: dict[str, JSON] = {"type": "permission-mode", "permissionMode": plan.permission_mode}
        rows = [{**mode, "sessionId": plan.session_id}, *(r for r in rows if r["type"] != "permission-mode")]
    if "last-prompt" in last:
        rows.append({**log.row(last["last-prompt"]), "leafUuid": leaf, **own})
    if plan.title and not plan.in_place:
        rows.append({"type": "custom-title", "customTitle": plan.title, "sessionId": plan.session_id})
        # Clients up to 2.0 look for the title here, and ask the model for one where there is none.
        rows.append({"type": "summary", "summary": plan.title, "leafUuid": leaf})
    return rows


def _time(timestamp: str) -> datetime:
    """The time of a row, in UTC; the earliest there is for what cannot be one."""
    time = time_from(timestamp)
    return time if time and _EPOCH <= time < _END else _EPOCH
