"""Resources: the sessions of this machine, and what each of them holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ListResourcesResult, PaginatedRequestParams, Resource

from core.model import block_text
from core.service.context import context_report
from core.service.history import output as read_output
from core.service.history import stored_outputs
from core.service.pages import page_of, view_page
from core.service.session import Session, SessionRef
from core.service.sessions import list_sessions
from core.service.view import view
from mcp_server import uris
from mcp_server.answers import sent, sent_json
from mcp_server.config import Config, Ctx, config_of
from mcp_server.sessions import other_file_of, session_file_of
from mcp_server.tools.reading import MOST_PAGE_CHARS
from mcp_server.work import in_session, in_thread

T = TypeVar("T")

_LISTED = 20
"""Sessions in the list of resources: what a person picks from; the templates lead to all others."""
_MOST = 200
"""Sessions in the resource that lists them."""
_JSON = "application/json"
_DIGITS = 16


async def status(session: str, ctx: Ctx) -> str:
    """What fills the window of a session."""
    return sent_json((await _of(session, ctx, context_report)).to_json())


async def active_view(session: str, ctx: Ctx, offset: str = "0") -> str:
    """The messages of the next model call, in pages."""
    start = _number(offset)
    return sent_json((await _of(session, ctx, lambda found: view_page(view(found), start, MOST_PAGE_CHARS))).to_json())


async def summary(session: str, ctx: Ctx) -> str:
    """What stands for the messages that were compacted."""

    def texts(found: Session) -> str:
        parts = (b for m in found.messages if m.kind == "summary" for b in m.content)
        return "\n\n".join(filter(None, map(block_text, parts)))

    text = await _of(session, ctx, texts)
    if not text:
        raise ResourceNotFoundError(f"{session} was not compacted: it has no summary")
    return sent(text)


async def memory(session: str, ctx: Ctx) -> str:
    """The notes of a session."""
    from core.service.memory import show

    limits = config_of(ctx).memory_limits
    with _refused():
        file = await session_file_of(session, ctx)
        view = await in_thread(ctx, "reading", lambda: show(file, limits))
    if not view.exists:
        raise ResourceNotFoundError(f"there are no notes of {session} yet: session_memory_update makes them")
    return sent(view.text)


async def outputs(session: str, ctx: Ctx) -> str:
    """What lies in files beside a transcript, by id."""
    return sent_json((await _of(session, ctx, stored_outputs)).to_json())


async def one_output(session: str, output: str, ctx: Ctx, offset: str = "0") -> str:
    """The text of a tool result or message, in pages."""
    start = _number(offset)
    page = await _of(
        session, ctx, lambda found: page_of(read_output(found, output), start, MOST_PAGE_CHARS), whole=True
    )
    more = f"\n[go on with offset={page.next_offset}]" if page.next_offset is not None else ""
    return page.text + more


async def handover(session: str, ctx: Ctx) -> tuple[SessionRef, str]:
    """Another session than the one that calls: which one that is, and the session in short."""
    from core.service.brief import in_short

    file = await other_file_of(session, ctx)
    return await _of(str(file.path), ctx, lambda found: (found.ref, in_short(found)))


def register(server: MCPServer[Config], config: Config) -> None:
    """Adds the resources to a server; its list also names the newest sessions."""
    claude_dir = config.settings.claude_dir

    @server.resource(uris.SESSIONS, title="Sessions", mime_type=_JSON)
    def sessions() -> str:
        """The sessions of this machine, newest first."""
        return sent_json(list_sessions(claude_dir, limit=_MOST).to_json())

    for uri, name, function, mime_type in (
        (uris.STATUS, "Status", status, _JSON),
        (uris.VIEW, "Active view", active_view, _JSON),
        (uris.SUMMARY, "Summary", summary, "text/markdown"),
        (uris.MEMORY, "Notes", memory, "text/markdown"),
        (uris.OUTPUTS, "Stored outputs", outputs, _JSON),
        (uris.OUTPUT, "One output", one_output, "text/plain"),
    ):
        server.resource(uri, title=name, mime_type=mime_type)(function)
    low = server._lowlevel_server  # noqa: SLF001 (the SDK has no public way to a list that changes)

    async def listed(_ctx: ServerRequestContext[Config], _params: PaginatedRequestParams) -> ListResourcesResult:
        newest = await anyio.to_thread.run_sync(_newest, claude_dir)
        return ListResourcesResult(resources=[*await server.list_resources(), *newest])

    low.add_request_handler("resources/list", PaginatedRequestParams, listed)


def _newest(claude_dir: Path) -> list[Resource]:
    lines = list_sessions(claude_dir, limit=_LISTED).sessions
    return [
        Resource(
            uri=uris.status_uri(line.id),
            name=line.id,
            title=sent(line.title or line.id),
            description=f"{line.project}, {line.updated}",
            mime_type=_JSON,
        )
        for line in lines
    ]


async def _of(session: str, ctx: Ctx, read: Callable[[Session], T], whole: bool = False) -> T:
    """What a function reads of a session."""
    with _refused():
        return await in_session(ctx, "reading", await session_file_of(session, ctx), read, whole=whole)


@contextmanager
def _refused() -> Iterator[None]:
    """An error that a reader is told, as that of a resource."""
    try:
        yield
    except ToolError as error:
        raise ResourceNotFoundError(str(error)) from None


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < _DIGITS:
        return int(text)
    raise ResourceNotFoundError("offset is a whole number, from 0 up")
