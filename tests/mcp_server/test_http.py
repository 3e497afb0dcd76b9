"""The server over HTTP: who gets in, and who does not."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from core.errors import SettingsError
from core.testing import SESSION_ID
from mcp_server.http import PATH, Address, make_app
from mcp_server.server import make_server
from tests.mcp_server.desk import Desk

TOKEN = "a-token-that-is-long-enough"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@dataclass
class Served:
    """A server that listens."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def post(self, headers: dict[str, Any] | None = None, **what: Any) -> httpx2.Response:
        with httpx2.Client(trust_env=False) as http:
            return http.post(self.url, headers={**HEADERS, **(headers or {})}, **({"json": HELLO} | what))


@contextmanager
def served(desk: Desk, token: str = "", **more: Any) -> Iterator[Served]:
    config = uvicorn.Config(lambda: None, host="127.0.0.1", port=0, log_level="error", ws="none")
    socket = config.bind_socket()
    port = socket.getsockname()[1]
    config.app = make_app(make_server(desk.config), Address("127.0.0.1", port, token, **more))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([socket])), daemon=True)
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.01)
    try:
        yield Served(port)
    finally:
        server.should_exit = True
        thread.join(10)
        socket.close()


async def test_both_eras_are_served(desk: Desk, mode: str) -> None:
    with served(desk) as at:
        async with Client(at.url, mode=mode) as client:
            status = await client.call_tool("context_status", {"session": SESSION_ID})
            listed = await client.list_resources()

    assert status.structured_content is not None
    assert status.structured_content["session"]["id"] == SESSION_ID
    assert len(listed.resources) > 2


async def test_a_token_opens_the_door_and_nothing_else_does(desk: Desk, mode: str) -> None:
    with served(desk, TOKEN) as at:
        for wrong in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", "Bearer ü"):
            refused = at.post({"authorization": wrong.encode()} if wrong else None)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer" in refused.text
            assert TOKEN not in refused.text
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False) as http:
            transport = streamable_http_client(at.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                status = await client.call_tool("context_status", {"session": SESSION_ID})

    assert not status.is_error


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1:80.evil.example", "127.0.0.1:1"])
def test_a_foreign_host_is_refused(desk: Desk, host: str) -> None:
    with served(desk) as at:
        assert at.post({"host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1.evil.example", "http://localhost:1"]
)
def test_a_foreign_page_is_refused(desk: Desk, origin: str) -> None:
    with served(desk) as at:
        assert at.post({"origin": origin}).status_code == 403


def test_names_and_pages_that_were_allowed_are_let_in(desk: Desk) -> None:
    with served(desk, hosts=("box.example",), origins=("https://page.example",)) as at:
        assert at.post().status_code == 200
        assert at.post({"host": f"localhost:{at.port}", "origin": f"http://localhost:{at.port}"}).status_code == 200
        assert at.post({"host": "box.example", "origin": "https://page.example"}).status_code == 200


def test_a_large_body_is_refused_before_it_is_read(desk: Desk) -> None:
    with served(desk) as at:
        assert at.post(json=None, content=b"x" * 10_000_000).status_code == 413
        assert at.post().status_code == 200


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (("0.0.0.0", 80), "there is no token"),
        (("192.168.1.7", 80), "there is no token"),
        (("box.example", 80), "there is no token"),
        (("127.0.0.1", 80, "short"), "less than 16 characters"),
        (("0.0.0.0", 80, TOKEN), "by which name"),
        (("::", 80, TOKEN), "by which name"),
    ],
)
def test_an_address_that_lets_anybody_in_is_refused(address: tuple[Any, ...], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        Address(*address)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("address", "host", "other"),
    [
        (Address("127.0.0.1", 80), "localhost:80", "box:80"),
        (Address("localhost", 80), "127.0.0.1:80", "box:80"),
        (Address("::1", 80), "[::1]:80", "box:80"),
        (Address("192.168.1.7", 80, TOKEN), "192.168.1.7:80", "localhost:80"),
        (Address("2001:db8::7", 80, TOKEN), "[2001:db8::7]:80", "localhost:80"),
        (Address("0.0.0.0", 80, TOKEN, ("box",)), "box:80", "0.0.0.0:80"),
        (Address("box", 80, TOKEN), "box", "localhost"),
    ],
)
def test_the_names_that_an_address_answers_to(address: Address, host: str, other: str) -> None:
    allowed = address.security.allowed_hosts

    assert host in allowed
    assert other not in allowed
