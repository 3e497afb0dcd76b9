"""OpenCode exports of form 2 (clients 2.x): `{info, messages: [{type, ...}]}`."""

from __future__ import annotations

from core.model import JSON, Block, Message, mapping, mappings, string, text_block
from core.transcript.formats.blocks import Messages, call_block, media_block, result_block, thinking_block
from core.transcript.formats.damage import Findings
from core.transcript.formats.opencode_parts import calls_first, iso_time, usage_of

_Source = dict[str, JSON]
_SILENT = frozenset({"agent-switched", "model-switched"})
_INJECTED = frozenset({"synthetic", "system", "skill", "shell"})
"""Types whose text the client put in by itself."""


def read_v2(_info: _Source, sources: list[_Source], findings: Findings) -> tuple[list[Message], list[Message], str]:
    """All messages, those that the client would send (from the last finished compaction on), and the newest model."""
    built = Messages()
    start = 0
    model = ""
    for source in sources:
        name, timestamp, kind = string(source.get("id")), iso_time(source), string(source.get("type"))
        model = string(mapping(source.get("model")).get("id")) or model
        if kind == "user":
            built.add("user", "prompt", _user(source), name, timestamp=timestamp)
        elif kind == "assistant":
            pairs = [pair for part in mappings(source.get("content")) if (pair := _pair(part, findings))]
            built.add_steps(calls_first(pairs), name, timestamp=timestamp, model=model, usage=usage_of(source))
        elif kind == "compaction":
            if source.get("status") == "completed":
                start = len(built.all)
                summary = string(source.get("summary"))
                built.add("user", "summary", [text_block(summary)] if summary else [], name, timestamp=timestamp)
        elif kind in _INJECTED:
            text = string(source.get("text"))
            built.add("user", "meta", [text_block(text)] if text else [], name, timestamp=timestamp)
        elif kind not in _SILENT:
            findings.add("unknown-type", 0, f"a message of the unknown type {kind or '(none)'!r}")
    return built.all, built.all[start:], model


def _user(source: _Source) -> list[Block]:
    text = string(source.get("text"))
    files = [media_block(string(f.get("mime")), string(f.get("uri"))) for f in mappings(source.get("files"))]
    return [*([text_block(text)] if text else []), *files]


def _pair(part: _Source, findings: Findings) -> tuple[Block, Block | None] | None:
    """One part of an answer, and the result of a call."""
    match part.get("type"):
        case "text":
            return (text_block(string(part["text"])), None) if part.get("text") else None
        case "reasoning":
            return thinking_block(string(part.get("text"))), None
        case "tool":
            state, call = mapping(part.get("state")), string(part.get("id"))
            return call_block(call, string(part.get("name")), state.get("input") or {}), _result(call, state)
        case kind:
            findings.add("unknown-type", 0, f"a part of the unknown type {string(kind) or '(none)'!r}")
            return None


def _result(call: str, state: _Source) -> Block | None:
    """The result of a call: none while it is pending or running."""
    blocks = [_content(c) for c in mappings(state.get("content"))]
    if state.get("status") == "completed":
        only_text = len(blocks) == 1 and blocks[0]["type"] == "text"
        return result_block(call, string(blocks[0]["text"]) if only_text else blocks)
    if state.get("status") == "error":
        return result_block(call, string(mapping(state.get("error")).get("message")), error=True)
    return None


def _content(part: _Source) -> Block:
    if isinstance(part.get("text"), str):
        return text_block(string(part["text"]))
    return media_block(string(part.get("mime")), string(part.get("uri")))
