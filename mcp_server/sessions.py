"""The `session` argument of tools, resources and prompts."""

from __future__ import annotations

from typing import Annotated

import anyio
from mcp.server.mcpserver import Resolve
from pydantic import Field

from core.service.find import CURRENT, another, calling, current, named
from core.transcript.projects import SessionFile
from mcp_server.answers import told
from mcp_server.config import Ctx, config_of

CALL_META = "claudecode/toolUseId"
"""Where Claude Code says which of its calls this is."""
_AGAIN_S = 0.05

SessionName = Annotated[
    str, Field(max_length=4_096, description="id, start of an id, path, title, 'latest' or 'current'")
]


async def session_file_of(name: str, ctx: Ctx) -> SessionFile:
    """The transcript of a session that was named; raises ToolError.

    `current` is the session whose transcript holds the call that is being answered, which the client may be about to
    write; where the client does not say which call it is, what it has open.
    """
    caller = config_of(ctx).caller
    with told():
        if name != CURRENT:
            return await anyio.to_thread.run_sync(named, name, caller)
        if found := await _calling(ctx):
            return found
        return await anyio.to_thread.run_sync(current, caller)


async def other_file_of(name: str, ctx: Ctx) -> SessionFile:
    """The transcript of a session that is not the one that calls; raises ToolError."""
    with told():
        return await anyio.to_thread.run_sync(another, name, config_of(ctx).caller)


async def _calling(ctx: Ctx) -> SessionFile | None:
    config = config_of(ctx)
    call = (ctx.request_context.meta or {}).get(CALL_META)
    if not isinstance(call, str):
        return None
    until = anyio.current_time() + config.call_wait_s
    while (found := await anyio.to_thread.run_sync(calling, call, config.caller)) is None:
        if anyio.current_time() >= until:
            return None
        await anyio.sleep(_AGAIN_S)
    return found


async def resolved(session: str, ctx: Ctx) -> SessionFile:
    """The transcript of a tool's `session`, found once a call: a person is asked about the one that is then changed."""
    return await session_file_of(session, ctx)


Resolved = Annotated[SessionFile, Resolve(resolved)]
