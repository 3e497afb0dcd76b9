"""How a row that stays is written: so that every version of the client sends the same for it.

The usage of a kept row must not carry the old size (the client would compact again at once); thinking is bound to the
messages before it and cannot stay behind a change; marks that only some versions act on are written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.model import JSON, Block, Message, Usage, call_id, is_thinking, mapping, mappings
from core.transcript.entries import Entry
from core.transcript.note import KEY
from core.transcript.reader import Log

_VERSION_SPECIFIC = (
    "origin",
    "ownNote",
    "turnCompanion",
    "isDisplayOnly",
    "agentId",
    "rendered",
    "renderedRole",
    "attachment",
)
"""Marks that only some versions act on; what they stand for is written out in the content instead."""
_LONG_CHARS, _SHORT_CHARS = 1_000, 200
"""Of texts in what a client keeps beside a result that was replaced: longer ones become short, paths stay whole."""


@dataclass(slots=True)
class Rewriter:
    """Writes the rows of one history, in their order: what it wrote before decides what a later row may hold."""

    log: Log
    envelope: dict[str, JSON]
    """What a row of our own says about where it belongs."""
    in_place: bool
    has_summary: bool
    changed_from: int
    """The messages before this one have the history that they had."""
    prompt_tokens: Sequence[int]
    answered: frozenset[str]
    """The calls that have a result."""
    calls: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    def row(self, place: int, message: Message | None, entry: Entry) -> dict[str, JSON] | None:
        """A row of the kept message at that place, or one behind it that is none of a message; None: it goes."""
        row = self.log.row(entry)
        others_stay = self.in_place or not self.has_summary
        # Damaged files have such rows: of a message that is summarised, behind one that is kept.  Errors that the
        # client made up are no messages either, but clients up to 1.0 send them.
        summarised = self.has_summary and message is None and entry.type in ("user", "assistant")
        # A row of an unknown type on the chain, progress too, ends it for clients up to 2.0.
        stays = others_stay and entry.on_chain and not summarised
        new: dict[str, JSON] | None = row if stays else None
        if place < self.changed_from and entry.on_chain and not entry.api_error:
            (self.calls if entry.type == "assistant" else self.results).update(entry.tools)
            if message is None or not self._is_read_differently(row, message):
                return row
            new = self._user_row(row, message)
        elif message is not None and message.kind == "response":
            new = self._response_row(row, self.prompt_tokens[place])
        elif message is not None and (entry.type != "attachment" or not others_stay):
            # Local commands are user rows to clients up to 2.0, which send no others of them.
            new = self._user_row(row, message)
        if new is None and self.in_place:
            # The client joins the rows of one response wherever they stand: only a row of that uuid hides the old one.
            new = self.left_out()
        return new

    def _is_read_differently(self, row: dict[str, JSON], message: Message) -> bool:
        """Whether versions send different messages for it: local commands, own notes, prompts that were queued."""
        is_queued = row.get("type") == "attachment" and message.kind == "prompt"
        return row.get("type") == "system" or row.get("ownNote") is True or (is_queued and not self.in_place)

    def new_row(self, place: int, message: Message) -> dict[str, JSON]:
        """The row of a message that has none yet: a prompt, its answer, or what stands in for others."""
        content: list[JSON] = [*message.content]
        if message.kind != "response":
            return {**self.envelope, **user_row(content), **({} if message.kind == "prompt" else {"isMeta": True})}
        usage = message.usage or Usage()
        charged: dict[str, JSON] = {
            "input_tokens": usage.input_tokens,
            "cache_creation_input_tokens": usage.cache_creation_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
        }
        body: dict[str, JSON] = {
            "id": message.response_id,
            "type": "message",
            "role": "assistant",
            "model": message.model,
            "content": [b for b in message.content if self._stays(b)],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": _scaled(charged, self.prompt_tokens[place]),
        }
        return {**self.envelope, "type": "assistant", "message": body, KEY: {"usage": charged}}

    def left_out(self) -> dict[str, JSON]:
        """A row that is not sent, in the place of one whose id is needed."""
        row: dict[str, JSON] = {"type": "system", "subtype": "informational", "level": "info", "isMeta": False}
        return {**self.envelope, **row, "content": "left out by a compaction"}

    def _response_row(self, row: dict[str, JSON], prompt_tokens: int) -> dict[str, JSON] | None:
        message = row.get("message")
        if not isinstance(message, dict):
            return None
        content = message.get("content")
        blocks: JSON = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kept: list[JSON] = [b for b in mappings(blocks) if self._stays(b)]
        if not kept:
            return None
        usage = message.get("usage")
        new: dict[str, JSON] = {**row, "message": {**message, "content": kept}}
        if isinstance(usage, dict):
            new["message"] = {**message, "content": kept, "usage": _scaled(usage, prompt_tokens)}
            new.setdefault(KEY, {"usage": usage})  # of a row that was kept before, the first
        return {k: v for k, v in new.items() if k not in _VERSION_SPECIFIC}

    def _stays(self, block: Block) -> bool:
        if is_thinking(block):
            return False
        if block.get("type") == "tool_use":
            call = call_id(block)
            if not call or call in self.calls or not (self.in_place or call in self.answered):
                return False
            self.calls.add(call)
        return block.get("type") != "text" or bool(str(block.get("text") or "").strip())

    def _user_row(self, row: dict[str, JSON], message: Message) -> dict[str, JSON] | None:
        if message.role == "system" and message.kind == "attachment":
            return None
        blocks: list[JSON] = []
        for block in message.content:
            if block.get("type") == "tool_result":
                call = call_id(block)
                if call not in self.calls or call in self.results:
                    continue
                self.results.add(call)
            blocks.append(block)
        if not blocks:
            return None
        old = row.get("message")
        same = (
            isinstance(old, dict)
            and isinstance(old.get("content"), str)
            and blocks == [{"type": "text", "text": old["content"]}]
        )
        base = row if row.get("type") == "user" else self.envelope
        new = {**base, **({} if same else user_row(blocks))}
        if "toolUseResult" in new and _are_replaced(blocks, old):
            new["toolUseResult"] = _shortened(new["toolUseResult"])
        # In place the mark of a task's note stays: clients that know it send the row as a system message.
        return {k: v for k, v in new.items() if k not in _VERSION_SPECIFIC or (k == "origin" and self.in_place)}


def user_row(content: JSON) -> dict[str, JSON]:
    """What makes a row one that a user said."""
    return {"type": "user", "message": {"role": "user", "content": content}}


def _are_replaced(blocks: list[JSON], old: JSON) -> bool:
    """Whether one of the results has another content than in the old message."""
    before = {call_id(b): b.get("content") for b in mappings(mapping(old).get("content"))}
    results = [b for b in mappings(blocks) if b.get("type") == "tool_result"]
    return any(b.get("content") != before.get(call_id(b)) for b in results)


def _shortened(value: JSON) -> JSON:
    """The value with its keys and types, without its long texts: clients show it, and need none of it to resume."""
    match value:
        case str() if len(value) > _LONG_CHARS:
            return value[:_SHORT_CHARS]
        case list():
            return [_shortened(item) for item in value]
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
    return value


def _scaled(usage: dict[str, JSON], prompt_tokens: int) -> dict[str, JSON]:
    """The usage of a kept response as if its request had been the projected one, nothing of it cached."""
    kept = {k: v for k, v in usage.items() if k not in ("cache_creation", "iterations")}
    return {**kept, "input_tokens": prompt_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
