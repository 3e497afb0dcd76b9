"""Lets the real client run Foldmark's hooks, and times them.

    python -m scripts.check_hooks (--shared DIR [--clients new old] | --times-only) [--runs 20]

For each client: a large output reaches the model as a stand-in and is read back whole, of the shell and of an MCP
server; what a summary must keep arrives in the client's request for it; after the compaction the model gets what the
summary did not say; with a broken store all goes on as without hooks; after a turn there are notes.  Then the time of
each hook beyond that of a bare interpreter, the median of some runs.  DIR/client, which is not in this repository, runs
the client as referee; it needs root (namespaces).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.testing import Transcript

ROOT = Path(__file__).parents[1]
EVENTS = ("PostToolUse", "PreCompact", "SubagentStop", "SessionStart", "Stop")
SESSION = "7d4c1f0a-2b7e-4c1d-9a55-0d6b3f1e8a21"
RULE = "Never edit a migration that exists."
SAID = "Always keep the synthetic summary marker of the earlier work."
"""A rule that the scripted summary happens to say."""
LOST = "What the summary of this session does not say"
KEEP = "What follows was found in the conversation by rule."
LIMIT_MS = 150
PAUSE_S = 1.5
"""Until what the last hook, Stop, started in the background is over: it would take time from the next ones."""
KEEPS_HOOKS = ("new", "old")
"""Clients that take another output of a tool from a hook, and write down what hooks add.  In older ones outputs stay as
they are, and what a summary must keep is seen by the model itself, in what the compaction printed.  They compact the
sample as soon as they resume it, and nothing is left to take notes of.
"""
FOR_THESE = ("a large output of the shell", "a large output of a server", "many outputs together", "notes")

SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("rows")


@server.tool(structured_output=False, meta={"anthropic/maxResultSizeChars": 500_000, "anthropic/alwaysLoad": True})
def rows() -> str:
    return "\\n".join(f"row {n:06} of a long table" for n in range(7_700))


server.run("stdio")
"""
ROWS = "\n".join(f"row {n:06} of a long table" for n in range(7_700))
LINES = "\n".join(f"line {n:06} of a long output" for n in range(6_900))


def shell(count: int) -> dict[str, Any]:
    """A step of the scripted model: print so many lines."""
    code = f"print('\\n'.join('line %06d of a long output' % n for n in range({count})))"
    command = f"python3 -c {shlex.quote(code)}"
    return {"tools": [{"name": "Bash", "input": {"command": command, "description": "print lines"}}]}


WAIT = {"tools": [{"name": "Bash", "input": {"command": "sleep 6", "description": "wait for the server"}}]}
"""Clients do not wait for their servers before the first request."""


@dataclass(frozen=True)
class Run:
    """What one run of the client left."""

    folder: Path
    session: str
    calls: Sequence[str]

    @property
    def transcript(self) -> Path:
        """The transcript after it."""
        return self.folder / "project" / f"{self.session}.jsonl"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its rows."""
        return [json.loads(line) for line in self.transcript.read_text().splitlines()]

    @property
    def results(self) -> list[str]:
        """What the model got of the tools."""
        contents = (block["content"] for block in self._blocks)
        return [content if isinstance(content, str) else content[0]["text"] for content in contents]

    def requests(self, kind: str) -> list[str]:
        """The bodies of the requests of one kind, as JSON."""
        found = sorted((self.folder / "requests").glob(f"*-{kind}.json"))
        return [json.dumps(json.loads(path.read_text())["body"]) for path in found]

    def output(self, call: str) -> str:
        """What `foldmark output` gives for a call."""
        command = [sys.executable, str(ROOT / "foldmark.py"), "output", str(self.transcript), call, "--json"]
        done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "HOME": str(self.folder)})
        return str(json.loads(done.stdout).get("text")) if done.stdout else done.stderr.decode()

    @property
    def call(self) -> str:
        """The id of the last tool call."""
        return str(self._blocks[-1]["tool_use_id"])

    @property
    def _blocks(self) -> list[dict[str, Any]]:
        messages = (row["message"]["content"] for row in self.rows if "toolUseResult" in row)
        return [block for content in messages for block in content if block["type"] == "tool_result"]


@dataclass(frozen=True)
class Referee:
    """The real client, with Foldmark's hooks in its settings."""

    shared: Path
    client: str
    work: Path

    def run(
        self,
        name: str,
        prompt: str,
        steps: Sequence[Mapping[str, Any]] = (),
        file: Path | None = None,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        last_s: int = 0,
    ) -> Run:
        """One run of the client; at its end it waits so long."""
        folder = self.work / self.client / name
        home = folder / "home"
        home.mkdir(parents=True)
        command = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'foldmark.py'))} hook"
        hooks = {
            event: [{"matcher": "", "hooks": [{"type": "command", "command": f"{command} {event}"}]}]
            for event in EVENTS
        }
        # The client's world ends with it: what goes on in the background gets some time.
        hooks["SessionEnd"] = [
            {"matcher": "", "hooks": [{"type": "command", "command": f"sleep {last_s}", "timeout": 30}]}
        ]
        (home / "settings.json").write_text(json.dumps({"hooks": hooks}))
        (folder / "steps.json").write_text(json.dumps([*steps, {"text": "done"}]))
        client = self.shared / "client"
        asked = [str(client / "ns.sh"), sys.executable, str(client / "resume.py"), *([str(file)] if file else [])]
        asked += ["--client", self.client, "--home", str(home), "--prompt", prompt, "--keep", str(folder)]
        asked += ["--steps", str(folder / "steps.json"), *(f"--arg={argument}" for argument in arguments)]
        asked += [f"--env={key}={value}" for key, value in (env or {}).items()]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)
        return Run(folder, said["session"], said["calls"])


def conversation(folder: Path) -> Path:
    """A transcript with two rules in it."""
    talk = Transcript(SESSION).prompt(RULE).answer("Understood.").prompt(SAID).answer("I will.")
    talk.prompt("Add an index for the orders of a customer.").answer("Which columns?")
    return talk.write(folder / f"{SESSION}.jsonl")


def check_shell(referee: Referee) -> Iterator[str]:
    """The shell's output of 200,000 characters: what the client stores itself, and what it would not."""
    own = referee.run("shell", "print", [shell(6_900)])
    if "<persisted-output>" not in own.results[0] or len(own.results[0]) > 3_000:
        yield f"the model got {len(own.results[0])} characters of what the client stores itself"
    if own.output(own.call).rstrip("\n") != LINES:
        yield "what the client stored is not read back whole"
    ours = referee.run("shell-long", "print", [shell(4_900)], env={"BASH_MAX_OUTPUT_LENGTH": "150000"})
    yield from _stands_in(ours, "\n".join(LINES.split("\n")[:4_900]))


def check_server(referee: Referee) -> Iterator[str]:
    """200,000 characters of an MCP server that is allowed to give as much."""
    script = referee.work / "server.py"
    script.write_text(SERVER)
    config = {"mcpServers": {"rows": {"type": "stdio", "command": sys.executable, "args": [str(script)]}}}
    settings = referee.work / "mcp.json"
    settings.write_text(json.dumps(config))
    steps = [WAIT, {"tools": [{"name": "mcp__rows__rows", "input": {}}]}]
    arguments = ["--mcp-config", str(settings)]
    yield from _stands_in(referee.run("server", "print", steps, arguments=arguments), ROWS)


def _stands_in(run: Run, whole: str) -> Iterator[str]:
    shown = run.results[-1]
    if run.call not in shown or len(shown) > 3_000:
        yield f"{run.folder.name}: the model got {len(shown)} characters: {shown[:80]!r}"
    if run.output(run.call) != whole:
        yield f"{run.folder.name}: it is not read back whole"


def check_together(referee: Referee) -> Iterator[str]:
    """Ten results of one response, each small enough: together they are not.

    Where two hooks run side by side, neither sees the other's result: one more than there is room for may stay.
    """
    step = {"tools": [tool for _ in range(10) for tool in shell(900)["tools"]]}
    shown = referee.run("together", "print", [step]).results
    if len(shown) != 10 or sum(map(len, shown)) > 220_000:
        yield f"{len(shown)} results have {sum(map(len, shown)):,} characters"
    if not any("<persisted-output>" in text for text in shown[-3:]):
        yield "none of the last results was stored"


def check_compaction(referee: Referee) -> Iterator[str]:
    """A compaction: what the summary must keep, and what it lost."""
    source = conversation(referee.work / referee.client)
    compacted = referee.run("compact", "/compact keep it short", file=source)
    asked = compacted.requests("compact")
    if not any(KEEP in body and RULE in body.partition(KEEP)[2] for body in asked):
        yield "what must be kept is not in the request for the summary"
    if any(path.name == "compaction.txt" for path in compacted.folder.rglob("*")):
        yield "the note of the compaction was left"
    later = referee.run("later", "NEXT-PROMPT", file=compacted.transcript)
    sent = later.requests("main")
    if not sent or RULE not in sent[-1]:
        yield "what the summary lost is not in the next request"
    elif referee.client in KEEPS_HOOKS and RULE not in sent[-1].partition(LOST)[2]:
        yield "what the summary lost was not put back"
    elif SAID in sent[-1].partition(LOST)[2]:
        yield "what the summary says was put back all the same"


def check_broken_store(referee: Referee) -> Iterator[str]:
    """A file where the store should be: the result stays whole, and the client goes on."""
    source = conversation(referee.work / referee.client / "broken-source")
    source.with_suffix("").mkdir()
    (source.with_suffix("") / "tool-results").write_text("in the way")
    run = referee.run("broken", "print", [shell(4_900)], file=source, env={"BASH_MAX_OUTPUT_LENGTH": "150000"})
    if run.results[0] != "\n".join(LINES.split("\n")[:4_900]):
        yield f"the model got {len(run.results[0])} characters"
    if run.calls.count("main") != 2:
        yield f"the client did not go on: {run.calls}"


def check_notes(referee: Referee) -> Iterator[str]:
    """After a turn of a long session there are notes."""
    source = referee.work / referee.client / f"{SESSION}.jsonl"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes((ROOT / "examples" / "session.jsonl").read_bytes())
    run = referee.run("notes", "NEXT-PROMPT", file=source, last_s=15)
    notes = run.transcript.with_suffix("") / "session-memory" / "notes.md"
    if not notes.is_file() or "Never edit a migration that exists." not in notes.read_text():
        yield "there are no notes"


CHECKS: Mapping[str, Callable[[Referee], Iterator[str]]] = {
    "a large output of the shell": check_shell,
    "a large output of a server": check_server,
    "many outputs together": check_together,
    "a compaction": check_compaction,
    "a broken store": check_broken_store,
    "notes": check_notes,
}


def inputs(folder: Path) -> dict[str, tuple[str, bytes]]:
    """For each hook an input of an ordinary session: the sample of some 180,000 tokens."""
    transcript = folder / f"{SESSION}.jsonl"
    transcript.write_bytes((ROOT / "examples" / "session.jsonl").read_bytes())

    def given(**fields: Any) -> bytes:
        return json.dumps(
            {"session_id": SESSION, "transcript_path": str(transcript), "cwd": "/srv/app", **fields}
        ).encode()

    def used(text: str) -> bytes:
        response = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        return given(tool_name="Bash", tool_use_id="toolu_1", tool_response=response)

    return {
        "PostToolUse, small": ("PostToolUse", used("x" * 10_000)),
        "PostToolUse, 200k": ("PostToolUse", used(LINES)),
        "PreCompact": ("PreCompact", given(trigger="auto")),
        "SubagentStop": ("SubagentStop", given(agent_type="", last_assistant_message="A summary. " * 500)),
        "SessionStart, compact": ("SessionStart", given(source="compact")),
        "SessionStart, resume": ("SessionStart", given(source="resume")),
        "Stop": ("Stop", json.dumps({"transcript_path": str(conversation(folder / "short"))}).encode()),
    }


def times(folder: Path, runs: int) -> dict[str, tuple[float, float]]:
    """The median time of each hook beyond that of an interpreter which does nothing, and of it what it computed; in ms.

    On a busy machine a process waits; what it computes is nearly the same on any.
    """
    cases = {name: ([str(ROOT / "foldmark.py"), "hook", event], raw) for name, (event, raw) in inputs(folder).items()}
    cases = {"bare": (["-c", "pass"], b""), **cases}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(runs + 1):  # the first one fills the caches
        for name, (arguments, raw) in cases.items():
            taken[name].append(_time_ms([sys.executable, *arguments], raw, folder))
        time.sleep(PAUSE_S)
    wall, cpu = ({name: statistics.median(t[n] for t in values[1:]) for name, values in taken.items()} for n in (0, 1))
    return {name: (wall[name] - wall["bare"], cpu[name] - cpu["bare"]) for name in cases if name != "bare"}


def _time_ms(command: Sequence[str], raw: bytes, home: Path) -> tuple[float, float]:
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=raw, capture_output=True, check=True, env={**os.environ, "HOME": str(home)})
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return (end - begin) * 1_000, computed * 1_000


def main() -> int:
    """Check all, print what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--shared", type=Path, help="not in this repository: see above")
    which.add_argument("--times-only", action="store_true")
    parser.add_argument("--clients", nargs="*", default=["new", "old"])
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        for client in [] if asked.times_only else asked.clients:
            referee = Referee(asked.shared, client, Path(work))
            for name, check in CHECKS.items():
                if name in FOR_THESE and client not in KEEPS_HOOKS:
                    continue
                faults = [*check(referee)]
                bad += len(faults)
                print(f"{client}: {name}: {'; '.join(faults) or 'ok'}")
        for name, (wall, computed) in times(Path(work), asked.runs).items():
            print(f"{name}: {wall:.0f} ms, computing {computed:.0f} ms{' (too long)' if computed > LIMIT_MS else ''}")
            bad += computed > LIMIT_MS
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
