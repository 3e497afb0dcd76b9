"""The hosts that Foldmark can be set up in: a new one is an entry here.

Where the files are and what they may hold was found by running the programs, or in their own documents
(November 2026).
"""

from __future__ import annotations

import json
from pathlib import Path

from core.errors import InputError
from core.hosts.base import NAME, Host, Launch, Machine
from core.model import JSON


def find_host(name: str) -> Host:
    """The host of a name; raises `InputError` for any other."""
    if name not in HOSTS:
        raise InputError(f"there is no host {name!r}", f"known: {', '.join(HOSTS)}")
    return HOSTS[name]


def _claude_desktop(machine: Machine) -> Path:
    return machine.app_data() / "Claude" / "claude_desktop_config.json"


def _claude_code(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json"


def _vscode(machine: Machine) -> Path:
    return machine.app_data() / "Code" / "User" / "mcp.json"


def _typed(launch: Launch) -> dict[str, JSON]:
    return {"type": "stdio", **launch.entry}


def _claude_add(launch: Launch) -> tuple[str, ...]:
    return ("mcp", "add-json", "--scope", "user", NAME, json.dumps(_typed(launch)))


def _vscode_add(launch: Launch) -> tuple[str, ...]:
    return ("--add-mcp", json.dumps({"name": NAME, **launch.entry}))


def _codex_add(launch: Launch) -> tuple[str, ...]:
    variables = [part for key, value in launch.env.items() for part in ("--env", f"{key}={value}")]
    return ("mcp", "add", NAME, *variables, "--", launch.command, *launch.args)


def _gemini_add(launch: Launch) -> tuple[str, ...]:
    variables = [part for key, value in launch.env.items() for part in ("-e", f"{key}={value}")]
    return ("mcp", "add", "-s", "user", *variables, NAME, launch.command, *launch.args)


_ALL = (
    Host(
        "claude-desktop",
        "Claude Desktop",
        _claude_desktop,
        "json",
        "mcpServers",
        "quit Claude Desktop and open it again",
    ),
    Host(
        "claude-code",
        "Claude Code",
        _claude_code,
        "json",
        "mcpServers",
        "start a new session; /mcp shows the server",
        _typed,
        "claude",
        _claude_add,
    ),
    Host(
        "cursor",
        "Cursor",
        lambda machine: machine.home / ".cursor" / "mcp.json",
        "json",
        "mcpServers",
        "reload the window",
    ),
    Host(
        "vscode",
        "VS Code",
        _vscode,
        "jsonc",
        "servers",
        "start the server with the command 'MCP: List Servers'",
        _typed,
        "code",
        _vscode_add,
    ),
    Host(
        "codex",
        "Codex",
        lambda machine: machine.folder("CODEX_HOME", ".codex") / "config.toml",
        "toml",
        "mcp_servers",
        "start a new session; /mcp shows the server",
        program="codex",
        add=_codex_add,
    ),
    Host(
        "gemini",
        "Gemini CLI",
        lambda machine: machine.home / ".gemini" / "settings.json",
        "jsonc",
        "mcpServers",
        "start a new session in a trusted folder; /mcp shows the server",
        program="gemini",
        add=_gemini_add,
    ),
)
HOSTS = {host.name: host for host in _ALL}
"""By name, in the order in which they are shown."""
