"""PostToolUse: a result that is too large goes into the store, and a stand-in reaches the model and the transcript.

Where anything fails, the result stays whole.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from core.errors import FoldmarkError
from core.model import JSON, text_block
from core.service.hooks.given import Given, decoded
from core.settings import Settings

_FIELDS = {
    "Bash": "stdout",
    "PowerShell": "stdout",
    "Grep": "content",
    "WebFetch": "result",
    "Agent": "content",
    "Task": "content",
}
"""Where the tools of the client have what the model reads.  Other tools of its own either show files, which are read
again more easily than outputs, or say little."""
_MCP = "mcp__"
_WORTH_CHARS = 10_000
"""A shorter result is stored for its own size only: it takes twenty of them to fill a message."""


class ToolUse(Given, frozen=True):
    """A call that was answered; `tool_response` is what the client keeps of the answer."""

    tool_name: str = ""
    agent_id: str | None = None
    tool_use_id: str = ""
    tool_response: object = None

    @property
    def caller(self) -> Path:
        """The transcript that the call is in: that of a subagent lies in the folder of the session."""
        if not self.agent_id:
            return self.transcript
        return self.transcript.with_suffix("") / "subagents" / f"agent-{self.agent_id}.jsonl"


def post_tool_use(raw: bytes, settings: Settings) -> str:
    """The result in its tool's own shape with a stand-in for its text, or "" where it stays as it is."""
    least_chars = min(settings.result_chars, max(_WORTH_CHARS, settings.preview_bytes))
    if len(raw) <= least_chars:  # no result is longer than its input
        return ""
    use = decoded(raw, ToolUse)
    text = _text_of(use)
    if text is None or not use.tool_use_id or len(text) <= least_chars or not _is_too_much(use, text, settings):
        return ""
    shown = _stored(use, text, settings.preview_bytes) if use.is_kept else ""
    if not shown:
        return ""
    said: JSON = {"hookEventName": "PostToolUse", "updatedToolOutput": _with(use, shown)}
    return msgspec.json.encode({"hookSpecificOutput": said}).decode()


def _is_too_much(use: ToolUse, text: str, settings: Settings) -> bool:
    """Whether a result is too large by itself, or with those that came before it of the same response."""
    if len(text) > settings.result_chars:
        return True
    from core.service.hooks.siblings import answered_chars

    with suppress(OSError, FoldmarkError):  # then it is not known, and the result is small enough
        return answered_chars(use.caller, use.tool_use_id) + len(text) > settings.results_chars
    return False


def _stored(use: ToolUse, text: str, preview_bytes: int) -> str:
    """What stands for a text that is in the store now; "" for one that nothing shorter can stand for, or must stay."""
    from core.redact.text import redact
    from core.stages.results import named_by
    from core.stages.stand_in import EXEMPT, stand_in
    from core.transcript.blob import blob_of
    from core.transcript.page import body_of
    from core.transcript.store import Store

    if named_by(use.tool_name, EXEMPT):
        return ""
    store, plain = Store.beside(use.transcript), redact(text)
    blob = blob_of(use.tool_use_id, plain)
    shown = stand_in(use.tool_name, len(text), plain, blob, str(store.folder), preview_bytes)
    if len(shown) >= len(text):
        return ""
    store.write({blob.file: [blob.content]}, [body_of(blob, use.tool_name)])
    return shown


def _text_of(use: ToolUse) -> str | None:
    """What the model would read; None for what holds images, was stored by the client, or is of no known shape."""
    response = use.tool_response
    if use.tool_name.startswith(_MCP):
        return _joined(response)
    if not isinstance(response, dict) or response.get("isImage") or response.get("persistedOutputPath"):
        return None
    return _joined(response.get(_FIELDS.get(use.tool_name, "")))


def _joined(content: object) -> str | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [
        block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None for block in content
    ]
    return None if None in texts else "\n".join(map(str, texts))


def _with(use: ToolUse, text: str) -> JSON:
    """The response with another text, everything else as it was."""
    response = cast("JSON", use.tool_response)
    if not isinstance(response, dict):
        return _shaped_like(response, text)
    field = _FIELDS[use.tool_name]
    return {**response, field: _shaped_like(response[field], text)}


def _shaped_like(content: JSON, text: str) -> JSON:
    return [text_block(text)] if isinstance(content, list) else text
