"""The data export of claude.ai, and single conversations as browser tools save them."""

from __future__ import annotations

import json
from pathlib import Path

from core.model import JSON, Block, Message, mappings, sequence, string, text_block
from core.transcript.formats.blocks import Messages, call_block, choose, report_pairs, result_block, thinking_block
from core.transcript.formats.conversation import Conversation, Format
from core.transcript.formats.damage import Findings, document

_TIME_CHARS = 26
"""A time to the microsecond without its zone, which is always UTC: `2026-03-01T08:00:00.000000`."""
_SILENT = frozenset({"token_budget", "flag"})
"""Blocks that hold no content."""


def _human(source: dict[str, JSON]) -> list[Block]:
    """Text, then what was attached: pastes and files with their text, other files by name only."""
    blocks = [text_block(text) for b in mappings(source.get("content")) if (text := string(b.get("text")))]
    if not blocks and (text := string(source.get("text"))):
        blocks = [text_block(text)]
    for item in mappings(source.get("attachments")):
        name, text = string(item.get("file_name")), string(item.get("extracted_content"))
        if text:
            body: Block = {"type": "text", "media_type": "text/plain", "data": text}
            blocks.append({"type": "document", "source": body, **({"title": name} if name else {})})
        elif name:
            blocks.append(text_block(f"[file: {name}]"))
    blocks += [
        text_block(f"[file: {name}]") for f in mappings(source.get("files")) if (name := string(f.get("file_name")))
    ]
    return blocks


def _answer(source: dict[str, JSON], findings: Findings) -> list[Block]:
    """The blocks of an answer; ids that are null are made, and paired in order within the message."""
    blocks: list[Block] = []
    made = _MadeIds(string(source.get("uuid")))
    for block in mappings(source.get("content")):
        match block.get("type"):
            case "text":
                if text := string(block.get("text")):
                    blocks.append(text_block(text))
            case "thinking":
                blocks.append(thinking_block(string(block.get("thinking"))))
            case "tool_use":
                blocks.append(
                    call_block(made.call(block.get("id")), string(block.get("name")), block.get("input") or {})
                )
            case "tool_result":
                error = block.get("is_error") is True
                blocks.append(result_block(made.result(block.get("tool_use_id")), _result(block), error=error))
            case kind if string(kind) not in _SILENT:
                findings.add("unknown-type", 0, f"a block of the unknown type {string(kind) or '(none)'!r}")
    if not blocks and (text := string(source.get("text"))):
        return [text_block(text)]
    return blocks


class _MadeIds:
    """Ids for calls that have none: the message's id and the number of the call in it."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._calls = 0
        self._open: list[str] = []

    def call(self, native: JSON) -> str:
        self._calls += 1
        name = string(native) or f"{self._message}#{self._calls}"
        self._open.append(name)
        return name

    def result(self, native: JSON) -> str:
        name = string(native) or (self._open[0] if self._open else f"{self._message}#0")
        if name in self._open:
            self._open.remove(name)
        return name


def _result(block: dict[str, JSON]) -> str | list[Block]:
    """The content of a result; parts that are no text are kept as JSON text."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    return [
        text_block(string(part["text"]) if isinstance(part.get("text"), str) else json.dumps(part, ensure_ascii=False))
        for part in mappings(content)
    ]


def _path(messages: list[dict[str, JSON]], leaf: str) -> set[int]:
    """The positions on the way from the leaf to its root; all of them when no message names a parent.

    Without a known leaf it is the newest message.  A parent that is not there ends the way, so does a cycle.
    """
    if not any(m.get("parent_message_uuid") for m in messages):
        return set(range(len(messages)))
    place = {string(m.get("uuid")): i for i, m in enumerate(messages)}
    newest = max(range(len(messages)), key=lambda i: (string(messages[i].get("created_at"))[:_TIME_CHARS], i))
    at: int | None = place.get(leaf, newest)
    path: set[int] = set()
    while at is not None and at not in path:
        path.add(at)
        at = place.get(string(messages[at].get("parent_message_uuid")))
    return path


def _conversation(source: dict[str, JSON], findings: Findings) -> Conversation:
    entries = sequence(source.get("chat_messages"))
    listed = mappings(entries)
    if len(listed) < len(entries):
        findings.add("not-a-row", 0, f"{len(entries) - len(listed)} entries that are no messages were left out")
    path = _path(listed, string(source.get("current_leaf_message_uuid")))
    known = {string(m.get("uuid")) for m in listed}
    built = Messages()
    active: list[Message] = []
    for i, message in enumerate(listed):
        before = len(built.all)
        name, timestamp = string(message.get("uuid")), string(message.get("created_at"))
        sender = string(message.get("sender"))
        parent = string(message.get("parent_message_uuid"))
        if parent and parent not in known and parent != _ROOT:
            findings.add("missing-parent", 0, f"the parent of message {name} is not in the file")
        if sender == "human":
            built.add("user", "prompt", _human(message), name, timestamp=timestamp)
        elif sender == "assistant":
            built.add_steps(_answer(message, findings), name, timestamp=timestamp)
        else:
            findings.add("unknown-type", 0, f"message {name} has the unknown sender {sender or '(none)'!r}")
        if i in path:
            active += built.all[before:]
    report_pairs(built.all, findings)
    return Conversation(
        FORMAT.name,
        session_id=string(source.get("uuid")),
        title=string(source.get("name")),
        model=string(source.get("model")),
        messages=tuple(built.all),
        active=tuple(active),
        findings=findings.done(),
    )


_ROOT = "00000000-0000-4000-8000-000000000000"
"""The parent of every first message."""


def _read(path: Path, pick: str) -> Conversation:
    findings = Findings()
    value = document(path, _matches, {"[": 2, "{": 1}, findings)
    conversations = mappings(value) if isinstance(value, list) else mappings([value])
    titles = [(string(c.get("uuid")), string(c.get("name"))) for c in conversations]
    return _conversation(conversations[choose(titles, pick, "conversation")], findings)


def _matches(value: JSON) -> bool:
    first = next(iter(mappings(value)), None) if isinstance(value, list) else value
    return isinstance(first, dict) and "chat_messages" in first


FORMAT = Format("claude-ai", "an export of claude.ai", _matches, _read, several=True)
