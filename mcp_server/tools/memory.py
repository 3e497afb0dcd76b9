"""The tool that keeps the notes of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult
from pydantic import Field

from core.service.pages import end_of_piece
from mcp_server.answers import data_answer, text_answer
from mcp_server.config import Ctx, config_of
from mcp_server.sessions import SessionName, session_file_of
from mcp_server.tools.base import WRITES, tool
from mcp_server.uris import memory_uri
from mcp_server.watch import announce_memory
from mcp_server.words import memory_words
from mcp_server.work import in_thread

if TYPE_CHECKING:
    from core.service.memory import MemoryUpdate

_MOST_OPERATIONS = 100
_SHOWN_CHARS = 3_000
"""Of the notes: under 1,000 tokens; goal, constraints and open tasks stand in front."""
_Operations = Annotated[
    list[dict[str, Any]],
    Field(
        max_length=_MOST_OPERATIONS,
        description='{"op": "add", "section": "goal|constraints|state|tasks|decisions|files|commands|errors|log", '
        '"text"}, {"op": "replace", "id", "text"}, {"op": "resolve" or "obsolete", "id", "evidence": message id}',
    ),
]


async def session_memory_update(
    ctx: Ctx,
    session: SessionName = "current",
    operations: _Operations = [],  # noqa: B006 (never changed; the schema shows it)
) -> CallToolResult:
    """Change the notes of a session, which outlive compactions. Without operations: notes what is new."""
    from core.memory.extract import ByRule
    from core.service.memory import edit, show, update

    file, limits = await session_file_of(session, ctx), config_of(ctx).memory_limits

    def change() -> tuple[MemoryUpdate, str]:
        if operations:
            return edit(file, operations, limits), ""
        return update(file, ByRule(), limits), show(file, limits).text

    done, notes = await in_thread(ctx, "noting", change)
    await announce_memory(ctx, done.session.id if done.changed else "")
    if operations:
        return data_answer(done, memory_words(done))
    end = end_of_piece(notes, 0, _SHOWN_CHARS)
    uri = memory_uri(done.session.id)
    rest = f"\n[{end:,} of {len(notes):,} characters shown: read on in {done.path}, or all in the resource {uri}]"
    rest = rest if end < len(notes) else ""
    return text_answer(f"{memory_words(done)}\n\n{notes[:end]}{rest}")


def tools() -> list[Tool]:
    """The tools of this module."""
    return [tool(session_memory_update, "Update a session's notes", WRITES)]
