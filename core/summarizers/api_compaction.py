"""The API's own compaction writes the summary: one request, one signed block.

What is kept is the text of the block: no client sends the block itself with the header that it needs.  The
conversation still has to fit into the window, as images in words and results as they are; it is not quoted, and there
is no smaller form to fall back on.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.api.endpoint import Endpoint
from core.api.metered import billed_usage
from core.context.tokens.models import Models, load
from core.context.view import api_messages
from core.errors import SummaryRejected
from core.model import JSON, Message, text_block, tool_uses, without_thinking
from core.summarizers.answer import Written, read
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.compose import composed, redacted, text_chars

_ANSWER_TOKENS = 8_000
"""Covers thinking too: the API wants several thousand."""
_INSTRUCTIONS_CHARS = 16_384
"""The API takes no more."""
_REFUSED = ("context_management", "stop_sequences", "thread")
"""What cannot be sent along."""


class ApiCompaction:
    """Summaries by the compaction `compact-2026-09-04`; `model` has to be 4.6 or later."""

    name = "api"

    def __init__(self, endpoint: Endpoint, model: str, models: Models | None = None) -> None:
        self._endpoint = endpoint
        self._id = model
        self._model = (models or load()).lookup(model)

    def summarize(self, request: SummaryRequest) -> Summary:
        """The summary.

        Raises `SummaryRejected` where the API wrote none, `ApiError` where it did not answer.
        """
        safe = redacted(request)
        reply = self._endpoint.send(self._body(safe))
        block = next((b for b in reply.content if b.get("type") == "compaction"), None)
        text = block.get("content") if block else None
        if not isinstance(text, str) or not text.strip():
            read(reply)  # says what is there instead
            raise SummaryRejected("the API wrote no compaction block", "choose another {summarizer}")
        writer = f"the API ({reply.model or self._id})"
        return composed(safe, Written(text.strip()), self.name, writer, billed_usage(reply))

    def _body(self, request: SummaryRequest) -> dict[str, JSON]:
        wanted: dict[str, JSON] = {"type": "summarize"}
        if request.instructions.strip():
            wanted["instructions"] = request.instructions.strip()[:_INSTRUCTIONS_CHARS]
        if request.fork is not None:
            kept = {key: value for key, value in request.fork.items() if key not in _REFUSED}
            return {**kept, "max_tokens": self._room(request), "compaction": wanted}
        messages = [m for m in request.messages if m.kind not in ("attachment", "meta")]
        if request.previous.strip():
            messages = [Message("user", "summary", (text_block(request.previous),)), *messages]
        return {
            "model": self._id,
            "max_tokens": self._room(request),
            "tools": _tools(messages),
            "messages": list[JSON](api_messages([without_thinking(m) for m in messages])),
            "compaction": wanted,
        }

    def _room(self, request: SummaryRequest) -> int:
        return min(self._model.max_output_tokens, _ANSWER_TOKENS + text_chars(request) // 2)


def _tools(messages: Sequence[Message]) -> list[JSON]:
    """The least that the API wants to know of tools that were called."""
    names = dict.fromkeys(str(call.get("name")) for message in messages for call in tool_uses(message))
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]
