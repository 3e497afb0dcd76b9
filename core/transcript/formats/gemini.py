"""Gemini CLI chats: one JSON document that is rewritten whole, or lines that are appended."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from core.model import (
    JSON,
    Block,
    Kind,
    Message,
    Usage,
    count,
    is_thinking,
    mapping,
    mappings,
    sequence,
    string,
    text_block,
)
from core.transcript.formats.blocks import Messages, call_block, media_block, report_pairs, result_block, thinking_block
from core.transcript.formats.conversation import Conversation, Format
from core.transcript.formats.damage import Findings, document, json_text, loads, records

_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_SCREEN_ONLY = frozenset({"info", "error", "warning"})
_NOT_SENT = ("/", "?", "<session_context>", "<hook_context>")
"""How user texts begin that the client leaves out when it resumes: its own commands and context."""
_SNAPSHOT = "<state_snapshot>"
"""How the summary of a compaction begins."""
_FAILED = frozenset({"error", "cancelled"})


def _chat(messages: Iterable[dict[str, JSON]], findings: Findings) -> tuple[list[Message], list[Message]]:
    """The messages of a chat, and those of them that the client sends when it resumes."""
    built = Messages()
    active: list[Message] = []
    for source in messages:
        kind = string(source.get("type"))
        before = len(built.all)
        sent = True
        if kind == "user":
            sent = _add_user(built, source)
        elif kind == "gemini":
            built.add_steps(
                _answer(source),
                string(source.get("id")),
                timestamp=string(source.get("timestamp")),
                model=string(source.get("model")),
                usage=_usage(mapping(source.get("tokens"))),
            )
        elif kind not in _SCREEN_ONLY:
            findings.add("unknown-type", 0, f"a message of the unknown type {kind or '(none)'!r}")
        if sent:
            active += built.all[before:]
    return built.all, active


def _add_user(built: Messages, source: dict[str, JSON]) -> bool:
    """Adds a user message; whether the client would send it."""
    blocks = [b for part in _parts(source.get("content")) if (b := _block(part)) and b.get("text") != ""]
    first = string(blocks[0].get("text")) if blocks else ""
    kind: Kind = "prompt"
    if first.lstrip().startswith(_SNAPSHOT):
        kind = "summary"
    elif first.startswith(_NOT_SENT):
        kind = "meta" if first.startswith("<") else "command"
    built.add("user", kind, blocks, string(source.get("id")), timestamp=string(source.get("timestamp")))
    return kind in ("prompt", "summary")


def _parts(content: JSON) -> list[dict[str, JSON]]:
    """Content is text, one part, or a list of parts and texts."""
    items = content if isinstance(content, list) else [content]
    return [{"text": item} if isinstance(item, str) else item for item in items if isinstance(item, (str, dict))]


def _block(part: dict[str, JSON]) -> Block | None:
    """Text, thinking, media or a call; what is none of them is kept as JSON text, an answer to a call is none."""
    if "functionResponse" in part:
        return None
    if isinstance(part.get("text"), str):
        text = string(part["text"])
        return thinking_block(text) if part.get("thought") else text_block(text)
    if isinstance(data := part.get("inlineData"), dict):
        return media_block(
            string(data.get("mimeType")), f"data:{string(data.get('mimeType'))};base64,{string(data.get('data'))}"
        )
    if isinstance(file := part.get("fileData"), dict):
        return media_block(string(file.get("mimeType")) or "file", string(file.get("fileUri")))
    if isinstance(call := part.get("functionCall"), dict):
        return call_block(string(call.get("id")), string(call.get("name")), mapping(call.get("args")))
    return text_block(json.dumps(part, ensure_ascii=False))


def _answer(source: dict[str, JSON]) -> list[Block]:
    """Thinking, text, calls, then the results.

    Where the content holds calls or thoughts itself it is the truth, and the copies beside it are not read; the
    results stand in `toolCalls` in any case.
    """
    blocks = [b for part in _parts(source.get("content")) if (b := _block(part)) and b.get("text") != ""]
    calls = mappings(source.get("toolCalls"))
    inside = [b for b in blocks if b["type"] == "tool_use"]
    if not inside and not any(is_thinking(b) for b in blocks):
        thoughts = [_thought(t) for t in mappings(source.get("thoughts"))]
        blocks = [*thoughts, *blocks, *(_call(c) for c in calls)]
    else:
        _name_calls(inside, calls)
    return [*blocks, *(result for call in calls if (result := _result(call)))]


def _name_calls(inside: list[Block], calls: list[dict[str, JSON]]) -> None:
    """Gives calls that lack an id the one of the next entry of the same name."""
    known = {string(block["id"]) for block in inside}
    for block in inside:
        if not block["id"]:
            same = (string(c.get("id")) for c in calls if c.get("name") == block["name"])
            block["id"] = name = next((call for call in same if call not in known), "")
            known.add(name)


def _thought(thought: dict[str, JSON]) -> Block:
    return thinking_block(f"**{string(thought.get('subject'))}** {string(thought.get('description'))}")


def _call(call: dict[str, JSON]) -> Block:
    return call_block(string(call.get("id")), string(call.get("name")), mapping(call.get("args")))


def _result(call: dict[str, JSON]) -> Block | None:
    """The result of an entry, if it has one: the output or error text of the answer, other parts as blocks."""
    result = call.get("result")
    if result is None:
        return None
    failed = string(call.get("status")) in _FAILED
    blocks: list[Block] = []
    for part in _parts(result):
        if isinstance(answer := part.get("functionResponse"), dict):
            response = answer.get("response")
            failed = failed or (isinstance(response, dict) and "error" in response)
            blocks.append(text_block(_response_text(response)))
            blocks += [b for p in mappings(answer.get("parts")) if (b := _block(p))]
        elif block := _block(part):
            blocks.append(block)
    only_text = len(blocks) == 1 and blocks[0]["type"] == "text"
    return result_block(string(call.get("id")), string(blocks[0]["text"]) if only_text else blocks, error=failed)


def _response_text(response: JSON) -> str:
    for value in (mapping(response).get("output"), mapping(response).get("error"), response):
        if isinstance(value, str):
            return value
    return json.dumps(response, ensure_ascii=False)


def _usage(tokens: dict[str, JSON]) -> Usage | None:
    """One request: cached tokens are part of the input, thinking stands beside the output."""
    cached = count(tokens.get("cached"))
    fresh = max(0, count(tokens.get("input")) - cached) + count(tokens.get("tool"))
    usage = Usage(fresh, 0, cached, count(tokens.get("output")) + count(tokens.get("thoughts")))
    return usage if usage.total_tokens else None


class _Lines:
    """The state of the appending client: `full` is the first whole text of every message, `now` what counts."""

    def __init__(self) -> None:
        self.meta: dict[str, JSON] = {}
        self.full: dict[str, dict[str, JSON]] = {}
        self.now: dict[str, dict[str, JSON]] = {}

    def read(self, line: int, record: dict[str, JSON], findings: Findings) -> None:
        """Takes one record in; the tests come in the client's own order."""
        if isinstance(back := record.get("$rewindTo"), str):
            self._rewind(back)
        elif isinstance(name := record.get("id"), str):
            self.full[name] = self.now[name] = record
        elif isinstance(changed := record.get("$set"), dict):
            self._merge(changed)
        elif "sessionId" in record and "projectHash" in record:
            self._merge(record)
        else:
            findings.add("unknown-type", line, "a record that is neither a message nor a change")

    def _rewind(self, name: str) -> None:
        """Drops a message and all after it; all, when it is not there."""
        while self.now and self.now.popitem()[0] != name:
            pass

    def _merge(self, changed: dict[str, JSON]) -> None:
        """Metadata; messages among it are a checkpoint, in which kept ones may stand shortened."""
        self.meta |= {k: v for k, v in changed.items() if k != "messages"}
        if isinstance(changed.get("messages"), list):
            self.now = {string(m.get("id")) or f"#{i}": m for i, m in enumerate(mappings(changed["messages"]))}
            for name, message in self.now.items():
                self.full.setdefault(name, message)


def _conversation(
    name: str,
    meta: dict[str, JSON],
    every: Iterable[dict[str, JSON]],
    now: Iterable[dict[str, JSON]],
    findings: Findings,
) -> Conversation:
    messages, _ = _chat(every, findings)
    _, active = _chat(now, Findings())
    report_pairs(messages, findings)
    return Conversation(
        name,
        session_id=string(meta.get("sessionId")),
        title=string(meta.get("summary")),
        model=next((m.model for m in reversed(messages) if m.model), ""),
        messages=tuple(messages),
        active=tuple(active),
        findings=findings.done(),
    )


def _read_document(path: Path, pick: str) -> Conversation:
    if _is_first_of_lines(path):
        return _read_lines(path, pick)
    findings = Findings()
    value = mapping(document(path, _matches_document, {"{": 1}, findings))
    messages = mappings(value.get("messages"))
    if len(messages) < len(sequence(value.get("messages"))):
        findings.add("not-a-row", 0, "entries that are no messages were left out")
    return _conversation(JSON_FORMAT.name, value, messages, messages, findings)


def _is_first_of_lines(path: Path) -> bool:
    """Whether the document is one line with more lines behind it: a chat of the older form that was taken up again."""
    with path.open("rb") as file:
        first, second = file.readline(), file.readline()
    if not second.strip():
        return False
    try:
        return isinstance(loads(json_text(first)), dict)
    except ValueError:
        return False


def _read_lines(path: Path, pick: str) -> Conversation:  # noqa: ARG001 - a chat holds one conversation
    findings = Findings()
    state = _Lines()
    for line, record in records(path, findings):
        state.read(line, record, findings)
    return _conversation(JSONL_FORMAT.name, state.meta, state.full.values(), state.now.values(), findings)


def _matches_document(value: JSON) -> bool:
    return isinstance(value, dict) and {"sessionId", "projectHash", "messages"} <= value.keys()


def _matches_lines(value: JSON) -> bool:
    if not isinstance(value, dict):
        return False
    if {"sessionId", "projectHash"} <= value.keys() or "$set" in value or "$rewindTo" in value:
        return True
    message = isinstance(value.get("id"), str) and string(value.get("type")) in _TYPES and "content" in value
    return message and not {"message", "uuid", "parentUuid"} & value.keys()


JSON_FORMAT = Format("gemini-json", "a Gemini CLI chat", _matches_document, _read_document)
JSONL_FORMAT = Format("gemini-jsonl", "a Gemini CLI chat", _matches_lines, _read_lines)
