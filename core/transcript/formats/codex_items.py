"""The response items of a Codex rollout, which are what its model saw, as messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from core.model import JSON, Block, Kind, Role, mapping, mappings, sequence, string, text_block
from core.transcript.formats.blocks import Messages, call_block, media_block, result_block, thinking_block
from core.transcript.formats.damage import Findings, loads

_INJECTED = (
    "# AGENTS.md",
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
)
"""How user texts begin that the client wrote itself."""
_SUMMARIES = frozenset({"compaction", "compaction_summary", "context_compaction"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_DROPPED = frozenset({"ghost_snapshot"})


class Grouper:
    """Joins items to messages: what the model wrote in a row is one response, outputs in a row are one message."""

    def __init__(self, messages: Messages, findings: Findings) -> None:
        self._messages = messages
        self._findings = findings
        self._role: Role = "assistant"
        self._blocks: list[Block] = []
        self._timestamp = ""

    def take(self, line: int, item: dict[str, JSON], timestamp: str) -> None:
        """Takes one item in."""
        kind = string(item.get("type"))
        if kind in ("message", "agent_message"):
            self._message(kind, item, timestamp)
        elif kind in _SUMMARIES:
            self.flush()
            self._messages.add("user", "summary", [{"type": "compaction", "content": None}], timestamp=timestamp)
        elif kind in _RESULTS:
            self._append("user", [_result(item)], timestamp)
        elif kind in _MODEL_ITEMS:
            self._append("assistant", [_MODEL_ITEMS[kind](item)], timestamp)
        elif kind not in _DROPPED:
            self._findings.add("unknown-type", line, f"an item of the unknown type {kind or '(none)'!r}")

    def flush(self) -> None:
        """Ends the message that is being built."""
        kind: Kind = "response" if self._role == "assistant" else "results"
        self._messages.add(self._role, kind, self._blocks, timestamp=self._timestamp)
        self._blocks = []

    def _append(self, role: Role, blocks: list[Block], timestamp: str) -> None:
        if role != self._role:
            self.flush()
        if not self._blocks:
            self._role, self._timestamp = role, timestamp
        self._blocks += blocks

    def _message(self, kind: str, item: dict[str, JSON], timestamp: str) -> None:
        blocks = _parts(item.get("content"))
        role = string(item.get("role"))
        if kind == "message" and role == "assistant":
            self._append("assistant", blocks, timestamp)
            return
        self.flush()
        if role in ("developer", "system"):
            self._messages.add("system", "meta", blocks, timestamp=timestamp)
            return
        first = string(blocks[0].get("text")).lstrip() if blocks else ""
        injected = kind == "agent_message" or first.startswith(_INJECTED)
        self._messages.add("user", "meta" if injected else "prompt", blocks, timestamp=timestamp)


def _parts(content: JSON) -> list[Block]:
    """The content of a message or an output; what is neither text nor image is kept as JSON text."""
    if isinstance(content, str):
        return [text_block(content)]
    blocks = []
    for part in mappings(content):
        if part.get("type") == "input_image":
            blocks.append(media_block("image", string(part.get("image_url"))))
        elif isinstance(part.get("text"), str):
            blocks.append(text_block(string(part["text"])))
        else:
            blocks.append(text_block(json.dumps(part, ensure_ascii=False)))
    return blocks


def _reasoning(item: dict[str, JSON]) -> Block:
    parts = mappings(item.get("summary")) + mappings(item.get("content"))
    return thinking_block("\n".join(text for p in parts if (text := string(p.get("text")))))


def _function_call(item: dict[str, JSON]) -> Block:
    """`arguments` is JSON text, a tool search's an object; what is neither is kept as text."""
    value = item.get("arguments")
    if isinstance(value, str):
        with suppress(ValueError):
            value = loads(value)
    name = string(item.get("name")) or "tool_search"
    return call_block(string(item.get("call_id")), name, value, "arguments")


def _custom_call(item: dict[str, JSON]) -> Block:
    return call_block(string(item.get("call_id")), string(item.get("name")), string(item.get("input")))


def _shell_call(item: dict[str, JSON]) -> Block:
    call = string(item.get("call_id")) or string(item.get("id"))
    return call_block(call, "local_shell", mapping(item.get("action")))


def _server_call(item: dict[str, JSON]) -> Block:
    """A call that the vendor's server answered by itself; an image that it made is not carried along."""
    name = string(item.get("type")).removesuffix("_call")
    value: Block = {"action": item.get("action") or item.get("revised_prompt")}
    return {"type": "server_tool_use", "id": string(item.get("id")), "name": name, "input": value}


def _result(item: dict[str, JSON]) -> Block:
    """An output as it was sent: text as it is, parts as blocks; the object of the oldest files by its content."""
    output = item.get("output")
    failed = False
    if isinstance(output, dict):
        failed = output.get("success") is False
        output = output.get("content")
    if "tools" in item and output is None:
        output = json.dumps(sequence(item["tools"]), ensure_ascii=False)
    return result_block(
        string(item.get("call_id")), output if isinstance(output, str) else _parts(output), error=failed
    )


_MODEL_ITEMS: dict[str, Callable[[dict[str, JSON]], Block]] = {
    "reasoning": _reasoning,
    "function_call": _function_call,
    "tool_search_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _shell_call,
    "web_search_call": _server_call,
    "image_generation_call": _server_call,
}
ITEM_TYPES = frozenset({"message", "agent_message", *_SUMMARIES, *_RESULTS, *_MODEL_ITEMS, *_DROPPED})
"""Every item type that is known; in the bare era an item is a line of its own."""
