"""What clients are told when sessions change."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from core.testing import SESSION_ID, Transcript
from core.transcript.projects import SessionFile, session_files
from mcp_server import uris, watch
from mcp_server.server import make_server
from tests.mcp_server.desk import OTHER, Desk
from tests.mcp_server.test_writing import RANGE

STATUS = uris.status_uri(OTHER)


def say_more(path: Path) -> None:
    Transcript(OTHER).prompt("Add a cart").answer("Added.").prompt("And now?").write(path)


class Ear:
    """Hears what a server says by itself."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def __call__(self, message: Any) -> None:
        params = getattr(message, "params", None)
        self.heard.append(" ".join(filter(None, (message.method, str(getattr(params, "uri", "") or "")))))

    async def wait_for(self, text: str) -> None:
        with anyio.fail_after(10):
            while text not in self.heard:
                await anyio.sleep(0.01)


async def subscribed(client: Client, uri: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the handshake era is on its way out, and is served until then
        await client.subscribe_resource(uri)


async def test_a_listener_hears_of_what_is_written_to_a_session(desk: Desk) -> None:
    async with desk.client() as client, client.listen(resource_subscriptions=[STATUS]) as events:
        await anyio.sleep(0.1)
        say_more(desk.other)
        with anyio.fail_after(10):
            event = await anext(aiter(events))

    assert event == ResourceUpdated(uri=STATUS)


async def test_a_listener_hears_of_new_sessions(desk: Desk) -> None:
    async with desk.client() as client, client.listen(resources_list_changed=True) as events:
        await anyio.sleep(0.1)
        Transcript("33333333-1111-4111-8111-111111111111").prompt("x").write(desk.other.with_name("3.jsonl"))
        with anyio.fail_after(10):
            event = await anext(aiter(events))

    assert event == ResourcesListChanged()


async def test_a_listener_hears_at_once_of_what_a_tool_makes(desk: Desk) -> None:
    async with desk.with_(poll_s=1_000).client() as client, client.listen(resources_list_changed=True) as events:
        await client.call_tool("snip_range", RANGE)
        with anyio.fail_after(10):
            event = await anext(aiter(events))

    assert event == ResourcesListChanged()


async def test_a_subscriber_of_the_handshake_era_hears_the_same(desk: Desk) -> None:
    ear = Ear()
    async with desk.client("legacy", message_handler=ear) as client:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.subscribe
        assert client.server_capabilities.resources.list_changed
        await subscribed(client, STATUS)
        await anyio.sleep(0.1)
        say_more(desk.other)
        await ear.wait_for(f"notifications/resources/updated {STATUS}")
        Transcript("33333333-1111-4111-8111-111111111111").prompt("x").write(desk.other.with_name("3.jsonl"))
        await ear.wait_for("notifications/resources/list_changed")

    assert all(SESSION_ID not in line for line in ear.heard)


async def test_a_client_of_the_handshake_era_hears_at_once_of_what_a_tool_makes(desk: Desk) -> None:
    ear = Ear()
    async with desk.with_(poll_s=1_000).client("legacy", message_handler=ear) as client:
        await client.call_tool("snip_range", RANGE)
        await ear.wait_for("notifications/resources/list_changed")


async def test_nothing_is_looked_at_unless_somebody_wants_to_know(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []

    def look(claude_dir: Path) -> list[SessionFile]:
        looks.append(claude_dir)
        return session_files(claude_dir)

    monkeypatch.setattr(watch, "session_files", look)
    async with desk.client("legacy") as client:
        await anyio.sleep(0.1)
        assert looks == []
        await subscribed(client, STATUS)
        await anyio.sleep(0.1)
        assert len(looks) > 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.unsubscribe_resource(STATUS)
            await client.unsubscribe_resource(STATUS)
        await anyio.sleep(0.1)
        before = len(looks)
        await anyio.sleep(0.1)
        assert len(looks) == before
        await subscribed(client, STATUS)
        await anyio.sleep(0.1)
        assert len(looks) > before


async def test_who_is_gone_is_not_remembered(desk: Desk) -> None:
    bus = watch.Watch(desk.config)
    server = make_server(desk.config, bus)
    async with Client(server, mode="legacy") as client:
        await subscribed(client, STATUS)
        assert bus.is_wanted
    await anyio.sleep(0.05)
    assert not bus.is_wanted
    async with Client(server) as client:
        async with client.listen(resource_subscriptions=[STATUS]):
            assert bus.is_wanted
        await anyio.sleep(0.1)

    assert not bus.is_wanted


def test_to_stop_twice_is_to_stop_once(desk: Desk) -> None:
    bus = watch.Watch(desk.config)
    first, second = bus.subscribe(lambda _event: None), bus.subscribe(lambda _event: None)
    first()
    first()

    assert bus.is_wanted
    second()
    assert not bus.is_wanted


async def test_other_addresses_and_too_many_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_MOST_URIS", 2)
    async with desk.client("legacy") as client:
        with pytest.raises(MCPError) as caught:
            await subscribed(client, "file:///etc/passwd")
        await subscribed(client, uris.status_uri("1"))
        await subscribed(client, uris.status_uri("2"))
        with pytest.raises(MCPError):
            await subscribed(client, uris.status_uri("3"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.unsubscribe_resource(uris.status_uri("2"))
        await subscribed(client, uris.status_uri("3"))

    assert caught.value.code == -32602
