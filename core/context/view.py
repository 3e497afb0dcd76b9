"""What the model sees: the active rows as messages, and those messages as the API takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from core.context.dialect import NEWEST, Dialect
from core.model import (
    JSON,
    REMINDER,
    Block,
    Kind,
    Message,
    Role,
    Usage,
    call_id,
    is_thinking,
    mapping,
    mappings,
    text_block,
    tool_results,
)
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.formats.messages import usage_of
from core.transcript.note import KEY
from core.transcript.reader import Log

INTERRUPTED = "[Tool call interrupted: no result was recorded.]"
"""Stands in for the result of a call at the very end that has none; the API refuses a call without a result."""
_COMMAND_MARKS = (
    "<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>",
    "<local-command-caveat>", "<bash-input>", "<bash-stdout>",
)  # fmt: skip
_META_MARKS = ("<system-reminder>", "<task-notification>", "[Request interrupted by user")


def messages_of(log: Log, chain: Chain, dialect: Dialect = NEWEST) -> tuple[Message, ...]:
    """The active rows as messages: one for each user row, one for each response, its rows joined in file order.

    Thinking without a signature is left out: the API refuses it.
    """
    parts: list[list[Message]] = []
    place: dict[str, int] = {}
    loaded: set[str] = set()
    for entry in _in_sending_order(chain.entries) if dialect.results_in_file_order else chain.entries:
        if not entry.may_be_sent:
            continue
        row = log.body(entry)
        loaded |= _loaded_tools(row)
        message = _message(entry, row, dialect)
        if message is None:
            continue
        at = place.get(message.response_id) if message.response_id else None
        if at is not None:
            parts[at].append(message)
            continue
        if message.response_id:
            place[message.response_id] = len(parts)
        parts.append([message])
    out = [_joined(rows) if len(rows) > 1 else rows[0] for rows in parts]
    if loaded and dialect.checks_tool_references:
        out = [_with_known_references(m, loaded) for m in out]
    return tuple(out)


def _in_sending_order(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Parallel results of one response in file order (the chain has those off the direct path first)."""
    response = {t: e.response_id for e in entries if e.type == "assistant" for t in e.tools}
    slots: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        if entry.type == "user" and entry.tools and (key := response.get(entry.tools[0])):
            slots.setdefault(key, []).append(at)
    out = list(entries)
    for places in slots.values():
        results = [entries[k] for k in places]
        if any(after.parent != before.uuid for before, after in pairwise(results)):
            for at, entry in zip(places, sorted(results, key=lambda e: e.offset), strict=True):
                out[at] = entry
    return out


def _message(entry: Entry, row: dict[str, JSON], dialect: Dialect) -> Message | None:
    if entry.type == "attachment":
        return _attachment(entry, row, dialect)
    if entry.type == "system":
        return _local_command(entry, row, dialect)
    message = row.get("message")
    blocks = _blocks(message.get("content") if isinstance(message, dict) else None)
    if entry.type == "assistant":
        if isinstance(message, dict) and message.get("content") == []:
            blocks = _text("(no content)")
        blocks = tuple(b for b in blocks if b.get("type") != "thinking" or b.get("signature"))
        return Message(
            "assistant",
            "response",
            blocks,
            (entry.uuid,),
            entry.response_id,
            entry.model,
            entry.usage,
            entry.timestamp,
            usage_of(mapping(mapping(row.get(KEY)).get("usage"))) if entry.projected else None,
        )
    kind = _user_kind(entry, blocks)
    if row.get("ownNote") is True and dialect.notes_are_reminders:
        blocks = tuple(_reminder(b) for b in blocks)
    role: Role = "system" if _is_notification(row) and dialect.notifications_are_system else "user"
    return Message(role, kind, blocks, (entry.uuid,), timestamp=entry.timestamp)


def _local_command(entry: Entry, row: dict[str, JSON], dialect: Dialect) -> Message | None:
    text = row.get("content")
    if not isinstance(text, str) or (row.get("isDisplayOnly") is True and dialect.hides_display_only):
        return None
    return Message("user", "command", _text(text), (entry.uuid,), timestamp=entry.timestamp)


def _is_notification(row: dict[str, JSON]) -> bool:
    origin = row.get("origin")
    return isinstance(origin, dict) and origin.get("kind") == "task-notification"


def _reminder(block: Block) -> Block:
    text = block.get("text")
    return {**block, "text": REMINDER.format(text)} if isinstance(text, str) else block


def _loaded_tools(row: dict[str, JSON]) -> set[str]:
    """Names of the tools whose definitions the client recorded as loaded."""
    attachment = row.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "deferred_tools_record":
        return set()
    entries = attachment.get("entries")
    named = [e.get("name") for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    return {n for n in named if isinstance(n, str)}


def _with_known_references(message: Message, loaded: set[str]) -> Message:
    if message.kind != "results":
        return message
    return replace(message, content=tuple(_known_references(b, loaded) for b in message.content))


def _known_references(block: Block, loaded: set[str]) -> Block:
    content = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(content, list):
        return block
    kept = [
        c
        for c in content
        if not (isinstance(c, dict) and c.get("type") == "tool_reference" and c.get("tool_name") not in loaded)
    ]
    return {**block, "content": kept}


def _user_kind(entry: Entry, blocks: Sequence[Block]) -> Kind:
    if entry.summary:
        return "summary"
    if entry.tools:
        return "results"
    if entry.meta:
        return "meta"
    texts = [t for b in blocks if isinstance(t := b.get("text"), str)]
    if texts and all(t.lstrip().startswith(_COMMAND_MARKS) for t in texts):
        return "command"
    if texts and all(t.lstrip().startswith(_META_MARKS) for t in texts) and len(texts) == len(blocks):
        return "meta"
    return "prompt"


def _attachment(entry: Entry, row: dict[str, JSON], dialect: Dialect) -> Message | None:
    rendered, attachment = row.get("rendered"), row.get("attachment")
    if not isinstance(rendered, list) or not isinstance(attachment, dict):
        return None
    blocks = tuple(b for item in rendered if isinstance(item, dict) for b in _blocks(item.get("content")))
    role: Role = "user" if row.get("renderedRole") == "user" else "system"
    kind: Kind = "attachment"
    if attachment.get("type") == "queued_command":
        if not dialect.sends_queued:
            return None
        role, kind, blocks = "user", "prompt", tuple(_bare(b) for b in blocks)
    return Message(role, kind, blocks, (entry.uuid,), timestamp=entry.timestamp) if blocks else None


def _bare(block: Block) -> Block:
    """A queued prompt goes out beside the tool results, without the wrapper that it is recorded in."""
    text = block.get("text")
    before, _, after = REMINDER.partition("{}")
    return {**block, "text": text.removeprefix(before).removesuffix(after)} if isinstance(text, str) else block


def _text(text: str) -> tuple[Block, ...]:
    return (text_block(text),)


def _blocks(content: JSON) -> tuple[Block, ...]:
    return _text(content) if isinstance(content, str) else tuple(mappings(content))


def _joined(rows: Sequence[Message]) -> Message:
    """One response of its rows; of their figures the last one that counts anything."""
    return replace(
        rows[0],
        content=tuple(b for row in rows for b in row.content),
        uuids=tuple(uuid for row in rows for uuid in row.uuids),
        model=next((row.model for row in rows if row.model), ""),
        usage=_last_counted([row.usage for row in rows]),
        charged=_last_counted([row.charged for row in rows]),
        timestamp=rows[-1].timestamp,
    )


def _last_counted(figures: Sequence[Usage | None]) -> Usage | None:
    return next((usage for usage in reversed(figures) if usage and usage.total_tokens), figures[0])


def api_messages(messages: Sequence[Message], dialect: Dialect = NEWEST) -> list[dict[str, JSON]]:
    """The messages as the API takes them: pairs whole, results behind their calls, no empty text, roles alternating.

    A call without a result in the middle is left out, at the end it gets an error result; a result without a call
    is left out.  System messages (state changes) stand in their place.
    """
    return [message for _, message in named_api_messages(messages, dialect)]


def named_api_messages(messages: Sequence[Message], dialect: Dialect = NEWEST) -> list[tuple[str, dict[str, JSON]]]:
    """The same, each with the id of the first message in it; "" of one that holds nothing but results."""
    merged: list[tuple[list[str], Role, list[Block]]] = []
    for uuid, role, blocks in _paired(messages, dialect):
        if not blocks:
            continue
        if merged and merged[-1][1] == role:
            merged[-1][0].append(uuid)
            merged[-1][2].extend(blocks)
        else:
            merged.append(([uuid], role, list(blocks)))
    if merged and merged[-1][1] == "assistant" and all(is_thinking(b) for b in merged[-1][2]):
        merged.pop()  # the API takes no response that ends in thinking
    return [
        (next(filter(None, uuids), ""), {"role": role, "content": list[JSON](blocks)}) for uuids, role, blocks in merged
    ]


def _paired(messages: Sequence[Message], dialect: Dialect) -> Iterable[tuple[str, Role, list[Block]]]:
    results: dict[str, Block] = {}
    for block in (b for m in messages for b in tool_results(m)):
        results.setdefault(call_id(block), block)
    place = {call: n for n, call in enumerate(results)}
    open_at = _open_end(messages) if dialect.completes_last_call else None
    used: set[str] = set()
    for i, message in enumerate(messages):
        if message.role != "assistant":
            yield (
                message.uuid,
                message.role,
                [b for b in message.content if b.get("type") != "tool_result" and _worth(b)],
            )
            continue
        blocks: list[Block] = []
        answers: dict[str, Block] = {}
        for block in filter(_worth, message.content):
            if block.get("type") == "tool_use":
                call = call_id(block)
                if not call or call in used or (call not in results and i != open_at):
                    continue
                used.add(call)
                answers[call] = results.get(call) or _interrupted(call)
            blocks.append(block)
        yield message.uuid, "assistant", blocks
        in_order = sorted(answers, key=lambda call: place.get(call, len(place)))  # what is made up stands last
        yield "", "user", [answers[call] for call in in_order]


def _open_end(messages: Sequence[Message]) -> int | None:
    """The index of the last response if no prompt came after it: its open calls were interrupted."""
    last = max((i for i, m in enumerate(messages) if m.role == "assistant"), default=None)
    if last is None or any(m.kind == "prompt" for m in messages[last + 1 :]):
        return None
    return last


def _interrupted(call: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}


def _worth(block: Block) -> bool:
    text = block.get("text")
    return not (block.get("type") == "text" and isinstance(text, str) and not text.strip())
