"""What the conformance suite is run against: the server itself, and the suite's own tools beside its tools."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mcp import Client

from scripts.conformance import CALLS, SESSION, run, served, wait_for


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_suite_meets_the_server_with_its_own_tools_beside(mode: str) -> None:
    with served() as url:
        async with Client(url, mode=mode) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            status = await client.call_tool("context_status", {"session": SESSION})
            simple = await client.call_tool("test_simple_text", {})
            prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}

    assert CALLS.keys() <= names
    assert "test_tool_with_progress" in names
    assert not status.is_error
    assert not simple.is_error
    assert {"compact", "test_simple_prompt"} <= prompts


def test_a_server_that_does_not_start_is_not_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        with pytest.raises(RuntimeError, match="did not start"):
            wait_for(1, process)


@pytest.mark.parametrize(
    ("program", "is_well"),
    [("print('Total: 1')", True), ("print('\"isError\": true')", False), ("raise SystemExit(1)", False)],
)
def test_what_a_program_prints_says_whether_it_is_content(
    program: str, is_well: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("a program", [sys.executable, "-c", program]) == is_well
    assert capsys.readouterr().out.startswith("ok " if is_well else "FAIL")
