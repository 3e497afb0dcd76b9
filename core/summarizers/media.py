"""Images and documents in words: `[image: /w/3.png]`, `[document]`.

Whoever summarises gets no other: one that the API cannot process would make the way out of a full context fail too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.facts.scan import Call
from core.model import JSON, Block, Message, call_id, is_media, string, text_block, tool_uses


def in_words(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with a short text for each image and document, those within results too.

    It names the file that the call was about.  Messages without any are the same objects.
    """
    paths = {call_id(call): _path(call) for message in messages for call in tool_uses(message)}
    return tuple(_message(message, paths) for message in messages)


def _path(call: Block) -> str:
    given = call.get("input")
    return Call(0, "", given).path if isinstance(given, dict) else ""


def _message(message: Message, paths: Mapping[str, str]) -> Message:
    content = tuple(_block(block, paths) for block in message.content)
    same = all(new is old for new, old in zip(content, message.content, strict=True))
    return message if same else replace(message, content=content)


def _block(block: Block, paths: Mapping[str, str]) -> Block:
    if is_media(block):
        return _note(block, "")
    content = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(content, list) or not any(map(is_media, content)):
        return block
    path = paths.get(call_id(block), "")
    said: list[JSON] = [_note(item, path) if isinstance(item, dict) and is_media(item) else item for item in content]
    return {**block, "content": said}


def _note(block: Block, path: str) -> Block:
    name = path or string(block.get("title"))
    return text_block(f"[{block['type']}: {name}]" if name else f"[{block['type']}]")
