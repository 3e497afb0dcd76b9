"""What fills a context, named as a person would find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.facts.text import cut, one_line
from core.model import JSON, Block, Message, block_text, call_id, tool_results, tool_uses

_WORDS = {
    "prompt": "a prompt",
    "response": "a response",
    "summary": "the summary",
    "meta": "a note of the client",
    "command": "a local command",
    "attachment": "an attachment",
}
_NAMES = ("file_path", "notebook_path", "path", "url", "command", "pattern")
"""Fields of a call that say what it was about."""
_CHARS = 60


def largest(messages: Sequence[Message], sizes: Sequence[int]) -> list[tuple[str, int]]:
    """The messages by size, the largest first: what each is, and its size."""
    calls = calls_of(messages)
    named = [(named_message(m, calls), n) for m, n in zip(messages, sizes, strict=True)]
    return sorted(named, key=lambda part: -part[1])


def calls_of(messages: Sequence[Message]) -> dict[str, Block]:
    """All tool calls, by id."""
    return {call_id(b): b for m in messages for b in tool_uses(m)}


def named_message(message: Message, calls: Mapping[str, Block]) -> str:
    """What a message is: for the results of tools, of which call the largest of them is."""
    results = tool_results(message)
    if not results:
        return _WORDS.get(message.kind, "a result without its call")
    call = calls.get(call_id(max(results, key=lambda b: len(block_text(b)))), {})
    return f"the result of {call.get('name') or 'a tool'}{_about(call.get('input'))}"


def _about(given: JSON) -> str:
    names = (given.get(key) for key in _NAMES) if isinstance(given, dict) else ()
    said = next((name for name in names if isinstance(name, str) and name), "")
    return f" ({cut(one_line(said), _CHARS)})" if said else ""
