"""What a caller reads: errors that say what to do, and results as data with a text for people."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from core.errors import FoldmarkError
from core.redact.text import redact
from core.redact.values import redact_json

_log = logging.getLogger(__name__)

_TOOL_WORDS = {
    "foldmark sessions": "list_sessions",
    "foldmark search": "search_session",
    "foldmark output SESSION lists the ids": "search_session finds ids",
    "foldmark output": "read_persisted_output",
    "foldmark undo": "undo",
    "(without --in-place)": "(without in_place)",
    "--in-place": "in_place",
    "--keep": "keep_tokens",
    "--summarizer": "summarizer",
}
"""What the hints of the core call things on the command line, and what they are called here."""


def text_answer(text: str) -> CallToolResult:
    """Text alone, without secrets: for what is long, and no data."""
    return CallToolResult(content=[TextContent(type="text", text=redact(text))])


def data_answer(result: BaseModel, text: str, **meta: Any) -> CallToolResult:
    """What the command line prints with --json, but for what is as always, and a text; most hosts show one."""
    answer = text_answer(text)
    answer.structured_content = redact_json(result.model_dump(mode="json", exclude_defaults=True))[0]
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
        text = f"{error}. {_in_tool_words(error.hint)}" if error.hint else str(error)
        return redact(text)
    if isinstance(error, OSError):
        return redact(f"{error.strerror or type(error).__name__}: {error.filename or ''}".rstrip(": "))
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("a fault: %s\n%s", type(error).__name__, place)
    return (
        f"a fault in Foldmark ({type(error).__name__}); nothing is known to be wrong with the call. Try foldmark check"
    )


def _in_tool_words(hint: str) -> str:
    for command, tool in _TOOL_WORDS.items():
        hint = hint.replace(command, tool)
    return hint
