"""A server over two sessions, in both protocol eras."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.settings import Settings
from core.testing import SESSION_ID, Transcript
from mcp_server.config import Config
from tests.mcp_server.desk import OTHER, Desk, long_session


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
