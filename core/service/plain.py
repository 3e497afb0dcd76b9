"""A session as another model takes it, without the tools that it was led with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from core.api.endpoint import Endpoint
from core.context.view import api_messages
from core.model import JSON, Block, Message, block_text, call_id, text_block, tool_uses
from core.redact.values import redact_messages
from core.transcript.materialize import derived_id

_NO_TOOL = "A tool of the session. It cannot be used here."
_BLOCKS = ("text", "tool_use", "tool_result", "image", "document", "compaction")
"""What every request may hold; thinking is bound to another system prompt, the rest to tools of the server."""
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 128


def sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as another model takes them: no secrets, no thinking, no blocks of tools that are not there.

    Their usage was charged for another system prompt.
    """
    out: list[Message] = []
    for number, message in enumerate(redact_messages(messages)):
        blocks = tuple(_plain_block(b) for b in message.content if b.get("type") in _BLOCKS)
        uuids = message.uuids or (derived_id("asked", str(number)),)
        out.append(replace(message, content=blocks, usage=None, charged=None, uuids=uuids))
    return tuple(m for m in out if m.content)


def counted_tokens(messages: Sequence[Message], defined: Sequence[Block], model_id: str, endpoint: Endpoint) -> int:
    """The tokens of the messages as the API counts them, with the definitions of their tools; raises `ApiError`."""
    sent = [replace(m, role="user") if m.role == "system" else m for m in sendable(messages)]
    tools: JSON = [*tools_of(sent, defined)]
    return endpoint.count({"model": model_id, "tools": tools, "messages": [*api_messages(sent)]})


def _plain_block(block: Block) -> Block:
    """The block with names and ids that the API takes, and without references to tools."""
    content = block.get("content")
    if block.get("type") == "compaction":  # the block itself is signed for the conversation that it was made in
        return text_block(block_text(block))
    if block.get("type") == "tool_use":
        given = block.get("input")
        fields: JSON = given if isinstance(given, dict) else {"input": given}
        return {**block, "id": _plain(call_id(block)), "name": _plain(str(block.get("name"))), "input": fields}
    if block.get("type") != "tool_result":
        return block
    if isinstance(content, list):
        content = [i for i in content if isinstance(i, dict) and i.get("type") in _BLOCKS]
    return {**block, "tool_use_id": _plain(call_id(block)), "content": content or ""}


def _plain(name: str) -> str:
    return _NOT_PLAIN.sub("_", name)[:_NAME_CHARS]


def tools_of(messages: Sequence[Message], defined: Sequence[Block]) -> tuple[Block, ...]:
    """A definition for each tool that the session used: the API takes no calls of tools that it does not know."""
    known = {str(tool.get("name")): tool for tool in defined if "input_schema" in tool}
    names = dict.fromkeys(str(b["name"]) for m in messages for b in tool_uses(m))
    return tuple(known.get(name) or _undefined(name) for name in names if name)


def _undefined(name: str) -> Block:
    return {"name": name, "description": _NO_TOOL, "input_schema": {"type": "object"}}
