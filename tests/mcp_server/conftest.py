"""A server over two sessions, in both protocol eras."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from core.settings import Settings
from core.testing import SESSION_ID, Transcript
from mcp_server.config import Config
from tests.mcp_server.desk import OTHER, Desk, long_session, text_of


@pytest.fixture(params=("legacy", "auto"))
def mode(request: pytest.FixtureRequest) -> str:
    """The handshake era, and 2026-07-28."""
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    claude = tmp_path / "claude"
    folder = claude / "projects" / "-srv-app"
    made = long_session()
    session = made.write(folder / f"{SESSION_ID}.jsonl")
    other = Transcript(OTHER).prompt("Add a cart").answer("Added.").beside("custom-title", customTitle="The cart")
    config = Config(
        Settings(claude_dir=claude),
        folder=tmp_path,
        state_dir=tmp_path / "state",
        clock=lambda: 1_800_000_000.0,
        call_wait_s=0.0,
        poll_s=0.02,
    )
    return Desk(config, session, other.write(folder / f"{OTHER}.jsonl"), made.calls[-1])


_OF_THE_COMMAND_LINE = re.compile(r"\bfoldmark [a-z]|(?<![\w-])--[a-z]|\{\w+\}")


@pytest.fixture(autouse=True)
def answers_name_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer of any test speaks of the command line, but where it says what a person may type."""
    call = Client.call_tool

    async def checked(self: Client, *args: Any, **how: Any) -> Any:
        answer = await call(self, *args, **how)
        data = {k: v for k, v in (answer.structured_content or {}).items() if k not in ("resume", "undo")}
        lines = [line for line in text_of(answer).split("\n") if not line.startswith("resume with: ")]
        for text in (*lines, json.dumps(data)):
            assert not _OF_THE_COMMAND_LINE.search(text), text
        return answer

    monkeypatch.setattr(Client, "call_tool", checked)
