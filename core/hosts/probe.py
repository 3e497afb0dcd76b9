"""Start the server as a host does, and ask it what it offers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Timer
from typing import IO

from core.environment import small
from core.errors import NoServer
from core.hosts.base import Launch
from core.model import JSON

PROTOCOL = "2025-11-25"
"""The newest version of the protocol that begins with a handshake, which every host speaks."""
TIMEOUT_S = 30.0
"""The shortest that a host waits for a server to start."""
_SHOWN_CHARS = 300


def probe(launch: Launch, env: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> list[str]:
    """The names of the server's tools.  Raises `NoServer`; the server has ended either way.

    Of the variables of this process it gets as little as hosts hand down.
    """
    try:
        server = subprocess.Popen(
            [launch.command, *launch.args],
            env={**small(env), **launch.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise NoServer(f"{launch.command}: {error.strerror}") from None
    timer = Timer(timeout_s, server.kill)
    timer.start()
    try:
        return _asked(server)
    finally:
        timer.cancel()
        server.kill()
        with suppress(BrokenPipeError):  # what it did not read any more
            server.communicate()


def _asked(server: subprocess.Popen[str]) -> list[str]:
    assert server.stdin is not None  # both are pipes
    assert server.stdout is not None
    hello: JSON = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "doctor", "version": "1"}}
    calls: list[dict[str, JSON]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    with suppress(BrokenPipeError):  # it has gone: what it said tells why
        for call in calls:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **call}) + "\n")
        server.stdin.flush()
    answer = next((a for a in _answers(server.stdout) if a.get("id") == calls[-1]["id"]), None)
    if answer is None:
        server.kill()
        said = server.stderr.read() if server.stderr else ""
        raise NoServer("it did not answer" + (f": {said.strip()[-_SHOWN_CHARS:]}" if said.strip() else ""))
    result = answer.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    return [str(t.get("name")) for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []


def _answers(lines: IO[str]) -> Iterator[dict[str, JSON]]:
    for line in lines:
        with suppress(ValueError, RecursionError):
            value: JSON = json.loads(line)
            if isinstance(value, dict):
                yield value
