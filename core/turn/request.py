"""The next request of a session, as the Messages API takes it: built from a scene, byte for byte the same each time.

What is sent again must not change, or the cache behind the change is lost: blocks stay as they were recorded, edits
stay at their places, and only the cache marks move with the end of the conversation.  Nothing here opens a socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.context.decisions import CacheEdited, State
from core.context.dialect import NEWEST, Dialect
from core.context.tokens.cost import CacheLife
from core.context.view import api_messages
from core.errors import InputError
from core.model import (
    JSON,
    Block,
    Message,
    call_id,
    is_thinking,
    mapping,
    mappings,
    text_block,
    tool_results,
    tool_uses,
)
from core.stages.base import Scene
from core.stages.microcompact import Form
from core.stages.results import tool_results_of
from core.stages.verdict import LIFE, time_of

MAX_TOKENS = 20_000
"""What a request leaves room for: the levels of a window count on it, and calls without streaming end near 21,000."""
BEGINNING_GONE = "[The beginning of this conversation is not there any more.]"


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """How a request is made; everything else is the session's."""

    max_tokens: int = MAX_TOKENS
    fixed_life: CacheLife | None = "5m"
    """How long system prompt and tools stay in the cache; None: not marked."""
    message_life: CacheLife | None = "5m"
    """The same for the conversation; not longer than the former."""
    edits: Form = "content"
    """How the endpoint is told of results that the server deletes; with "content" it is not."""
    tool_choice: Block | None = None
    """The `tool_choice` parameter; it goes along with tools only."""
    thinking: Block | None = None
    """The `thinking` parameter; with it, old thinking is cleared once the cache is cold (not with "content")."""
    system_messages: bool = True
    """Whether the model takes system messages in the middle; else they are sent as the user's."""
    dialect: Dialect = NEWEST


def build(
    scene: Scene,
    system: str | Sequence[Block],
    tools: Sequence[Block],
    options: RequestOptions | None = None,
    front: Sequence[Message] = (),
) -> dict[str, JSON]:
    """The body of the next request; keys in a fixed order, system prompt and tools left out where there are none.

    `front` stands before the history, but behind a compaction that the API itself made: it drops what is before one.
    Pairs are whole, roles alternate, no text is empty; unsigned thinking, and thinking behind a change, is left out.
    Raises `InputError` for cache lives that the API refuses.
    """
    how = options or RequestOptions()
    if how.message_life == "1h" and how.fixed_life == "5m":
        raise InputError("the cache of the messages cannot outlive that of the system prompt", "give both one hour")
    messages = _opened(_sendable(scene, how, front))
    body: dict[str, JSON] = {"model": scene.model.id, "max_tokens": how.max_tokens}
    if tools:
        body["tools"] = _marked_last(tools, how.fixed_life)
    if blocks := blocks_of(system):
        body["system"] = _marked_last(blocks, how.fixed_life)
    body["messages"] = _marked_messages(messages, how.message_life)
    if how.tool_choice is not None and tools:
        body["tool_choice"] = how.tool_choice
    if how.thinking is not None:
        body["thinking"] = how.thinking
    if edits := _context_edits(scene, how):
        body["context_management"] = {"edits": edits}
    return body


def server_cleared_tokens(response: Mapping[str, JSON]) -> int:
    """What the server says that it deleted of the prompt of a response, in tokens; 0 where it says nothing.

    `usage.cache_deleted_input_tokens` for pinned edits, `context_management.applied_edits` for the public ones.
    """
    deleted = mapping(response.get("usage")).get("cache_deleted_input_tokens")
    applied = mappings(mapping(response.get("context_management")).get("applied_edits"))
    counts = [edit.get("cleared_input_tokens") for edit in applied]
    return sum(n for n in (deleted, *counts) if isinstance(n, int))


def blocks_of(*system: str | Sequence[Block]) -> list[Block]:
    """The blocks of a system prompt that is given in parts; nothing for empty ones."""
    return [b for part in system for b in ([text_block(part)] if isinstance(part, str) else part) if b.get("text")]


def _sendable(scene: Scene, how: RequestOptions, front: Sequence[Message]) -> list[dict[str, JSON]]:
    messages = [_signed(m) for m in scene.view().messages]
    at = 1 if messages and _is_compaction(messages[0].role, messages[0].content) else 0
    messages[at:at] = front
    if how.edits == "pinned":
        messages = _pinned(messages, scene.state)
    if not how.system_messages:
        messages = [replace(m, role="user") if m.role == "system" else m for m in messages]
    return api_messages([replace(m, content=tuple(_unmarked(b) for b in m.content)) for m in messages], how.dialect)


def _opened(messages: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The messages, begun by the user: the API takes nothing else in front, but for a compaction of its own."""
    first = messages[0] if messages else {}
    if first.get("role") != "assistant" or _is_compaction("assistant", first.get("content")):
        return messages
    return [{"role": "user", "content": [text_block(BEGINNING_GONE)]}, *messages]


def _is_compaction(role: str, content: object) -> bool:
    head = content[0] if isinstance(content, (list, tuple)) and content else None
    return role == "assistant" and isinstance(head, dict) and head.get("type") == "compaction"


def _signed(message: Message) -> Message:
    kept = tuple(b for b in message.content if b.get("type") != "thinking" or b.get("signature"))
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def _unmarked(block: Block) -> Block:
    """The block without cache marks of whoever sent it before: there may be four in all."""
    content = block.get("content")
    if isinstance(content, list) and any(isinstance(b, dict) and "cache_control" in b for b in content):
        block = {**block, "content": [_unmarked(b) if isinstance(b, dict) else b for b in content]}
    return {k: v for k, v in block.items() if k != "cache_control"} if "cache_control" in block else block


def _pinned(messages: Sequence[Message], state: State) -> list[Message]:
    """Every result can be referred to, from its first sending on; each edit stays where it was made."""
    edits: dict[int, list[Block]] = {}
    for edit in state.cache_edits:
        there = [i for i, m in enumerate(messages) if any(call_id(b) in edit.ids for b in tool_results(m))]
        if there:
            edits.setdefault(_home(messages, edit, there[-1]), []).append(_cache_edit(edit, messages))
    return [
        replace(m, content=(*(_referable(b) for b in m.content), *edits.get(i, ()))) for i, m in enumerate(messages)
    ]


def _home(messages: Sequence[Message], edit: CacheEdited, newest: int) -> int:
    """Where an edit stands: where it was made, or at the newest result that it names if that message has gone."""
    return next((i for i, m in enumerate(messages) if m.uuid == edit.after), newest)


def _cache_edit(edit: CacheEdited, messages: Sequence[Message]) -> Block:
    there = {call_id(b) for m in messages for b in tool_results(m)}
    return {
        "type": "cache_edits",
        "edits": [{"type": "delete", "cache_reference": ident} for ident in edit.ids if ident in there],
    }


def _referable(block: Block) -> Block:
    return {**block, "cache_reference": call_id(block)} if block.get("type") == "tool_result" else block


def _mark(block: Block, life: CacheLife) -> Block:
    return {**block, "cache_control": {"type": "ephemeral", "ttl": life}}


def _marked_last(blocks: Sequence[Block], life: CacheLife | None) -> list[JSON]:
    """System prompt or tools, with one mark at their end."""
    bare: list[Block] = [_unmarked(b) for b in blocks]
    if bare and life is not None:
        bare[-1] = _mark(bare[-1], life)
    return [*bare]


def _marked_messages(messages: Sequence[dict[str, JSON]], life: CacheLife | None) -> list[JSON]:
    """Marks on the newest message and on the one that was the newest before: a lookup goes back 20 blocks at most."""
    out: list[JSON] = [*messages]
    if life is None or not messages:
        return out
    newest = len(messages) - 1
    before = next((i for i in range(newest - 1, -1, -1) if messages[i].get("role") != "assistant"), newest)
    for at in {newest: None, before: None}:
        out[at] = _marked_message(messages[at], life)
    return out


def _takes_mark(block: JSON) -> bool:
    return isinstance(block, dict) and block.get("type") != "cache_edits" and not is_thinking(block)


def _marked_message(message: dict[str, JSON], life: CacheLife) -> dict[str, JSON]:
    content = message["content"]
    assert isinstance(content, list)  # api_messages makes no others
    markable = [i for i, b in enumerate(content) if _takes_mark(b)]
    blocks: list[JSON] = [
        _mark(b, life) if isinstance(b, dict) and [i] == markable[-1:] else b for i, b in enumerate(content)
    ]
    return {**message, "content": blocks}


def _context_edits(scene: Scene, how: RequestOptions) -> list[JSON]:
    """Thinking first, the API wants it so."""
    messages = scene.view().messages
    edits: list[JSON] = []
    if how.thinking is not None and how.edits != "content":
        keep = _thinking_to_keep(messages, scene.now, LIFE[how.message_life or "5m"])
        kept: JSON = "all" if keep is None else {"type": "thinking_turns", "value": keep}
        edits.append({"type": "clear_thinking_20251015", "keep": kept})
    if how.edits == "public" and (clear := _clear_tool_uses(messages, scene.state.cleared_on_server)):
        edits.append(clear)
    return edits


def _thinking_to_keep(messages: Sequence[Message], now: datetime | None, life: timedelta) -> int | None:
    """The last thinking from before the cache was last cold, and all since then; None: it never was.

    What was cleared stays cleared: thinking that came back would change what is cached.
    """
    since_pause = 0
    sent = now  # when the request behind the message was made: at its newest message, or now
    open_end = now is None
    for message in reversed(messages):
        time = time_of(message)
        if message.kind != "response":
            sent, open_end = (time, False) if open_end and time else (sent, open_end)
            continue
        if time and sent and sent - time > life:
            return since_pause + 1
        since_pause += any(is_thinking(b) for b in message.content)
        sent, open_end = time, True
    return None


def _clear_tool_uses(messages: Sequence[Message], cleared: frozenset[str]) -> Block | None:
    """The public edit that clears just these: all tool uses up to the newest of them but those of other tools."""
    results = tool_results_of(messages)
    last = max((i for i, r in enumerate(results) if r.id in cleared), default=None)
    if last is None:
        return None
    keep = len(results) - 1 - last + _open_calls(messages, {r.id for r in results})
    left_out = sorted({r.name for r in results[:last] if r.id not in cleared})
    return {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": max(1, keep)},
        "keep": {"type": "tool_uses", "value": keep},
        "exclude_tools": [*left_out],
    }


def _open_calls(messages: Iterable[Message], answered: set[str]) -> int:
    return sum(call_id(b) not in answered for m in messages for b in tool_uses(m))
