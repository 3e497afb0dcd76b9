"""Where the server starts: over standard input and output, or over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from core.settings import Settings
from mcp_server.config import Config, MakeSummarizer
from mcp_server.server import make_server


def serve_stdio(
    settings: Settings, state_dir: Path, home: Path, summarizer: MakeSummarizer, env: Mapping[str, str]
) -> None:
    """Answers the program that started this one, until it closes its end; `env` is what that program set."""
    config = Config(
        settings,
        folder=Path(env.get("CLAUDE_PROJECT_DIR") or Path.cwd()),
        state_dir=state_dir,
        home=home,
        client_pid=os.getppid(),
        summarizer=summarizer,
        session_id=env.get("CLAUDE_CODE_SESSION_ID", ""),
    )
    make_server(config).run("stdio")


def serve_http(
    settings: Settings,
    state_dir: Path,
    home: Path,
    summarizer: MakeSummarizer,
    listen: tuple[str, int],
    token: str,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> None:
    """Answers over HTTP until it is told to end.  Raises SettingsError for an address that is open to anybody."""
    import uvicorn

    from mcp_server.http import Address, make_app

    address = Address(*listen, token, hosts, origins)
    app = make_app(make_server(Config(settings, Path.cwd(), state_dir, home, summarizer=summarizer)), address)
    uvicorn.run(app, host=address.host, port=address.port, log_level="warning", access_log=False)
