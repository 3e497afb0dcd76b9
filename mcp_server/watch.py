"""Telling clients that sessions changed: transcripts are looked at only as long as somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import MCPServer, NotificationOptions, ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types import INVALID_PARAMS, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from core.transcript.projects import session_files
from mcp_server.config import Config, Ctx
from mcp_server.uris import SCHEME, SESSIONS, memory_uri, session_uris

_MOST_URIS = 1_000
"""Of one client: it cannot make the server remember more."""


async def announce(ctx: Ctx, changed: bool) -> None:
    """Says that there is another session, or one less, after a tool wrote."""
    if changed:
        await ctx.notify_resources_changed()
        await ctx.session.send_resource_list_changed()


async def announce_memory(ctx: Ctx, session_id: str) -> None:
    """Says that the notes of a session changed; "" for none."""
    if session_id:
        await ctx.notify_resource_updated(memory_uri(session_id))


class Watch(InMemorySubscriptionBus):
    """Who wants to know what, in both protocol eras, and what changed.

    From 2026-07-28 on a client listens to the bus; before, it subscribes to single resources.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._config = config
        self._listening = 0
        self._subscribed: dict[Connection, set[str]] = {}
        self._wanted = anyio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register a listener; the transcripts are watched until the last one is gone."""
        stop = super().subscribe(listener)
        self._listening += 1
        self._wanted.set()
        left = iter((True,))

        def unsubscribe() -> None:
            stop()
            self._listening -= next(left, False)

        return unsubscribe

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants to know anything."""
        return self._listening > 0 or bool(self._subscribed)

    async def run(self) -> None:
        """Looks, and tells, until it is cancelled."""
        while True:
            await self._wanted.wait()
            seen = await self._look()
            while self.is_wanted:
                await anyio.sleep(self._config.poll_s)
                now = await self._look()
                await self._tell(seen, now)
                seen = now
            self._wanted = anyio.Event()

    async def _look(self) -> dict[str, tuple[float, int]]:
        files = await anyio.to_thread.run_sync(session_files, self._config.settings.claude_dir)
        return {file.id: (file.mtime, file.size_bytes) for file in files}

    async def _tell(self, before: dict[str, tuple[float, int]], now: dict[str, tuple[float, int]]) -> None:
        if before.keys() != now.keys():
            await self.publish(ResourcesListChanged())
            for connection in [*self._subscribed]:
                await connection.send_resource_list_changed()
        changed = [ident for ident in now if before.get(ident) != now[ident]]
        for uri in _uris_of(changed):
            await self.updated(uri)

    async def updated(self, uri: str) -> None:
        """Says that a resource changed, to all who asked for it."""
        await self.publish(ResourceUpdated(uri=uri))
        for connection, uris in [*self._subscribed.items()]:
            if uri in uris:
                await connection.send_resource_updated(uri)

    def serve(self, server: MCPServer[Config]) -> None:
        """Has a server take subscriptions of the handshake era, and announce that lists of resources change."""
        low = server._lowlevel_server  # noqa: SLF001 (the SDK has no public way to its handlers)
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._on_subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._on_unsubscribe)
        options = low.create_initialization_options

        def create(*args: Any, **kwargs: Any) -> Any:
            return options(*(args or (NotificationOptions(resources_changed=True),)), **kwargs)

        low.create_initialization_options = create  # type: ignore[method-assign]

    async def _on_subscribe(self, ctx: ServerRequestContext[Config], params: SubscribeRequestParams) -> EmptyResult:
        connection, uri = _connection(ctx), str(params.uri)
        uris = self._subscribed.get(connection, set())
        if not uri.startswith(SCHEME) or len(uris) >= _MOST_URIS:
            raise MCPError(INVALID_PARAMS, f"nothing tells when this changes, or it is one of too many: {uri[:200]}")
        if connection not in self._subscribed:
            connection.exit_stack.callback(self._subscribed.pop, connection, None)
        self._subscribed[connection] = {*uris, uri}
        self._wanted.set()
        return EmptyResult()

    async def _on_unsubscribe(self, ctx: ServerRequestContext[Config], params: UnsubscribeRequestParams) -> EmptyResult:
        connection = _connection(ctx)
        with suppress(KeyError):
            self._subscribed[connection].discard(str(params.uri))
            if not self._subscribed[connection]:
                del self._subscribed[connection]
        return EmptyResult()


def _connection(ctx: ServerRequestContext[Config]) -> Connection:
    """The connection of a request: it outlives the request, and knows when it ends."""
    return ctx.session._connection  # noqa: SLF001 (nothing public outlives the request)


def _uris_of(changed: list[str]) -> Iterator[str]:
    if changed:
        yield SESSIONS
    for ident in changed:
        yield from session_uris(ident)
