"""A folder of the shape that the comparisons take, with a client that sends what Foldmark says, or something else."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FLAT = """
def flat(messages):
    return [(m["role"], b["type"], str(b)) for m in messages for b in m["content"]]
"""
_CLIENT = f"""
import json, pathlib, sys
sys.path.insert(0, {str(ROOT)!r})
from core.context.dialect import NEWEST
from scripts.compare_client import view

path, how = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).with_name("how").read_text()
is_result = any(line.startswith(b'{{"type":"foldmark"') for line in path.read_bytes().splitlines())
how = how if is_result else ""
messages = view(path, NEWEST)
if how == "else":
    messages[-1]["content"][0]["text"] = "something else"
calls = ["compact", "main"] if how == "again" else ["main"]
print(json.dumps({{"ok": how != "not", "calls": calls, "messages": messages, "output": "no such session"}}))
"""


def shared_folder(folder: Path) -> Path:
    """The folder; `answers` says how its client takes what Foldmark wrote."""
    for name in ("real", "corpus", "client"):
        (folder / name).mkdir(parents=True)
    client = folder / "client"
    (client / "compare.py").write_text(_FLAT, encoding="utf-8")
    (client / "client.py").write_text(_CLIENT, encoding="utf-8")
    runner = client / "ns.sh"
    runner.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{client}/client.py" "$3"\n', encoding="utf-8")
    runner.chmod(0o755)
    answers(folder, "")
    return folder


def answers(shared: Path, how: str) -> None:
    """How the client takes a result: "" as it should, "else", "again" (compacts it), "not" (does not resume it)."""
    (shared / "client" / "how").write_text(how, encoding="utf-8")
