"""Kinds of files that are recognised so that an error can name them, but not read."""

from __future__ import annotations

from core.model import JSON, mapping, mappings, string
from core.transcript.formats.conversation import Format

_MAGIC = (
    (
        b"\x28\xb5\x2f\xfd",
        "zstd",
        "a file compressed with zstd, such as an old Codex rollout",
        "Unpack it first: zstd -d FILE",
    ),
    (b"\x1f\x8b", "gzip", "a file compressed with gzip", "Unpack it first: gunzip FILE"),
    (
        b"SQLite format 3\0",
        "sqlite",
        "an SQLite database, such as the store of OpenCode",
        "Export the session instead: opencode export ID > session.json",
    ),
    (
        b"PK\x03\x04",
        "zip",
        "a zip archive, such as the data export of claude.ai",
        "Unpack it, and give the conversations.json in it.",
    ),
    (b"\xff\xfe", "utf-16", "text in UTF-16", "Save it as UTF-8; on PowerShell: ... | Set-Content -Encoding utf8 FILE"),
    (b"\xfe\xff", "utf-16", "text in UTF-16", "Save it as UTF-8."),
)
_EXPORT = "Foldmark does not read it; export the conversation as Messages API JSON."
_OPENAI_ROLES = frozenset({"tool", "developer", "function"})


def binary(head: bytes) -> Format | None:
    """The kind of a file that is no text, by its first bytes."""
    for magic, name, label, advice in _MAGIC:
        if head.startswith(magic):
            return Format(name, label, lambda _: False, advice=advice)
    return None


def first_item(value: JSON) -> dict[str, JSON]:
    """The first object of an array; an empty one for all else."""
    return next(iter(mappings(value)), {})


def is_openai(value: JSON) -> bool:
    """Whether a list of messages holds what only the chat-completions API has."""
    return any(
        string(m.get("role")) in _OPENAI_ROLES or "tool_calls" in m or "function_call" in m or "tool_call_id" in m
        for m in mappings(value)
    )


def _pi(value: JSON) -> bool:
    head = mapping(value)
    return head.get("type") == "session" and {"id", "timestamp"} <= head.keys()


def _copilot(value: JSON) -> bool:
    head = mapping(value)
    return "." in string(head.get("type")) and isinstance(head.get("data"), dict)


def _qwen(value: JSON) -> bool:
    head = mapping(value)
    if not {"uuid", "parentUuid", "sessionId"} <= head.keys():
        return False
    return "parts" in mapping(head.get("message")) or head.get("type") == "tool_result" or "systemPayload" in head


def _claude_web(value: JSON) -> bool:
    return isinstance(mapping(value).get("loglines"), list)


def _chatgpt(value: JSON) -> bool:
    head = first_item(value) if isinstance(value, list) else mapping(value)
    return isinstance(head.get("mapping"), dict) or {"mapping", "current_node"} <= head.keys()


def _cline_sdk(value: JSON) -> bool:
    return {"version", "sessionId", "agent", "messages"} <= mapping(value).keys()


def _cline_screen(value: JSON) -> bool:
    head = first_item(value)
    return "ts" in head and head.get("type") in ("say", "ask")


def _cline_history(value: JSON) -> bool:
    return {"ts", "role", "content"} <= first_item(value).keys()


def _openai(value: JSON) -> bool:
    head = mapping(value)
    if "custom_id" in head:
        return {"method", "url"} <= head.keys()
    tools = mappings(head.get("tools"))
    return (
        is_openai(value)
        or is_openai(head.get("messages"))
        or ("messages" in head and any(isinstance(t.get("function"), dict) for t in tools))
        or "message" in first_item(head.get("choices"))
        or (isinstance(head.get("input"), list) and "role" in first_item(head["input"]))
    )


def _parts_of(value: JSON) -> JSON:
    return mapping(value).get("history", value)


def _gemini_contents(value: JSON) -> bool:
    items = mappings(_parts_of(value))
    return (
        bool(items)
        and "parts" in items[0]
        and any(i.get("role") == "model" or "type" not in p for i in items[:4] for p in mappings(i.get("parts"))[:1])
    )


def _vercel(value: JSON) -> bool:
    return any("parts" in m or "toolInvocations" in m for m in mappings(value) if "role" in m)


def _langchain(value: JSON) -> bool:
    head = first_item(value) if isinstance(value, list) else mapping(value)
    if head.get("lc") == 1:
        return True
    kind = head.get("type")
    return (
        isinstance(value, list)
        and kind in ("human", "ai", "system", "tool", "AIMessageChunk")
        and bool({"data", "content"} & head.keys())
    )


def _entire(value: JSON) -> bool:
    return {"v", "agent", "cli_version", "type", "ts"} <= mapping(value).keys()


PI = Format("pi", "a pi session", _pi, advice=_EXPORT)
COPILOT = Format("copilot", "a Copilot CLI event log", _copilot, advice=_EXPORT)
QWEN = Format("qwen", "a Qwen Code session", _qwen, advice=_EXPORT)
CLAUDE_WEB = Format("claude-web", "a session of Claude Code on the web", _claude_web, advice=_EXPORT)
CHATGPT = Format("chatgpt", "an export of ChatGPT", _chatgpt, advice=_EXPORT)
CLINE_SDK = Format("cline-sdk", "a Cline session", _cline_sdk, advice=_EXPORT)
CLINE_SCREEN = Format("cline-ui", "the screen log of Cline or Roo Code", _cline_screen, advice=_EXPORT)
CLINE = Format("cline", "the history of a Cline or Roo Code task", _cline_history, advice=_EXPORT)
OPENAI = Format("openai", "messages of the OpenAI API", _openai, advice=_EXPORT)
GEMINI_CONTENTS = Format("gemini-contents", "a checkpoint of Gemini CLI", _gemini_contents, advice=_EXPORT)
VERCEL = Format("ui-messages", "messages of the Vercel AI SDK", _vercel, advice=_EXPORT)
LANGCHAIN = Format("langchain", "a dump of LangChain messages", _langchain, advice=_EXPORT)
ENTIRE = Format("entire", "a condensed transcript of Entire", _entire, advice="Give the full transcript instead.")
