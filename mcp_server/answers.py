"""What a caller reads: errors that say what to do, and results as data with a text for people."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent

from core.errors import FoldmarkError
from core.model import JSON
from core.redact.text import redact
from core.redact.values import redact_json
from core.results import Result
from core.transcript.blob import json_bytes, utf8

_log = logging.getLogger(__name__)

WORDS = {
    "sessions": "list_sessions",
    "search": "search_session",
    "output": "read_persisted_output",
    "outputs": "search_session",
    "context": "context_status",
    "proposals": "snip_range without ids",
    "compact": "compact_session",
    "undo": "undo",
    "notes": "session_memory_update",
    "strip": "the command line",
    "media": "the command line",
    "secrets": "the command line",
    "report": "the command line",
    "ask": "the command line",
    "keep": "keep_tokens",
    "up_to": "up_to",
    "from": "from_id",
    "instructions": "instructions",
    "summary": "summary",
    "model": "the command line",
    "no_fallback": "the command line",
    "force": "the command line",
    "in_place": "in_place",
    "summarizer": "summarizer",
    "full": "how=full",
    "markdown": "Markdown",
    "pick": "the command line",
}
"""What the ways that hints name are called here."""


def sent(text: str) -> str:
    """A text as it leaves: without secrets, and all of it UTF-8, as a file's name need not be."""
    return utf8(redact(text)).decode()


def text_answer(text: str) -> CallToolResult:
    """Text alone, without secrets: for what is long, and no data."""
    return CallToolResult(content=[TextContent(type="text", text=sent(text))])


def sent_json(value: JSON) -> str:
    """The JSON of a value as it leaves: as `sent`."""
    return json_bytes(redact_json(value)[0]).decode()


def data_answer(result: Result, text: str, **meta: Any) -> CallToolResult:
    """What the command line prints with --json, but for what is as always, and a text; most hosts show one."""
    answer = text_answer(text)
    answer.structured_content = json.loads(sent_json(result.to_json(defaults=False)))
    answer.meta = meta or None
    return answer


def error_answer(text: str) -> CallToolResult:
    """A call that cannot be answered; nothing was read or written for it."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


@contextmanager
def told() -> Iterator[None]:
    """Turns every error into one that the caller reads: what, why, and what to do, without secrets."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (the last resort: a fault must not end the server)
        raise ToolError(explained(error)) from None


def explained(error: Exception) -> str:
    """An error in one or two sentences; of a fault the log gets the place, and nothing of what was worked on."""
    if isinstance(error, FoldmarkError):
        return sent(". ".join(filter(None, (str(error), _capital(error.hint_in(WORDS))))))
    if isinstance(error, OSError):
        return sent(f"{error.strerror or type(error).__name__}: {error.filename or ''}".rstrip(": "))
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("a fault: %s\n%s", type(error).__name__, place)
    return f"a fault in Foldmark ({type(error).__name__}); nothing is known to be wrong with the call"


def _capital(hint: str) -> str:
    """The hint as a sentence of its own, unless it begins with a name."""
    first = hint.partition(" ")[0].rstrip(",:")
    return hint[:1].upper() + hint[1:] if first.isalpha() else hint
