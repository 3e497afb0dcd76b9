"""Lets the real client be the host of the server, and looks at what its model gets to see.

    python -m scripts.check_host --shared DIR [--clients new old]

For each client, a scripted model calls every tool once with good arguments and once with bad ones, reads resources, and
compacts the session that it is in, in two steps; then the new session is resumed.  DIR/client, which is not in this
repository, runs the client as referee; it needs root (namespaces).  Prints what was not as it should be, and leaves
with 1 if anything was not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.testing import Transcript

ROOT = Path(__file__).parents[1]
SESSION = "5c8e2f10-6d3b-4f7a-8e21-9b1c0d2e3f40"
START_S = 10
SUMMARY = "The parsers 0 to 11 were read and are fixed; the words marmalade0 to marmalade11 stay. Next: measure again."
SNIPPED = "snip: "
"""How the title of a copy begins."""
AGREES = """grep -q 'Take back' && echo '{"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", \
"content": {"go_on": true}}}' || true"""
"""A person, as a hook: who is asked whether something may be taken back says yes, and nothing to anything else."""
OUTPUT = f"toolu_{SESSION[:8]}_0003"


@dataclass(frozen=True)
class Call:
    """One call of a tool: what the model must get to see, and whether as an error."""

    tool: str
    arguments: dict[str, Any]
    sees: str
    fails: bool = False

    @property
    def step(self) -> dict[str, Any]:
        """The call as a reply of the scripted model."""
        own = self.tool[0].islower()
        return {"tools": [{"name": f"mcp__foldmark__{self.tool}" if own else self.tool, "input": self.arguments}]}


KEEP = {"keep_tokens": 10_000, "how": "full"}
CALLS = (
    Call("context_status", {}, f'"id":"{SESSION}"'),
    Call("context_status", {"sesion": "latest"}, "has no argument 'sesion'", fails=True),
    Call("search_session", {"text": "marmalade3"}, "keep the word marmalade3"),
    Call("search_session", {"text": "(", "regex": True}, "is no regular expression", fails=True),
    Call("read_persisted_output", {"id": OUTPUT, "from_line": 2, "to_line": 2}, "def parse_2(): ..."),
    Call("read_persisted_output", {"id": "toolu_gone"}, "search_session shows ids", fails=True),
    Call("list_sessions", {}, SESSION),
    Call("list_sessions", {"limit": 0}, "greater than or equal to 1", fails=True),
    Call("snip_range", {"from_id": OUTPUT, "to_id": OUTPUT, "dry_run": True}, '"reason":"dry run"'),
    Call("snip_range", {"from_id": OUTPUT}, "give both", fails=True),
    Call("snip_range", {"from_id": OUTPUT, "to_id": OUTPUT, "in_place": True}, "nothing was changed", fails=True),
    Call("session_memory_update", {}, "marmalade0"),
    Call("session_memory_update", {"operations": ["x"]}, "valid dictionary", fails=True),
    Call("snip_range", {"from_id": OUTPUT, "to_id": OUTPUT}, '"changed":true'),
    Call("undo", {"session": SNIPPED}, '"removed":true'),
    Call("undo", {"session": "/etc/passwd"}, "outside the folders that may be read", fails=True),
    Call("compact_session", {**KEEP, "summarizer": "oracle"}, "there is no summariser 'oracle'", fails=True),
    Call("compact_session", KEEP, "Then call compact_session again"),
    Call("compact_session", {**KEEP, "summary": SUMMARY}, '"resume":"claude --resume '),
    Call("ReadMcpResourceTool", {"server": "foldmark", "uri": "foldmark://sessions"}, SESSION),
    Call("ReadMcpResourceTool", {"server": "foldmark", "uri": f"foldmark://session/{SESSION}/memory"}, "marmalade0"),
)


def transcript() -> Transcript:
    """A long session of the folder in which the client runs."""
    made = Transcript(SESSION)
    for turn in range(12):
        made.prompt(f"Fix parser {turn}: keep the word marmalade{turn}.")
        made.use("Read", f"def parse_{turn}(): ...\n" * 400, file_path=f"/srv/app/src/p{turn}.py")
        made.answer(f"Fixed parser {turn} in src/p{turn}.py.")
    return made


def resumed(shared: Path, client: str, arguments: Sequence[str]) -> dict[str, Any]:
    """What the client says and sends, alone on its own network."""
    command = [str(shared / "client" / "ns.sh"), sys.executable, str(shared / "client" / "resume.py")]
    done = subprocess.run([*command, "--client", client, *arguments], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{client}: {done.stdout[-1_000:]}{done.stderr[-1_000:]}") from None
    return dict(found)


def results_in(requests: Path) -> dict[str, tuple[str, bool]]:
    """What the model saw of each call: text, and whether it was an error; of the last request that holds it."""
    names: dict[str, str] = {}
    seen: dict[str, tuple[str, bool]] = {}
    for path in sorted(requests.glob("*-main.json")):
        for message in json.loads(path.read_text(encoding="utf-8"))["body"]["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block.get("type") == "tool_use":
                    names[block["id"]] = json.dumps([block["name"], block["input"]], sort_keys=True)
                elif block.get("type") == "tool_result" and block["tool_use_id"] in names:
                    text = block.get("content", "")
                    if isinstance(text, list):
                        text = "\n".join(part.get("text", "") for part in text)
                    seen[names[block["tool_use_id"]]] = (text, bool(block.get("is_error")))
    return seen


def check(shared: Path, client: str, folder: Path) -> Iterator[str]:
    """What was not as it should be."""
    path = transcript().write(folder / f"{SESSION}.jsonl")
    server = {"command": sys.executable, "args": [str(ROOT / "foldmark.py"), "serve"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"foldmark": server}}), encoding="utf-8")
    names = sorted({f"mcp__foldmark__{c.tool}" for c in CALLS if c.tool[0].islower()} | {"ReadMcpResourceTool"})
    # The client asks its model before all servers have started; the first answer comes when this one has.
    load = [{"tools": [{"name": "ToolSearch", "input": {"query": f"select:{','.join(names)}"}}], "delay": START_S}]
    steps = [*load, *(call.step for call in CALLS), {"text": "OK-REPLY"}]
    hook = {"matcher": "foldmark", "hooks": [{"type": "command", "command": AGREES}]}
    home = folder / "client-home"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"hooks": {"Elicitation": [hook]}}), encoding="utf-8")
    (folder / "steps.json").write_text(json.dumps(steps), encoding="utf-8")
    asked = ["--arg=--mcp-config", f"--arg={folder / 'mcp.json'}", "--steps", str(folder / "steps.json")]
    asked += ["--home", str(home)]
    kept = folder / "kept"
    found = resumed(shared, client, [str(path), *asked, "--keep", str(kept), "--timeout", "300"])
    if not found["ok"]:
        yield f"the client did not get to the end: {found.get('output', '')[-1_000:]}"
    seen = results_in(kept / "requests")
    for call in CALLS:
        (step,) = call.step["tools"]
        text, failed = seen.get(
            json.dumps([step["name"], step["input"]], sort_keys=True), ("no answer", not call.fails)
        )
        if call.sees not in text or failed != call.fails:
            yield f"{call.tool} {json.dumps(call.arguments)}: the model saw {text[:600]!r} ({failed=})"
    yield from check_compacted(shared, client, kept / "project")


def check_compacted(shared: Path, client: str, project: Path) -> Iterator[str]:
    """The session that the tool made, resumed: the summary, then what was kept, then what was called since."""
    made = [path for path in project.glob("*.jsonl") if path.stem != SESSION]
    if len(made) != 1:
        yield f"{len(made)} sessions were made"
        return
    again = resumed(shared, client, [str(made[0]), "--timeout", "120"])
    sent = json.dumps(again.get("messages", []))
    for text in (SUMMARY[:60], "marmalade11", "NEXT-PROMPT"):
        if text not in sent:
            yield f"the session that was made does not send {text!r}: {sent[:300]}"
    if "compact" in again["calls"]:
        yield "the session that was made is compacted again when it is resumed"


def main() -> int:
    """Check each client; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="not in this repository: see above")
    parser.add_argument("--clients", nargs="+", default=["new", "old"])
    given = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("the client gets a network of its own, which needs root")
    wrong = 0
    for client in given.clients:
        with tempfile.TemporaryDirectory() as folder:
            faults = [*check(given.shared, client, Path(folder))]
        print(f"{client}: {len(CALLS)} calls, {len(faults)} not as they should be", *faults, sep="\n  ", flush=True)
        wrong += len(faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
