"""A compaction as rows that every version of the client resumes: boundary, summary, restored context, kept rows.

Measured on four versions: only a boundary cuts; timestamps must strictly increase (older versions choose the leaf by
them); the usage of a kept row must not carry the old size (the client would compact again at once); thinking is
bound to the messages before it and cannot stay.  Rows are written so that all versions send the same for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import msgspec

from core.model import JSON, Block, Message, call_id, tool_results
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.note import END_TYPE, KEY, Note
from core.transcript.reader import Log

_NAMESPACE = UUID("6f9b1f0e-3c55-5d0e-9a55-3a1f3a0c7d11")
"""Of all ids that are derived: the same compaction has the same ids, whenever it is run."""
_ENVELOPE = ("userType", "cwd", "version", "gitBranch", "slug")
_SINGLETONS = ("permission-mode", "mode", "agent-name", "tag", "pr-link")
"""Rows of which the last one counts; without `permission-mode` a session could not be resumed in its mode."""
_TITLES = ("ai-title", "custom-title")
"""The same for titles; a new session has one of its own."""
_VERSION_SPECIFIC = (
    "origin",
    "ownNote",
    "turnCompanion",
    "isDisplayOnly",
    "agentId",
    "rendered",
    "renderedRole",
    "attachment",
)
"""Marks that only some versions act on; what they stand for is written out in the content instead."""
_LONG_CHARS, _SHORT_CHARS = 1_000, 200
"""Of texts in what a client keeps beside a result that was replaced: longer ones become short, paths stay whole."""
_EPOCH, _END = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def derived_id(*parts: str) -> str:
    """A stable id made of what it stands for."""
    return str(uuid5(_NAMESPACE, "\0".join(parts)))


@dataclass(frozen=True, slots=True)
class Compacted:
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
    log: Log
    plan: Compacted
    envelope: dict[str, JSON]
    place: dict[str, JSON]
    answered: frozenset[str]
    parent: str | None = None
    clock: datetime = _EPOCH
    calls: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    def put(self, row: dict[str, JSON], uuid: str, at: datetime) -> dict[str, JSON]:
        """The row in its new place: behind the one before, later than it."""
        self.clock = max(at, self.clock + timedelta(milliseconds=1))
        link: dict[str, JSON] = {"uuid": uuid, "parentUuid": self.parent, "timestamp": _stamp(self.clock)}
        self.parent = uuid
        return {**row, **self.place, **link}


def materialize(log: Log, chain: Chain, plan: Compacted) -> list[bytes]:
    """The rows of the new history, in file order, without line ends."""
    leaf = chain.leaf
    assert leaf is not None  # nothing is compacted of an empty chain
    last = log.row(leaf)
    envelope = {k: last[k] for k in _ENVELOPE if k in last}
    answered = frozenset(call_id(b) for m in plan.kept for b in tool_results(m))
    writer = _Writer(log, plan, envelope, _place(plan, last), answered)
    order = _order(plan, chain)
    front = list(_boundary(writer, leaf))
    head = list(_kept(writer, [item for item in order if item[0] < plan.summary_at]))
    front += [*head, *_summary(writer, leaf)]
    anchor = writer.parent
    tail = list(_kept(writer, [item for item in order if item[0] >= plan.summary_at]))
    if plan.in_place and all(row["uuid"] != leaf.uuid for row in (*head, *tail)):
        tail.append(writer.put(_left_out(writer), leaf.uuid, writer.clock))  # a running client's next row hangs off it
    if plan.summary:
        front[0][KEY] = msgspec.to_builtins(Note(writer.parent or "", plan.keep_tokens, plan.overhead_tokens))
    if plan.in_place:
        # An older boundary of this file may name the same rows as kept: the last one that names them has them.
        # What it names follows the anchor: of a head and a tail that can be the head only.
        named: JSON = [row["uuid"] for row in head or tail]
        preserved: JSON = {"anchorUuid": front[0]["uuid"] if head else anchor, "uuids": named, "allUuids": named}
        front[0]["compactMetadata"] = {**_metadata(plan), "preservedMessages": preserved}
    rows = [*front, *tail, *_singletons(log, plan, writer.parent or "")]
    if plan.in_place:
        rows.append({"type": END_TYPE, "sessionId": writer.place["sessionId"]})
    return [msgspec.json.encode(row) for row in rows]


def _place(plan: Compacted, last: dict[str, JSON]) -> dict[str, JSON]:
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
    summary = {**writer.envelope, **_user(plan.summary), "isCompactSummary": True, **mark}
    yield writer.put(summary, _derived(plan, leaf, "summary"), writer.clock)
    for n, text in enumerate(plan.restored):
        note = {**writer.envelope, **_user(text), "isMeta": True}
        yield writer.put(note, _derived(plan, leaf, "restored", str(n)), writer.clock)


def _derived(plan: Compacted, leaf: Entry, *name: str) -> str:
    return derived_id(*name, plan.session_id, leaf.uuid, plan.summary)


def _metadata(plan: Compacted) -> dict[str, JSON]:
    counted: dict[str, JSON] = {"messagesSummarized": len(plan.gone)} if plan.direction else {}
    return {"trigger": "manual", "preTokens": plan.tokens_before, "postTokens": plan.tokens_after, **counted}


def _user(content: JSON) -> dict[str, JSON]:
    return {"type": "user", "message": {"role": "user", "content": content}}


def _kept(writer: _Writer, order: Sequence[tuple[int, Entry | None]]) -> Iterator[dict[str, JSON]]:
    """The kept rows in the order in which they are sent, with those between them that are not sent but stay."""
    for place, entry in order:
        message = writer.plan.kept[place]
        if entry is None:
            stand_in = {**writer.envelope, **_user(list[JSON](message.content)), "isMeta": True}
            yield writer.put(stand_in, message.uuid, _time(message.timestamp))
        elif row := _row(writer, place, message if entry.uuid in message.uuids else None, entry):
            yield writer.put(row, entry.uuid, _time(entry.timestamp))


def _order(plan: Compacted, chain: Chain) -> list[tuple[int, Entry | None]]:
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


def _row(writer: _Writer, place: int, message: Message | None, entry: Entry) -> dict[str, JSON] | None:
    plan, row = writer.plan, writer.log.row(entry)
    others_stay = plan.in_place or not plan.summary
    # Damaged files have such rows: of a message that is summarised, behind one that is kept.  Errors that the client
    # made up are no messages either, but clients up to 1.0 send them.
    summarised = plan.summary and message is None and entry.type in ("user", "assistant")
    # A row of an unknown type on the chain, progress too, ends it for clients up to 2.0.
    stays = others_stay and entry.on_chain and not summarised
    new: dict[str, JSON] | None = row if stays else None
    if place < plan.changed_from and entry.on_chain:
        (writer.calls if entry.type == "assistant" else writer.results).update(entry.tools)
        return row
    if message is not None and message.kind == "response":
        new = _response_row(writer, row, plan.prompt_tokens[place])
    elif message is not None and (entry.type != "attachment" or not others_stay):
        # Local commands are user rows to clients up to 2.0, which send no others of them.
        new = _user_row(writer, row, message)
    if new is None and plan.in_place:
        # The client joins the rows of one response wherever they stand: only a row of that uuid hides the old one.
        new = _left_out(writer)
    return new


def _left_out(writer: _Writer) -> dict[str, JSON]:
    """A row that is not sent, in the place of one whose id is needed."""
    row: dict[str, JSON] = {"type": "system", "subtype": "informational", "level": "info", "isMeta": False}
    return {**writer.envelope, **row, "content": "left out by a compaction"}


def _response_row(writer: _Writer, row: dict[str, JSON], prompt_tokens: int) -> dict[str, JSON] | None:
    message = row.get("message")
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    blocks: JSON = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kept: list[JSON] = (
        [b for b in blocks if isinstance(b, dict) and _stays(writer, b)] if isinstance(blocks, list) else []
    )
    if not kept:
        return None
    usage = message.get("usage")
    new: dict[str, JSON] = {**row, "message": {**message, "content": kept}}
    if isinstance(usage, dict):
        new["message"] = {**message, "content": kept, "usage": _scaled(usage, prompt_tokens)}
        new.setdefault(KEY, {"usage": usage})  # of a row that was kept before, the first
    return {k: v for k, v in new.items() if k not in _VERSION_SPECIFIC}


def _stays(writer: _Writer, block: Block) -> bool:
    if block.get("type") in ("thinking", "redacted_thinking"):
        return False
    if block.get("type") == "tool_use":
        call = call_id(block)
        if not call or call in writer.calls or not (writer.plan.in_place or call in writer.answered):
            return False
        writer.calls.add(call)
    return block.get("type") != "text" or bool(str(block.get("text") or "").strip())


def _user_row(writer: _Writer, row: dict[str, JSON], message: Message) -> dict[str, JSON] | None:
    if message.role == "system" and message.kind == "attachment":
        return None
    blocks: list[JSON] = []
    for block in message.content:
        if block.get("type") == "tool_result":
            call = call_id(block)
            if call not in writer.calls or call in writer.results:
                continue
            writer.results.add(call)
        blocks.append(block)
    if not blocks:
        return None
    old = row.get("message")
    same = (
        isinstance(old, dict)
        and isinstance(old.get("content"), str)
        and blocks == [{"type": "text", "text": old["content"]}]
    )
    base = row if row.get("type") == "user" else writer.envelope
    new = {**base, **({} if same else _user(blocks))}
    if "toolUseResult" in new and _are_replaced(blocks, old):
        new["toolUseResult"] = _shortened(new["toolUseResult"])
    # In place the mark of a task's note stays: clients that know it send the row as a system message.
    return {k: v for k, v in new.items() if k not in _VERSION_SPECIFIC or (k == "origin" and writer.plan.in_place)}


def _are_replaced(blocks: list[JSON], old: JSON) -> bool:
    """Whether one of the results has another content than in the old message."""
    content = old.get("content") if isinstance(old, dict) else None
    before = {call_id(b): b.get("content") for b in _blocks(content)}
    results = [b for b in _blocks(blocks) if b.get("type") == "tool_result"]
    return any(b.get("content") != before.get(call_id(b)) for b in results)


def _blocks(content: JSON) -> list[Block]:
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _shortened(value: JSON) -> JSON:
    """The value with its keys and types, without its long texts: clients show it, and need none of it to resume."""
    match value:
        case str() if len(value) > _LONG_CHARS:
            return value[:_SHORT_CHARS]
        case list():
            return [_shortened(item) for item in value]
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
    return value


def _scaled(usage: dict[str, JSON], prompt_tokens: int) -> dict[str, JSON]:
    """The usage of a kept response as if its request had been the projected one, nothing of it cached."""
    kept = {k: v for k, v in usage.items() if k not in ("cache_creation", "iterations")}
    return {**kept, "input_tokens": prompt_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def _singletons(log: Log, plan: Compacted, leaf: str) -> list[dict[str, JSON]]:
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
    try:
        time = datetime.fromisoformat(timestamp)
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return _EPOCH
    return time if _EPOCH <= time < _END else _EPOCH


def _stamp(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
