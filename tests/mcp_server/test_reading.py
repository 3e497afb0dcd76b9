"""The tools that read."""

from __future__ import annotations

from core.service.context import context_report
from core.service.session import opened
from core.testing import SESSION_ID
from core.transcript.projects import session_file
from tests.mcp_server.desk import Desk, text_of


async def test_status_is_what_the_command_line_prints(desk: Desk, mode: str) -> None:
    with opened(session_file(desk.session)) as session:
        expected = context_report(session).model_dump(mode="json")
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {"session": SESSION_ID})

    assert result.structured_content == expected
    assert text_of(result).startswith(
        f"{SESSION_ID} (Fix parser 0: keep the word marmalade0.): 69.2k of 1.0M tokens, 50 messages"
    )
