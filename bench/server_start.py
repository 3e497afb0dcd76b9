"""How long a host waits for the server: from spawn to the first answer, beside a bare server with one tool.

    python -m bench.server_start [RUNS]

Both are started by turns, so that what else the machine does meets both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def double(number: int) -> int:
    "Double a number."
    return 2 * number
server.run("stdio")
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def waited_s(command: list[str], home: str) -> float:
    """Seconds from spawn to the first answer."""
    begin = time.perf_counter()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={"HOME": home, "PATH": ""}, cwd=home, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        seconds = time.perf_counter() - begin
        process.stdin.close()
    return seconds


def main(runs: int) -> None:
    """Print the best and the middle of both, and what they are to each other."""
    commands = {
        "bare": [sys.executable, "-c", BARE],
        "foldmark": [sys.executable, str(ROOT / "foldmark.py"), "serve"],
    }
    with tempfile.TemporaryDirectory() as home:
        for command in commands.values():  # once for what Python compiles
            waited_s(command, home)
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                taken[name].append(waited_s(command, home))
    for name, seconds in taken.items():
        print(f"{name:10} best {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s")
    best = min(taken["foldmark"]) / min(taken["bare"])
    middle = statistics.median(taken["foldmark"]) / statistics.median(taken["bare"])
    print(f"times bare best {best:.2f}, median {middle:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=15)
    main(parser.parse_args().runs)
