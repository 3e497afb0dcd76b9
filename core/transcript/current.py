"""Which session a tool call is made from: the one whose transcript ends with that call."""

from __future__ import annotations

from pathlib import Path

from core.errors import Damaged
from core.transcript.entries import decode_entry
from core.transcript.projects import SessionFile, agent_files, session_files

_NEWEST = 50
"""How many transcripts are looked at: the one that was just written to is among the newest."""
_TAIL_BYTES = 4 << 20
"""A call stands near the end; behind it come the other calls of its response, and what the client notes about them."""


def session_of_call(call_id: str, claude_dir: Path) -> SessionFile | None:
    """The transcript that holds a call near its end, the newest first; None where no client wrote it (yet).

    A subagent's call leads to the subagent.  A text that speaks of the call is no call.
    """
    files = sorted([*session_files(claude_dir), *agent_files(claude_dir)], key=lambda file: -file.mtime)
    return next((file for file in files[:_NEWEST] if call_id and _calls(file, call_id)), None)


def _calls(file: SessionFile, call_id: str) -> bool:
    needle = call_id.encode("utf-8", "surrogatepass")
    try:
        with file.path.open("rb") as stream:
            stream.seek(max(0, file.size_bytes - _TAIL_BYTES))
            lines = stream.read(2 * _TAIL_BYTES).split(b"\n")
    except OSError:
        return False
    return any(needle in line and _is_call(line, call_id) for line in reversed(lines))


def _is_call(line: bytes, call_id: str) -> bool:
    try:
        entry = decode_entry(line, 0)
    except Damaged:  # the end of a row that began before the tail
        return False
    return entry is not None and entry.type == "assistant" and call_id in entry.tools
