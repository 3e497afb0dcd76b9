"""The server: everything it offers, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.server import CacheHint, MCPServer, ServerRequestContext
from mcp.server.apps import Apps
from mcp.server.context import HandlerResult
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolRequestParams

from core import __version__
from mcp_server import app, complete, prompts, resources
from mcp_server.answers import error_answer
from mcp_server.config import Config
from mcp_server.tools import all_tools
from mcp_server.tools.base import wrong_arguments
from mcp_server.watch import Watch

INSTRUCTIONS = (
    "Foldmark measures and compacts sessions of AI agents; nothing that it takes out is lost. Use it when a context "
    "fills up (context_status, compact_session, snip_range), when a stand-in names an id whose text you need "
    "(read_persisted_output), or to find what was said before a compaction (search_session). The session is the one "
    "that calls, unless another is named."
)
"""The first 512 characters are what every host passes on."""


def make_server(config: Config, watch: Watch | None = None) -> MCPServer[Config]:
    """A server that answers for one user of this machine; how it is reached is up to whoever runs it."""
    watch = watch or Watch(config)

    @asynccontextmanager
    async def lifespan(_server: MCPServer[Config]) -> AsyncIterator[Config]:
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run)
            yield config
            group.cancel_scope.cancel()

    tools = all_tools()
    server = MCPServer(
        "foldmark",
        title="Foldmark",
        version=__version__,
        instructions=INSTRUCTIONS,
        tools=tools,
        extensions=[_view()],
        lifespan=lifespan,
        subscriptions=watch,
        log_level="WARNING",
        cache_hints={"tools/list": CacheHint(ttl_ms=3_600_000, scope="public")},
    )
    resources.register(server, config)
    prompts.register(server)
    complete.register(server, config)
    watch.serve(server)
    _check_arguments(server, {tool.name: tool for tool in tools})
    return server


def _view() -> Apps:
    apps = Apps()
    apps.add_html_resource(
        app.VIEW_URI, app.page(), name="context", title="What fills the context", prefers_border=True
    )
    return apps


def _check_arguments(server: MCPServer[Config], tools: dict[str, Tool]) -> None:
    """Has every call refused whose arguments are not what the tool takes."""
    low = server._lowlevel_server  # noqa: SLF001 (middleware would have to shape its answers for each era by itself)
    entry = low.get_request_handler("tools/call")
    assert entry is not None  # every MCPServer has one

    async def checked(ctx: ServerRequestContext[Config], params: CallToolRequestParams) -> HandlerResult:
        known = tools.get(params.name)
        if known and (wrong := wrong_arguments(known, params.arguments or {})):
            return error_answer(f"Error executing tool {params.name}: {wrong}")  # as the SDK begins all others
        return await entry.handler(ctx, params)

    low.add_request_handler("tools/call", CallToolRequestParams, checked)
