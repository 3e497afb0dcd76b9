"""A conversation as Markdown for a person to read."""

from __future__ import annotations

import json
from collections.abc import Sequence

from core.model import JSON, Block, Kind, Message, block_text, is_thinking, mapping, mappings, string
from core.transcript.formats.damage import without_surrogates
from core.transcript.page import fence, one_line

_HEADINGS: dict[Kind, str] = {
    "prompt": "User",
    "response": "Assistant",
    "results": "Results",
    "summary": "Summary",
    "meta": "From the client",
    "command": "Command",
    "attachment": "Attachment",
}


def write_markdown(messages: Sequence[Message], title: str = "", system: str = "") -> str:
    """A heading for each message, texts as they are, calls, results and thinking in fences; media by kind and size."""
    parts = [f"# {one_line(title) or 'Conversation'}"]
    if system.strip():
        parts += ["## System", _fenced(system)]
    previous = ""
    for message in messages:
        heading = "System" if message.role == "system" else _HEADINGS[message.kind]
        if message.timestamp:
            heading += f" ({one_line(message.timestamp)})"
        if heading != previous:
            parts.append(f"## {heading}")
            previous = heading
        parts += [text for block in message.content if (text := _block(block))]
    return without_surrogates("\n\n".join(parts)) + "\n"


def _block(block: Block) -> str:
    kind = string(block.get("type"))
    if kind == "text":
        return block_text(block).strip()
    if is_thinking(block):
        text = block_text(block)
        return f"Thinking:\n\n{_fenced(text)}" if text else "*Thinking that cannot be read.*"
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        call = json.dumps(block.get("input"), ensure_ascii=False, indent=2)
        return f"Call `{one_line(string(block.get('name')))}`:\n\n{_fenced(call, 'json')}"
    if kind.endswith("tool_result"):
        return _result(block)
    if kind == "compaction":
        return block_text(block).strip() or "*A summary that cannot be read.*"
    return _media(kind, block)


def _result(block: Block) -> str:
    media = [_media(string(b.get("type")), b) for b in mappings(block.get("content")) if not block_text(b)]
    text = block_text({**block, "type": "tool_result"})
    label = "Error:" if block.get("is_error") else "Result:"
    body = [_fenced(text)] if text else []
    return "\n\n".join([label, *body, *media] if body or media else [f"{label} *(empty)*"])


def _media(kind: str, block: Block) -> str:
    source = mapping(block.get("source"))
    if kind == "document" and source.get("type") == "text":
        title = one_line(string(block.get("title")))
        return f"Document{f' `{title}`' if title else ''}:\n\n{_fenced(string(source.get('data')))}"
    about: list[JSON] = [block.get("title"), source.get("media_type"), source.get("url")]
    words = [kind or "block", *(one_line(text) for item in about if (text := string(item)))]
    if size := len(string(source.get("data"))):
        words.append(f"{size * 3 // 4:,} bytes")
    return f"*[{', '.join(words)}]*"


def _fenced(text: str, language: str = "") -> str:
    line = fence(text)
    return f"{line}{language}\n{text.rstrip()}\n{line}"
