"""Many clients at once on one session, over HTTP: nothing that they note is lost, no file is torn, memory stays flat.

    python -m bench.server_load [--clients 50] [--seconds 60] [--kill]

Each client reads, searches, plans, and notes something of its own, over and over, half of them in either era of the
protocol.  With --kill the server is killed in the middle; what was answered until then must be there, and the next
server must start and answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from mcp import Client, MCPError

from core.service.check import check
from core.service.memory import show
from core.service.session import opened
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file

ROOT = Path(__file__).parents[1]


def prepared(home: Path) -> Path:
    """A home folder with one long session; the session."""
    made = Transcript()
    for turn in range(60):
        made.prompt(f"Fix parser {turn}: keep the word marmalade{turn}.")
        made.use("Bash", f"line of parser {turn}\n" * 400, command=f"cat p{turn}.py").answer(f"Fixed parser {turn}.")
    return made.write(home / ".claude" / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")


@contextmanager
def served(home: Path) -> Iterator[tuple[str, int]]:
    """The server as a process; its address and process id."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = [sys.executable, str(ROOT / "foldmark.py"), "serve", "--http", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, env=env, cwd=home) as process:
        while process.poll() is None:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        try:
            yield f"http://127.0.0.1:{port}/mcp", process.pid
        finally:
            process.terminate()


def calls_of(name: str, count: int) -> tuple[str, dict[str, Any]]:
    """What a client asks for next; the last of these changes the notes."""
    asked = {"session": SESSION_ID}
    choices: list[tuple[str, dict[str, Any]]] = [
        ("context_status", asked),
        ("search_session", {**asked, "text": f"marmalade{count % 60}"}),
        ("read_persisted_output", {**asked, "id": "toolu_11111111_0003"}),
        ("snip_range", {**asked, "from_id": "toolu_11111111_0005", "to_id": "toolu_11111111_0009"}),
        ("list_sessions", {}),
    ]
    note = {"op": "add", "section": "decisions", "text": f"note {name} {count}"}
    return random.choice([*choices, ("session_memory_update", {**asked, "operations": [note]})])


class Load:
    """What the clients did, and how long it took."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.taken_s: list[float] = []
        self.refused: Counter[str] = Counter()

    async def client(self, url: str, name: str, mode: str, until: float) -> None:
        """One client, until the time is over or the server is gone."""
        with suppress(MCPError, OSError, ExceptionGroup):
            async with Client(url, mode=mode, read_timeout_seconds=120) as client:
                count = 0
                while time.monotonic() < until:
                    count += 1
                    tool, arguments = calls_of(name, count)
                    begin = time.monotonic()
                    answer = await client.call_tool(tool, arguments)
                    self.taken_s.append(time.monotonic() - begin)
                    if answer.is_error:
                        self.refused[str(answer.content[0])[:200]] += 1
                    elif tool == "session_memory_update":
                        self.noted.append(f"note {name} {count}")

    async def run(self, url: str, pid: int, clients: int, seconds: float, kill: bool) -> list[int]:
        """All clients at once; the memory of the server, in MB, every few seconds."""
        until = time.monotonic() + seconds
        memory: list[int] = []

        async def watch() -> None:
            while time.monotonic() < until:
                with suppress(OSError, StopIteration):
                    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
                    memory.append(int(next(s for s in status if s.startswith("VmRSS")).split()[1]) // 1024)
                await asyncio.sleep(seconds / 12)
                if kill and time.monotonic() > until - seconds / 2:
                    os.kill(pid, signal.SIGKILL)
                    return

        eras = ("legacy", "auto")
        async with asyncio.TaskGroup() as group:
            group.create_task(watch())
            for number in range(clients):
                group.create_task(self.client(url, f"c{number}", eras[number % 2], until))
        return memory


def lost(session: Path, noted: list[str]) -> list[str]:
    """What was answered to be noted, and is neither in the notes nor in their archive."""
    folder = session.with_suffix("") / "session-memory"
    texts = "\n".join(p.read_text(encoding="utf-8") for p in folder.rglob("*.md")) + show(session_file(session)).text
    return [note for note in noted if note not in texts]


def is_torn(path: Path) -> bool:
    """Whether anything in a transcript is damaged."""
    with opened(session_file(path), whole=True) as session:
        return not check(session).ok


def main() -> int:
    """Run it once; 1 if anything was lost or torn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        session = prepared(home)
        before, load = session.read_bytes(), Load()
        with served(home) as (url, pid):
            memory = asyncio.run(load.run(url, pid, given.clients, given.seconds, given.kill))
        gone = lost(session, load.noted)
        torn = [path for path in session.parent.glob("*.jsonl") if is_torn(path)]
        taken = sorted(load.taken_s)
        most = taken[len(taken) * 95 // 100]
        print(f"{len(taken)} calls, median {statistics.median(taken):.2f} s, 95 % under {most:.2f} s")
        print(f"{len(load.noted)} notes, {len(gone)} lost; {len(torn)} files torn; memory in MB: {memory}")
        print(f"refused: {dict(load.refused)}")
        with served(home) as (url, _pid):
            again = Load()
            asyncio.run(again.client(url, "again", "auto", time.monotonic() + 2))
        print(f"started again: {len(again.taken_s)} calls, {len(again.refused)} refused")
        wrong = gone or torn or again.refused or not again.taken_s or session.read_bytes() != before
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
