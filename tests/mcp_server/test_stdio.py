"""The server as hosts start it: a process of its own, over standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp import Client, StdioServerParameters

from cli.main import run
from core.errors import SettingsError
from core.testing import SESSION_ID
from tests.mcp_server.desk import OTHER, Desk

ROOT = Path(__file__).parents[2]


def launch(desk: Desk, **env: str) -> StdioServerParameters:
    home = desk.config.folder / "home"
    base = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(desk.config.settings.claude_dir), **env}
    # What runs there counts as tested, unless the measuring itself would find the wrong packages.
    if "COVERAGE_PROCESS_CONFIG" in os.environ and "PYTHONPATH" not in env:
        base["COVERAGE_PROCESS_CONFIG"] = os.environ["COVERAGE_PROCESS_CONFIG"]
    return StdioServerParameters(
        command=sys.executable, args=[str(ROOT / "foldmark.py"), "serve"], env=base, cwd=str(home)
    )


async def test_a_host_starts_it_and_calls_it(desk: Desk, mode: str) -> None:
    with anyio.fail_after(60):
        async with Client(launch(desk), mode=mode) as client:
            assert client.server_info is not None
            assert client.server_info.name == "foldmark"
            status = await client.call_tool("context_status", {"session": SESSION_ID})
            listed = await client.call_tool("list_sessions", {})

    assert status.structured_content is not None
    assert status.structured_content["messages"] == 50
    assert listed.structured_content is not None
    assert {line["id"] for line in listed.structured_content["sessions"]} == {SESSION_ID, OTHER}


async def test_the_client_that_starts_it_says_which_session_is_current(desk: Desk) -> None:
    with anyio.fail_after(60):
        async with Client(launch(desk, CLAUDE_CODE_SESSION_ID=OTHER)) as client:
            started = await client.call_tool("context_status", {})
            registry = desk.config.settings.claude_dir / "sessions" / f"{os.getpid()}.json"
            registry.parent.mkdir()
            registry.write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION_ID}), encoding="utf-8")
            cleared = await client.call_tool("context_status", {})

    assert [a.structured_content["session"]["id"] for a in (started, cleared)] == [OTHER, SESSION_ID]


async def test_other_packages_of_the_same_names_change_nothing(desk: Desk, tmp_path: Path) -> None:
    for name in ("core", "cli", "mcp_server"):
        package = tmp_path / "theirs" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('the wrong package')\n", encoding="utf-8")
    with anyio.fail_after(60):
        async with Client(launch(desk, PYTHONPATH=str(tmp_path / "theirs"))) as client:
            status = await client.call_tool("context_status", {"session": SESSION_ID})
            # An expression is searched for in a process of its own, which finds its packages by itself.
            hits = await client.call_tool(
                "search_session", {"session": SESSION_ID, "text": "marmalade1.", "regex": True}
            )

    assert not status.is_error
    assert not hits.is_error


def test_it_ends_with_its_input_and_prints_nothing_but_messages(desk: Desk) -> None:
    how = launch(desk)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = {**os.environ, **(how.env or {})}
    with subprocess.Popen([how.command, *how.args], env=env, cwd=how.cwd, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(
            b'no json\n\xff\xfe\n{"jsonrpc": "2.0", "id": 1, "method": "nothing/known", "params": {}}\n'
        )
        process.stdin.flush()
        found: list[Any] = []
        while not found or found[-1].get("id") != 1:
            found.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest, said = process.stdout.read(), process.stderr.read()
        assert process.wait(20) == 0

    assert {message["jsonrpc"] for message in found} == {"2.0"}
    assert found[-1]["error"]["code"] == -32601
    assert rest == b""
    assert b"Traceback" not in said


def test_a_wrong_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("80", "localhost", "127.0.0.1:0", "127.0.0.1:99999", "::1:80", "a b"):
        assert run(["serve", "--http", wrong]) == 2
        assert "is no address" in capsys.readouterr().err
    assert run(["serve", "--allow-host", "box"]) == 2
    assert run(["serve", "--http", "0.0.0.0:8765"]) == 2
    assert "FOLDMARK_TOKEN" in capsys.readouterr().err


def test_the_address_and_the_token_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    import mcp_server.main

    given: list[Any] = []
    monkeypatch.setattr(mcp_server.main, "serve_http", lambda *args: given.append(args[4:]))
    monkeypatch.setenv("FOLDMARK_TOKEN", "t" * 20)

    assert run(["serve", "--http", "[::1]:8765", "--allow-host", "box", "--allow-origin", "https://a.example"]) == 0
    assert given == [(("::1", 8765), "t" * 20, ("box",), ("https://a.example",))]


def test_over_http_it_serves_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(uvicorn, "run", lambda _app, **how: ran.append(how))

    assert run(["serve", "--http", "127.0.0.1:8765"]) == 0
    assert (ran[0]["host"], ran[0]["port"], ran[0]["access_log"]) == ("127.0.0.1", 8765, False)


def test_the_summarisers_of_the_command_line_are_those_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    import mcp_server.main

    given: list[Any] = []
    monkeypatch.setattr(mcp_server.main, "serve_stdio", lambda *args: given.append(args[3]))

    assert run(["serve"]) == 0
    (summarizer,) = given
    assert summarizer("extractive", lambda: False).name == "extractive"
    with pytest.raises(SettingsError):
        summarizer("oracle", lambda: False)


def test_on_a_terminal_it_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import mcp_server.main

    monkeypatch.setattr(mcp_server.main, "serve_stdio", lambda *_args: None)
    monkeypatch.setattr(sys, "stdin", None)

    assert run(["serve"]) == 0
    assert "foldmark setup" in capsys.readouterr().err
