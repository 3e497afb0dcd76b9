"""Messages API JSON: request bodies, bare arrays, responses, batch files and logs of calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.errors import Damaged, WrongFormat
from core.model import JSON, Block, Kind, Message, Role, Usage, count, mapping, mappings, sequence, string, text_block
from core.transcript.formats.blocks import Messages, choose, expect_one, report_pairs
from core.transcript.formats.conversation import Conversation, Format
from core.transcript.formats.damage import Findings, document, records
from core.transcript.formats.others import first_item, is_openai

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_BLOCKS = frozenset(
    {
        *("text", "image", "document", "search_result", "container_upload", "mid_conv_system", "compaction"),
        *("thinking", "redacted_thinking"),
        *("tool_use", "tool_result", "tool_reference", "server_tool_use", "mcp_tool_use"),
    }
)
"""Known block types; beside them the results of server tools, which end in `_tool_result`."""
_Body = dict[str, JSON]


def _conversation(name: str, body: _Body, findings: Findings) -> Conversation:
    """One request, response or result of a batch."""
    request, answers = _unwrapped(body, findings)
    built = Messages(name)
    for number, message in enumerate([*sequence(request.get("messages")), *answers], 1):
        _add(built, f"message {number}", mapping(message), findings)
    if is_openai(request.get("messages")):
        raise WrongFormat("this looks like messages of the OpenAI API", "Give Messages API JSON.")
    report_pairs(built.all, findings)
    return Conversation(
        FORMAT.name,
        session_id=name,
        model=string(request.get("model")) or next((m.model for m in built.all if m.model), ""),
        messages=tuple(built.all),
        active=_active(built.all),
        system=_system(request.get("system")),
        tools=tuple(mappings(request.get("tools"))),
        findings=findings.done(),
    )


def _unwrapped(body: _Body, findings: Findings) -> tuple[_Body, list[JSON]]:
    """The request in a batch line or a log, and what answered it."""
    if "result" in body:
        result = mapping(body["result"])
        if "message" in result:
            return {}, [result["message"]]
        error = mapping(result.get("error"))
        reason = (
            string(mapping(error.get("error")).get("type")) or string(error.get("type")) or string(result.get("type"))
        )
        findings.add("request-failed", 0, f"the request has no answer: {reason or 'no reason given'}")
        return {}, []
    answers = [body["response"]] if mapping(body.get("response")).get("role") == "assistant" else []
    for key in ("params", "request", "body"):
        if isinstance(inner := body.get(key), dict):
            return inner, answers
    return ({}, [body]) if _is_response(body) else (body, [])


def _add(built: Messages, place: str, message: dict[str, JSON], findings: Findings) -> None:
    """Adds one message, every block as it stands; what is no message is reported and left out."""
    role = _ROLES.get(string(message.get("role")))
    content = message.get("content")
    if role is None:
        findings.add("not-a-row", 0, f"{place} has an unknown role, and was left out")
        return
    blocks = [text_block(content)] if isinstance(content, str) and content else mappings(content)
    if not blocks:
        findings.add("missing-part", 0, f"{place} has no content, and was left out")
    for block in blocks:
        kind = string(block.get("type"))
        if kind not in _BLOCKS and not kind.endswith("_tool_result"):
            findings.add("unknown-type", 0, f"{place} has a block of the unknown type {kind or '(none)'!r}")
    built.add(
        role,
        _kind(role, blocks),
        [b for b in blocks if string(b.get("type"))],
        usage=usage_of(mapping(message.get("usage"))),
        model=string(message.get("model")),
        response_id=string(message.get("id")) if role == "assistant" else "",
    )


def _kind(role: Role, blocks: list[Block]) -> Kind:
    if role == "user":
        return "results" if any(b.get("type") == "tool_result" for b in blocks) else "prompt"
    return "response" if role == "assistant" else "meta"


def usage_of(usage: _Body) -> Usage | None:
    """What a response of the API was charged for; None where nothing was counted."""
    found = Usage(
        count(usage.get("input_tokens")),
        count(usage.get("cache_creation_input_tokens")),
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("output_tokens")),
        count(mapping(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")),
    )
    return found if found.total_tokens else None


def _system(value: JSON) -> str:
    """The system prompt, which is text or text blocks."""
    return value if isinstance(value, str) else "\n\n".join(t for b in mappings(value) if (t := string(b.get("text"))))


def _active(messages: list[Message]) -> tuple[Message, ...]:
    """What the API makes of the list: nothing before the last compaction block that has a text."""
    for i in range(len(messages) - 1, -1, -1):
        content = messages[i].content
        for k in range(len(content) - 1, -1, -1):
            if content[k].get("type") == "compaction" and content[k].get("content"):
                return (replace(messages[i], content=content[k:]), *messages[i + 1 :])
    return tuple(messages)


def _read(path: Path, pick: str) -> Conversation:
    findings = Findings()
    value = document(path, _matches, {"{": 1, "[": 0}, findings)
    head: _Body = {"messages": value} if isinstance(value, list) else mapping(value)
    if "requests" in head:
        bodies = mappings(head["requests"])
    elif _is_line(head):
        findings = Findings()
        bodies = [record for _, record in records(path, findings) if _is_line(record)]
    else:
        expect_one(path, pick)
        return _conversation("", head, findings)
    if not bodies:
        raise Damaged(f"{path.name} holds no request", "Give a file with one request on each line.")
    titles = [(string(b.get("custom_id")), "") for b in bodies]
    at = choose(titles, pick, "request")
    return _conversation(titles[at][0], bodies[at], findings)


def _is_line(value: _Body) -> bool:
    """Whether this is one of several: a request or result of a batch, or a logged call."""
    if "custom_id" in value:
        return isinstance(value.get("params"), dict) or isinstance(value.get("result"), dict)
    return any(_is_body(mapping(value.get(key))) for key in ("request", "body"))


def _is_response(value: _Body) -> bool:
    return (
        value.get("type") == "message" and value.get("role") == "assistant" and isinstance(value.get("content"), list)
    )


def _is_body(value: _Body) -> bool:
    """Whether this is a request; one without messages so far may be cut in front of them."""
    if not isinstance(value.get("messages"), list):
        return False
    return _is_list(value["messages"]) or bool({"system", "max_tokens", "tools"} & value.keys())


def _is_list(value: JSON) -> bool:
    first = first_item(value)
    return string(first.get("role")) in _ROLES and "content" in first and "ts" not in first


def _matches(value: JSON) -> bool:
    if isinstance(value, list):
        return _is_list(value)
    body = mapping(value)
    if "requests" in body:
        return any(_is_line(r) for r in mappings(body["requests"]))
    return _is_line(body) or _is_response(body) or _is_body(body)


FORMAT = Format("messages", "Messages API JSON", _matches, _read, several=True)
