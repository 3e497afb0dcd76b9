"""What hosts are told of the tools, and what becomes of wrong calls."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from mcp_types import CallToolResult

from core.service.compact import WAYS
from core.service.context import ContextReport
from core.testing import SESSION_ID
from mcp_server.server import INSTRUCTIONS
from mcp_server.tools import reading
from mcp_server.tools.compacting import How
from tests.mcp_server.desk import Desk, text_of

NAMES = {
    "compact_session",
    "snip_range",
    "read_persisted_output",
    "session_memory_update",
    "context_status",
    "search_session",
    "list_sessions",
    "undo",
}
READING = {"context_status", "search_session", "list_sessions", "read_persisted_output"}


async def test_every_tool_says_what_it_does_to_the_world(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

    assert set(tools) == NAMES
    for name, tool in tools.items():
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint == (name in READING)
        assert hints.destructive_hint == (name not in READING | {"session_memory_update"})
        assert hints.idempotent_hint == (name in READING)
        assert hints.open_world_hint == (name == "compact_session")  # it may ask a model
        assert tool.title == hints.title != ""
        assert tool.input_schema["additionalProperties"] is False
        assert not {"ctx", "consent", "sampled"} & set(tool.input_schema["properties"])


async def test_what_comes_back_as_data_is_described(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools if tool.output_schema}

    assert set(schemas) == {"context_status", "search_session", "list_sessions", "undo"}
    assert schemas["undo"] == {
        "type": "object",
        "description": "What was taken back.",
        "properties": {
            "path": {"type": "string"},
            "op": {"type": "string"},
            "removed": {"type": "boolean"},
            "source_path": {"type": "string"},
        },
        "required": ["path", "op", "removed", "source_path"],
    }
    status = schemas["context_status"]
    assert status["type"] == "object"
    assert [*status["properties"]] == [*ContextReport.__struct_fields__]
    assert status["required"] == [key for key in ContextReport.__struct_fields__ if key != "stages"]
    assert status["properties"]["counted_tokens"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert status["properties"]["largest"] == {"type": "array", "items": {"$ref": "#/$defs/LargePart"}}
    assert status["$defs"]["Tokens"]["properties"]["source"] == {"enum": ["estimate", "usage"]}
    for schema in schemas.values():
        named = {*re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema))}
        assert named == {*schema.get("$defs", {})}


async def test_a_client_holds_every_answer_against_what_was_said_of_it(
    desk: Desk, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So all tests that call these tools would see one that is not as it was described."""
    wrong = CallToolResult(content=[], structured_content={"sessions": [{"id": 3}], "more": False, "total": 1})
    monkeypatch.setattr(reading, "data_answer", lambda *_: wrong)
    async with desk.client(mode) as client:
        with pytest.raises(RuntimeError, match="Invalid structured content"):
            await client.call_tool("list_sessions", {})


async def test_the_descriptions_are_short_enough_for_every_host(desk: Desk) -> None:
    async with desk.client() as client:
        assert client.instructions == INSTRUCTIONS
        tools = (await client.list_tools()).tools

    assert len(INSTRUCTIONS) <= 512
    assert all(0 < len(tool.description or "") <= 240 for tool in tools)
    # About 2,000 tokens for all tools, for hosts that load them all.
    assert sum(len(json.dumps(tool.input_schema)) + len(tool.description or "") for tool in tools) < 8_000
    loaded = {tool.name for tool in tools if (tool.meta or {}).get("anthropic/alwaysLoad")}
    assert loaded == {"compact_session", "context_status", "read_persisted_output"}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("undo", {"sesion": "latest"}, "undo has no argument 'sesion'; its arguments are session, confirmed"),
        ("list_sessions", {"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ("list_sessions", {"limit": "many"}, "limit: Input should be a valid integer, unable to parse string"),
        ("search_session", {}, "text: Field required"),
        ("compact_session", {"how": "best"}, "how: Input should be 'auto', "),
        ("compact_session", {"messages": ["x"]}, "messages.0: Input should be a valid dictionary"),
        ("read_persisted_output", {"id": "x", "max_chars": 1e9}, "max_chars: Input should be less than or equal"),
        ("context_status", {"session": ["latest"]}, "session: Input should be a valid string"),
    ],
)
async def test_a_wrong_call_is_refused_and_says_what_is_right(
    desk: Desk, mode: str, name: str, arguments: dict[str, Any], said: str
) -> None:
    async with desk.client(mode) as client:
        answer = await client.call_tool(name, arguments)

    assert answer.is_error
    assert text_of(answer).startswith(f"Error executing tool {name}: {said}")


def test_the_ways_to_compact_are_those_of_the_core() -> None:
    assert set(get_args(How)) == set(WAYS)


async def test_an_unknown_tool_is_refused(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        answer = await client.call_tool("compact", {})

    assert answer.is_error
    assert text_of(answer) == "Unknown tool: compact"


async def test_a_fault_is_told_without_what_was_worked_on(
    desk: Desk, mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = "".join(["marma", "lade"])

    def broken(*_args: object) -> None:
        raise KeyError(said)

    monkeypatch.setattr("mcp_server.tools.reading.context_report", broken)
    async with desk.client(mode) as client:
        answer = await client.call_tool("context_status", {"session": SESSION_ID})

    assert text_of(answer).startswith("Error executing tool context_status: a fault in Foldmark (KeyError)")
    assert "a fault: KeyError" in caplog.text
    assert "in broken" in caplog.text
    assert said not in caplog.text + text_of(answer)


async def test_an_error_of_the_system_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device", "/tmp/x")

    monkeypatch.setattr("mcp_server.tools.reading.listed", full)
    async with desk.client() as client:
        answer = await client.call_tool("list_sessions", {})

    assert text_of(answer) == "Error executing tool list_sessions: No space left on device: /tmp/x"
