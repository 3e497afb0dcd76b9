"""A server over a scratch client's folder, and how tests call it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from mcp import Client
from mcp_types import CallToolResult, RequestParamsMeta

from core.testing import Transcript
from mcp_server.config import Config
from mcp_server.server import make_server

OTHER = "22222222-1111-4111-8111-111111111111"


@dataclass
class Desk:
    """What a test works with: the folders, two sessions, and a client for the server that sees them."""

    config: Config
    session: Path
    """A long session that ends with a call of a tool."""
    other: Path
    """A short one."""
    call: str

    def client(self, mode: str = "auto", **how: Any) -> Client:
        return Client(make_server(self.config), mode=mode, **how)

    def with_(self, **changes: Any) -> Desk:
        return replace(self, config=replace(self.config, **changes))


def long_session(turns: int = 12) -> Transcript:
    made = Transcript()
    for turn in range(turns):
        made.prompt(f"Fix parser {turn}: keep the word marmalade{turn}.")
        made.use("Read", f"def parse_{turn}(): ...\n" * 400, file_path=f"src/p{turn}.py")
        made.answer(f"Fixed parser {turn} in src/p{turn}.py.")
    return made.prompt("How full is it?").call("mcp__foldmark__context_status")


def calling(call: object) -> RequestParamsMeta:
    """What Claude Code says beside a call of its own."""
    return cast(RequestParamsMeta, {"claudecode/toolUseId": call})


def text_of(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if block.type == "text")
