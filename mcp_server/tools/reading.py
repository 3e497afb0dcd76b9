"""Tools that read: what fills a context, what a session held, which sessions there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult
from pydantic import Field

from core.defaults import LEAST_WINDOW_TOKENS, MOST
from core.service.context import ContextReport, context_report
from core.service.history import SearchResult, output, search
from core.service.pages import OutputPage, page_of
from core.service.session import opened
from core.service.sessions import SessionList
from core.service.sessions import list_sessions as listed
from core.transcript.projects import SessionFile
from mcp_server.answers import data_answer, text_answer
from mcp_server.app import VIEW_META
from mcp_server.config import Ctx, config_of
from mcp_server.sessions import SessionName, session_file_of
from mcp_server.tools.base import LOADED, READS, tool
from mcp_server.words import context_words, page_words, search_words, sessions_words
from mcp_server.work import in_process, in_session, in_thread

PAGE_CHARS = 8_000
"""Of a text, when nothing else is asked for: what every host passes on whole."""
MOST_PAGE_CHARS = 100_000
_MOST_HITS = 200
_MOST_SESSIONS = 500
_LINES = 1 << 62
_Folders = tuple[Path, ...]
_RESULT_META = {"anthropic/maxResultSizeChars": MOST_PAGE_CHARS + 1_000}
"""Claude Code puts longer texts than 50,000 characters into a file, unless a tool says so."""


async def context_status(
    ctx: Ctx,
    session: SessionName = "current",
    window_tokens: Annotated[
        int | None, Field(description="else the model's own", ge=LEAST_WINDOW_TOKENS, le=MOST)
    ] = None,
) -> Annotated[CallToolResult, ContextReport]:
    """What fills a session's context window: tokens by kind and tool, the largest parts with their ids, thresholds."""
    file, measuring = await session_file_of(session, ctx), config_of(ctx).measuring
    if window_tokens:
        measuring = replace(measuring, window_tokens=window_tokens)
    report = await in_session(ctx, "measuring", file, context_report, measuring=measuring)
    return data_answer(report, context_words(report))


async def search_session(
    ctx: Ctx,
    text: Annotated[str, Field(min_length=1, max_length=1_000, description="a part of a line")],
    session: SessionName = "current",
    regex: Annotated[bool, Field(description="text is a regular expression, in which case counts")] = False,
    limit: Annotated[int, Field(ge=1, le=_MOST_HITS, description="of lines")] = 20,
) -> Annotated[CallToolResult, SearchResult]:
    """Search all that a session ever held, also what was compacted, snipped or stored, line by line."""
    file, inside = await session_file_of(session, ctx), config_of(ctx).caller.inside
    if regex:
        hits = await in_process(ctx, "searching", _searched, file, inside, text, limit)
    else:
        hits = await in_session(ctx, "searching", file, lambda found: search(found, text, limit=limit), whole=True)
    return data_answer(hits, search_words(hits))


async def read_persisted_output(
    ctx: Ctx,
    id: Annotated[  # noqa: A002 (what the caller names it)
        str, Field(min_length=1, max_length=200, description="of a tool result or message, or its start")
    ],
    session: SessionName = "current",
    from_line: Annotated[int, Field(ge=1, description="of the text, the first is 1")] = 1,
    to_line: Annotated[int, Field(ge=0, description="0: the last")] = 0,
    search: Annotated[str, Field(max_length=1_000, description="regular expression: only lines that match")] = "",
    offset: Annotated[int, Field(ge=0, description="characters to skip")] = 0,
    max_chars: Annotated[int, Field(ge=200, le=MOST_PAGE_CHARS, description="in one answer")] = PAGE_CHARS,
) -> CallToolResult:
    """Read a tool result or message by its id, also one that was stored, snipped, cleared or compacted."""
    file, inside = await session_file_of(session, ctx), config_of(ctx).caller.inside
    lines = (from_line, to_line or _LINES)
    if search:
        page = await in_process(ctx, "reading", _matching, file, inside, id, lines, search, offset, max_chars)
    else:
        page = await in_session(
            ctx, "reading", file, lambda found: page_of(output(found, id, lines), offset, max_chars), whole=True
        )
    return text_answer(page_words(page))


async def list_sessions(
    ctx: Ctx,
    folder: Annotated[
        str, Field(max_length=4_096, description="only those that were started there, else those in it")
    ] = "",
    limit: Annotated[int, Field(ge=1, le=_MOST_SESSIONS, description="of sessions")] = 10,
) -> Annotated[CallToolResult, SessionList]:
    """List the sessions on this machine, newest first."""
    config = config_of(ctx)
    if "\0" in folder:
        raise ToolError("a folder has no NUL in its name")
    where = config.folder / folder if folder else None
    inside = config.caller.inside
    found = await in_thread(ctx, "listing", lambda: listed(config.settings.claude_dir, where, limit, inside))
    return data_answer(found, sessions_words(found))


def _searched(file: SessionFile, inside: _Folders, expression: str, limit: int) -> SearchResult:
    with opened(file, whole=True, inside=inside) as found:
        return search(found, expression, regex=True, limit=limit)


def _matching(
    file: SessionFile,
    inside: _Folders,
    ident: str,
    lines: tuple[int, int],
    grep: str,
    offset: int,
    max_chars: int,
) -> OutputPage:
    with opened(file, whole=True, inside=inside) as found:
        return page_of(output(found, ident, lines, grep), offset, max_chars)


def tools() -> list[Tool]:
    """The tools of this module."""
    return [
        tool(context_status, "What fills the context", READS, {**LOADED, **VIEW_META}),
        tool(read_persisted_output, "Read a stored output", READS, {**LOADED, **_RESULT_META}),
        tool(search_session, "Search a session", READS),
        tool(list_sessions, "List sessions", READS),
    ]
