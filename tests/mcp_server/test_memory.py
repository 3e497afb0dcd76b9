"""The tool that keeps the notes of a session, and the resource that shows them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from core.service.memory import show
from core.testing import SESSION_ID
from core.transcript.projects import session_file
from mcp_server.tools import memory
from mcp_server.uris import memory_uri
from tests.mcp_server.desk import Desk, text_of

ASK = {"session": SESSION_ID}
URI = memory_uri(SESSION_ID)


async def test_without_operations_what_is_new_is_noted_and_all_is_shown(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        with pytest.raises(MCPError, match="session_memory_update makes them"):
            await client.read_resource(URI)
        first = await client.call_tool("session_memory_update", ASK)
        again = await client.call_tool("session_memory_update", ASK)
        (notes,) = (await client.read_resource(URI)).contents

    view = show(session_file(desk.session))
    assert view.exists
    assert view.text.startswith(text_of(first).split("\n\n", 1)[1][:2_000])
    assert " changes of 49 messages in the notes: " in text_of(first)
    assert len(text_of(first)) < 4_000
    assert "marmalade" in view.text
    assert first.structured_content is None
    assert text_of(again).startswith("the notes are as they were: nothing is new")
    assert notes.text == view.text  # type: ignore[union-attr]


async def test_long_notes_are_shown_in_part(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_SHOWN_CHARS", 100)
    async with desk.client() as client:
        answer = await client.call_tool("session_memory_update", ASK)

    assert text_of(answer).endswith(f", or all in the resource {URI}]")
    assert len(text_of(answer)) < 800


async def test_operations_are_carried_out_and_what_must_not_be_is_said(desk: Desk, mode: str) -> None:
    operations = [
        {"op": "add", "section": "decisions", "text": "Parsers stay in src/, one file each."},
        {"op": "resolve", "id": "t99", "evidence": "nowhere"},
        {"op": "explode"},
    ]
    async with desk.client(mode) as client:
        done = await client.call_tool("session_memory_update", {**ASK, "operations": operations})

    result = done.structured_content
    assert result is not None
    assert (result["changed"], result["operations"], len(result["refused"])) == (True, 1, 2)
    assert text_of(done).count("\nrefused: ") == 2
    assert "Parsers stay in src/" in show(session_file(desk.session)).text
    assert Path(result["path"]).is_relative_to(desk.session.with_suffix(""))


async def test_a_listener_hears_of_new_notes(desk: Desk) -> None:
    async with desk.with_(poll_s=1_000).client() as client, client.listen(resource_subscriptions=[URI]) as events:
        await client.call_tool("session_memory_update", ASK)
        with anyio.fail_after(10):
            event = await anext(aiter(events))

    assert event == ResourceUpdated(uri=URI)
