"""The server over streamable HTTP: on this machine alone, unless a token and the names of the machine are given."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from ipaddress import ip_address

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import SettingsError
from mcp_server.config import Config

PATH = "/mcp"
LEAST_TOKEN_CHARS = 16
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, who may come, and what they have to show."""

    host: str
    port: int
    token: str = ""
    hosts: tuple[str, ...] = ()
    """Names that the machine is called by, beside the address itself."""
    origins: tuple[str, ...] = ()
    """Web pages that may call it, beside those of this machine."""

    def __post_init__(self) -> None:
        """Raises SettingsError for what would let anybody in."""
        if self.token and len(self.token) < LEAST_TOKEN_CHARS:
            raise SettingsError(
                f"the token has less than {LEAST_TOKEN_CHARS} characters", "take a random one: openssl rand -hex 32"
            )
        if not self.is_loopback and not self.token:
            raise SettingsError(
                f"{self.host} can be reached from other machines, and there is no token",
                "set FOLDMARK_TOKEN to a random text, or listen on 127.0.0.1",
            )
        if not self.is_loopback and self._is_any and not self.hosts:
            raise SettingsError(
                f"{self.host} is every address of this machine: by which name it is called cannot be told",
                "name it with --allow-host",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine gets there."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:  # a name
            return False

    @property
    def _is_any(self) -> bool:
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def security(self) -> TransportSecuritySettings:
        """The Host and Origin headers that are answered: a page of the web may not call through a browser."""
        own = _LOOPBACK if self.is_loopback else () if self._is_any else (_bracketed(self.host),)
        hosts = [name for host in (*own, *self.hosts) for name in (host, f"{host}:{self.port}")]
        origins = [f"{scheme}://{name}" for name in hosts for scheme in ("http", "https")]
        return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*origins, *self.origins])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Bearer:
    """Lets requests through that show the token; of all others nothing is read but the headers."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 401 to a request without the token."""
        if scope["type"] != "http" or self._has_token(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        refused = PlainTextResponse(
            "Foldmark wants the header 'Authorization: Bearer <token>' with the token that it was started with",
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        await refused(scope, receive, send)

    def _has_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), self._token)


def make_app(server: MCPServer[Config], address: Address) -> Starlette:
    """The server as a web application."""
    app = server.streamable_http_app(streamable_http_path=PATH, host=address.host, transport_security=address.security)
    if address.token:
        app.add_middleware(Bearer, token=address.token)
    return app
