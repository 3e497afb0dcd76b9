"""Tools that take a part out of a session, and that take things back."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult
from pydantic import Field

from core.service.undo import UndoResult
from core.service.undo import undo as taken_back
from mcp_server.answers import data_answer
from mcp_server.config import Ctx, config_of
from mcp_server.consent import Consent, ask_in_place, ask_undo, require
from mcp_server.sessions import Resolved, SessionName
from mcp_server.tools.base import CHANGES, tool
from mcp_server.watch import announce
from mcp_server.words import proposals_words, snip_words, undo_words
from mcp_server.work import in_session, in_thread

Confirmed = Annotated[bool, Field(description="the person agreed; for hosts that cannot ask")]
InPlace = Annotated[bool, Field(description="append to the transcript itself instead of writing a new session")]
DryRun = Annotated[bool, Field(description="write nothing, say what it would come to")]
_Id = Annotated[str, Field(max_length=200, description="id of a message or tool call, or its start")]


async def snip_range(
    ctx: Ctx,
    file: Resolved,
    consent: Annotated[ElicitationResult[Consent], Resolve(ask_in_place)],
    session: SessionName = "current",  # noqa: ARG001 (it is resolved)
    from_id: _Id = "",
    to_id: _Id = "",
    dry_run: DryRun = False,
    in_place: InPlace = False,
    confirmed: Confirmed = False,  # noqa: ARG001 (the question takes it)
) -> CallToolResult:
    """Take messages out of the middle of a session; they stay readable by id. Without ids: proposes ranges."""
    from core.service.snip import snip, snip_proposals

    if bool(from_id) != bool(to_id):
        raise ToolError("give both from_id and to_id, or none of them for proposals")
    require(consent)
    config = config_of(ctx)
    target, known = config.target(in_place, dry_run), config.known
    if from_id:
        result = await in_thread(ctx, "snipping", lambda: snip(file, from_id, to_id, target, known))
        await announce(ctx, result.changed)
        return data_answer(result, snip_words(result))
    proposals = await in_session(
        ctx, "looking for what may go", file, lambda found: snip_proposals(found, target, known)
    )
    return data_answer(proposals, proposals_words(proposals))


async def undo(
    ctx: Ctx,
    file: Resolved,
    consent: Annotated[ElicitationResult[Consent], Resolve(ask_undo)],
    session: SessionName = "current",  # noqa: ARG001 (it is resolved)
    confirmed: Confirmed = False,  # noqa: ARG001 (the question takes it)
) -> Annotated[CallToolResult, UndoResult]:
    """Take back the newest compaction, snip or other operation of Foldmark on a session."""
    require(consent)
    config = config_of(ctx)
    result = await in_thread(ctx, "taking back", lambda: taken_back(file, config.settings.claude_dir, config.lock_dir))
    await announce(ctx, True)
    return data_answer(result, undo_words(result))


def tools() -> list[Tool]:
    """The tools of this module."""
    return [
        tool(snip_range, "Take messages out", CHANGES),
        tool(undo, "Take back", CHANGES),
    ]
