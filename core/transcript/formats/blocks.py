"""Pieces that all readers build with: blocks, messages with ids, one of several."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from core.errors import SessionNotFound
from core.model import JSON, Block, Kind, Message, Role, Usage, string, text_block, tool_results, tool_uses
from core.transcript.formats.damage import Findings

_NAMESPACE = uuid.UUID("5f0d1b52-7c0a-5d3e-9a55-0f01d3a8c0de")
_LISTED = 20
"""Conversations that an error lists by name."""


def media_block(media_type: str, url: str) -> Block:
    """An image or document from a data URL or link; a line of text that names it when the bytes are not there."""
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        media_type = head[5:].partition(";")[0] or media_type
        source: Block = {"type": "base64", "media_type": media_type, "data": data}
    elif url.startswith(("http://", "https://")):
        source = {"type": "url", "url": url}
    else:
        return text_block(f"[{media_type}: not in this file]")
    return {"type": "image" if media_type.partition("/")[0] == "image" else "document", "source": source}


def thinking_block(text: str) -> Block:
    """Thinking of another vendor: readable, but without a signature; or opaque, when there is no text."""
    return {"type": "thinking", "thinking": text} if text else {"type": "redacted_thinking", "data": ""}


def call_block(call_id: str, name: str, value: JSON, key: str = "input") -> Block:
    """A tool call; an input that is no object is put under `key`."""
    return {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": value if isinstance(value, dict) else {key: value},
    }


def result_block(call_id: str, content: str | list[Block], *, error: bool = False) -> Block:
    """A tool result."""
    body: JSON = content if isinstance(content, str) else list[JSON](content)
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": body}
    return {**block, "is_error": True} if error else block


class Messages:
    """Builds the messages of one conversation; an id that is missing or repeated is derived from place and content."""

    def __init__(self, start: str = "") -> None:
        """`start` keeps the derived ids of two lists of one conversation apart."""
        self.all: list[Message] = []
        self._start = start
        self._ids: set[str] = set()

    def add(
        self,
        role: Role,
        kind: Kind,
        content: Sequence[Block],
        native: str = "",
        *,
        timestamp: str = "",
        model: str = "",
        usage: Usage | None = None,
        response_id: str = "",
    ) -> Message | None:
        """Appends a message; one without content is none."""
        if not content:
            return None
        name = native
        if not name or name in self._ids:
            body = json.dumps(content, sort_keys=True)
            name = str(uuid.uuid5(_NAMESPACE, f"{self._start}:{native or len(self.all)}:{role}:{body}"))
        if name in self._ids:
            name = str(uuid.uuid5(_NAMESPACE, f"{name}:{len(self.all)}"))
        self._ids.add(name)
        message = Message(role, kind, tuple(content), (name,), response_id, model, usage, timestamp)
        self.all.append(message)
        return message

    def add_steps(
        self, blocks: Iterable[Block], native: str, *, timestamp: str = "", model: str = "", usage: Usage | None = None
    ) -> list[Message]:
        """Appends an answer whose results stand among its blocks: responses and results in turn.

        Calls in a row, with their results behind them, are parallel calls.  Usage goes to the first response.
        """
        before = len(self.all)
        response: list[Block] = []
        results: list[Block] = []

        def flush() -> None:
            nonlocal response, results, usage
            if self.add("assistant", "response", response, native, timestamp=timestamp, model=model, usage=usage):
                usage = None
            self.add("user", "results", results, native, timestamp=timestamp)
            response, results = [], []

        for block in blocks:
            if block.get("type") == "tool_result":
                results.append(block)
                continue
            if results:
                flush()
            response.append(block)
        flush()
        return self.all[before:]


def report_pairs(messages: Iterable[Message], findings: Findings) -> None:
    """Reports every call without a result and every result without a call before it, by id."""
    newest: set[str] = set()
    """Calls behind which nothing was said: their results may still come."""
    open_calls: dict[str, int] = {}
    for message in messages:
        if message.kind != "results":
            newest = {string(call.get("id")) for call in tool_uses(message)}
        for call in tool_uses(message):
            name = string(call.get("id"))
            open_calls[name] = open_calls.get(name, 0) + 1
        for result in tool_results(message):
            name = string(result.get("tool_use_id"))
            if open_calls.get(name, 0):
                open_calls[name] -= 1
            else:
                findings.add("orphan-result", 0, f"the result {name} has no call")
    for name, left in open_calls.items():
        for _ in range(left):
            findings.add("open-call" if name in newest else "unpaired-call", 0, f"the call {name} has no result")


def expect_one(path: Path, pick: str) -> None:
    """Passes for a file of one conversation if that is the one that was picked: by nothing, or as number 1.

    Raises SessionNotFound for any other.
    """
    if pick not in ("", "1"):
        raise SessionNotFound(f"{path.name} holds one conversation: {pick!r} picks none", "leave out {pick}")


def choose(listed: Sequence[tuple[str, str]], pick: str, what: str) -> int:
    """The position of the picked one of several (id, title): by id, title, beginning of an id, or position from 1.

    Raises SessionNotFound with the list when nothing was picked, or it fits none or several.
    """
    if len(listed) == 1 and not pick:
        return 0
    if pick:
        for fits in (
            [i for i, (name, _) in enumerate(listed) if name == pick],
            [i for i, (_, title) in enumerate(listed) if title == pick],
            [i for i, (name, _) in enumerate(listed) if name.startswith(pick)],
            [i for i in range(len(listed)) if str(i + 1) == pick],
        ):
            if len(fits) == 1:
                return fits[0]
    problem = f"no single {what} answers to {pick!r}" if pick else f"the file holds {len(listed)} {what}s"
    lines = [f"  {i}. {name} {title}".rstrip() for i, (name, title) in enumerate(listed[:_LISTED], 1)]
    if len(listed) > _LISTED:
        lines.append(f"  and {len(listed) - _LISTED} more")
    raise SessionNotFound("\n".join([problem, *lines]), "{pick} takes an id, a title or a number.")
