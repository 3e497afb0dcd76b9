"""Any conversation as Messages API JSON that the API accepts."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Sequence

from core.model import JSON, Block, Message, string, text_block
from core.transcript.formats.blocks import result_block
from core.transcript.formats.damage import without_surrogates

NO_RESULT = "No result of this call was recorded."
"""The result of a call that has none: the API refuses a call without one."""
NO_BEGINNING = "(The beginning of this conversation is not recorded.)"
"""The first message where an answer would come first: the API refuses that."""
OPAQUE_SUMMARY = "(The conversation up to here was summarised; only the client that wrote the summary can read it.)"
_ANSWER_ONLY = frozenset({"tool_use", "server_tool_use", "thinking", "redacted_thinking"})
_ID = re.compile(r"[^a-zA-Z0-9_-]")
_NO_NAME = "unknown_tool"
_MAX_NAME_CHARS = 128
"""Tool ids and names: letters, digits, `_` and `-`; names up to 128 characters."""


def write_messages(messages: Sequence[Message], system: str = "", tools: Sequence[Block] = ()) -> bytes:
    """`{system, messages, tools}` as UTF-8 JSON; the system prompt takes up the system messages at the beginning.

    Roles alternate and the user comes first; texts are not empty; every call has its result in the next message,
    before all else; ids of calls are unique.  Blocks are otherwise as they came.  Left out are results without a
    call, thinking that the API did not sign, and blocks that cannot stand in a message of their role.
    """
    start = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    texts = [system, *(string(b.get("text")) for m in messages[:start] for b in m.content)]
    body: dict[str, JSON] = {}
    if prompt := "\n\n".join(t for t in texts if t.strip()):
        body["system"] = prompt
    body["messages"] = list[JSON](_Outgoing().write(messages[start:]))
    if tools:
        body["tools"] = list[JSON](tools)
    text = json.dumps(body, ensure_ascii=False, indent=1)
    return without_surrogates(text).encode() + b"\n"


class _Outgoing:
    """Builds the list of messages; `_open` holds the calls of the last response that wait for a result."""

    def __init__(self) -> None:
        self._out: list[dict[str, JSON]] = []
        self._used: set[str] = set()
        self._open: dict[str, deque[str]] = {}
        self._results: list[Block] = []
        self._rest: list[Block] = []

    def write(self, messages: Sequence[Message]) -> list[dict[str, JSON]]:
        """The messages as the API takes them."""
        for message in messages:
            if message.role == "assistant":
                self._answer(message)
            else:
                for block in message.content:
                    self._user(block)
        self._end_user()
        first = self._out[0] if self._out else {}
        if first.get("role") == "assistant" and not _begins_with_compaction(first):
            self._out.insert(0, {"role": "user", "content": [text_block(NO_BEGINNING)]})
        return self._out

    def _user(self, block: Block) -> None:
        match block.get("type"):
            case "tool_result":
                waiting = self._open.get(string(block.get("tool_use_id")))
                if waiting:
                    self._results.append({**block, "tool_use_id": waiting.popleft(), **_whole_result(block)})
            case "compaction" if not block.get("content"):
                self._rest.append(text_block(OPAQUE_SUMMARY))
            case kind if string(kind) not in _ANSWER_ONLY and _is_worth(block):
                self._rest.append(block)

    def _answer(self, message: Message) -> None:
        """Appends an answer; one right behind another becomes part of it, so that calls keep the results of both."""
        blocks = [b for b in message.content if b.get("type") != "tool_result" and _is_worth(b)]
        answered = {string(b.get("tool_use_id")) for b in blocks if string(b.get("type")).endswith("_tool_result")}
        blocks = [b for b in blocks if b.get("type") != "server_tool_use" or string(b.get("id")) in answered]
        if not blocks:
            return
        if self._results or self._rest:
            self._end_user()
        content = [self._call(b) if b.get("type") == "tool_use" else b for b in blocks]
        self._append("assistant", content)

    def _end_user(self) -> None:
        """Ends the user message: results first, also those that are missing."""
        missing = [call for waiting in self._open.values() for call in waiting]
        self._results += [result_block(call, NO_RESULT, error=True) for call in missing]
        self._append("user", self._results + self._rest)
        self._open, self._results, self._rest = {}, [], []

    def _append(self, role: str, content: Sequence[Block]) -> None:
        if not content:
            return
        last = self._out[-1] if self._out else {}
        if last.get("role") == role and isinstance(before := last["content"], list):
            before += content
        else:
            self._out.append({"role": role, "content": list[JSON](content)})

    def _call(self, block: Block) -> Block:
        """The call under an id that the API accepts and that no other call has."""
        native = string(block.get("id"))
        clean = _ID.sub("_", native) or "call"
        name, n = clean, 1
        while name in self._used:
            n += 1
            name = f"{clean}_{n}"
        self._used.add(name)
        self._open.setdefault(native, deque()).append(name)
        tool = _ID.sub("_", string(block.get("name")))[:_MAX_NAME_CHARS] or _NO_NAME
        if name == native and tool == block.get("name") and isinstance(block.get("input"), dict):
            return block
        value = block.get("input")
        return {**block, "id": name, "name": tool, "input": value if isinstance(value, dict) else {"input": value}}


def _whole_result(block: Block) -> dict[str, JSON]:
    """The content of a result without empty texts."""
    content = block.get("content")
    if not isinstance(content, list):
        return {}
    return {"content": [b for b in content if not isinstance(b, dict) or _is_worth(b)]}


def _begins_with_compaction(message: dict[str, JSON]) -> bool:
    content = message.get("content")
    first = content[0] if isinstance(content, list) else None
    return isinstance(first, dict) and first.get("type") == "compaction"


def _is_worth(block: Block) -> bool:
    """Whether the API takes the block: a text must not be blank, thinking needs its signature or data."""
    match block.get("type"):
        case "text":
            return bool(string(block.get("text")).strip())
        case "thinking":
            return bool(block.get("signature"))
        case "redacted_thinking":
            return bool(block.get("data"))
    return True
