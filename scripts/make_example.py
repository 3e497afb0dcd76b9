#!/usr/bin/env python3
"""Write examples/session.jsonl: a made-up session of about 180 k tokens, the same bytes on every run.

Somebody works on a small web shop (`example_shop.py`): cents that differ between cart and invoice, orders that are
charged twice, a race for the last piece in stock, customer data in public answers.  Every result of a tool is what
the tool would give on that repository; nothing in it was ever sent to a model.

    python -m scripts.make_example [OUT]
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import random
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scripts.example_shop import repository
from scripts.example_story import Call, Json, tell

CWD = "/home/ada/cornershop"
MODEL = "claude-opus-4-5-20251101"
TITLE = "Cornershop: one cent off, charged twice, the last piece"
SYSTEM_TOKENS = 18_000
"""What system prompt and tools take before the first word."""
CHARS_PER_TOKEN = 2.7
"""Measured on real sessions: the median of what a step adds."""


class Session:
    """Writes the rows of a session while the story goes on; tools work on `files`."""

    def __init__(self, seed: int = 20260119) -> None:
        self.random = random.Random(seed)
        self.files = repository()
        self.committed = dict(self.files)
        self.rows: list[dict[str, Json]] = []
        self.id = self._uuid()
        self.now = datetime(2026, 1, 19, 8, 58, 12, tzinfo=UTC)
        self.parent: str | None = None
        self.context_chars = 0
        self.sent_tokens = 0
        self.todos: Json = []

    def write(self) -> None:
        """Tell the story and give the session its title."""
        tell(self)
        self.rows.append({"type": "custom-title", "customTitle": TITLE, "sessionId": self.id})

    # What the story says ----------------------------------------------------------------------------------------

    def user(self, text: str) -> None:
        """Let the person say something."""
        self.now += timedelta(seconds=self.random.randint(40, 400))
        snapshot: dict[str, Json] = {"messageId": self._uuid(), "trackedFileBackups": {}, "timestamp": self._time()}
        row_id = str(snapshot["messageId"])
        self.rows.append(
            {"type": "file-history-snapshot", "messageId": row_id, "snapshot": snapshot, "isSnapshotUpdate": False}
        )
        self._chain("user", {"role": "user", "content": text}, row_id=row_id)
        self.context_chars += len(text)

    def step(self, *calls: Call, text: str = "", think: str = "") -> None:
        """Let the model answer once: thinking, text, tool calls side by side; then the results come in."""
        blocks: list[dict[str, Json]] = []
        if think:
            signature = base64.b64encode(hashlib.sha512(think.encode()).digest() * 3).decode()
            blocks.append({"type": "thinking", "thinking": think, "signature": signature})
        if text:
            blocks.append({"type": "text", "text": text})
        ids = [self._name("toolu_") for _ in calls]
        for call_id, call in zip(ids, calls, strict=True):
            blocks.append({"type": "tool_use", "id": call_id, "name": call.tool, "input": call.given})
        uses = self._respond(blocks)[len(blocks) - len(calls) :]
        for call_id, use, call in zip(ids, uses, calls, strict=True):
            self._result(call_id, use, *self._run(call))
        if not calls:
            self._chain("system", None, subtype="turn_duration", durationMs=self.random.randint(20_000, 300_000))

    # Tools ------------------------------------------------------------------------------------------------------

    def _run(self, call: Call) -> tuple[str, Json, bool]:
        """Run a tool; gives what the model sees, what the client keeps beside it, and whether it is an error."""
        given = {key: str(value) for key, value in call.given.items()}
        match call.tool:
            case "Read":
                return self._read(given["file_path"], int(given.get("offset", 1)), int(given.get("limit", 2000)))
            case "Grep":
                return self._grep(given["pattern"])
            case "Edit":
                return self._edit(given["file_path"], given["old_string"], given["new_string"])
            case "Write":
                return self._write(given["file_path"], given["content"])
            case "Bash":
                return self._bash(given["command"], call.failing, call.out)
            case "TodoWrite":
                old, self.todos = self.todos, call.given["todos"]
                return "The list was updated.", {"oldTodos": old, "newTodos": self.todos}, False
        return "The user approved the plan.", {"plan": call.given["plan"], "isAgent": False}, False

    def _read(self, file_path: str, offset: int, limit: int) -> tuple[str, Json, bool]:
        text = self.files[file_path.removeprefix(CWD + "/")]
        lines = text.splitlines()
        shown = lines[offset - 1 : offset - 1 + limit]
        numbered = "\n".join(f"{number:>6}\u2192{line}" for number, line in enumerate(shown, offset))
        file: Json = {
            "filePath": file_path, "content": "\n".join(shown), "numLines": len(shown), "startLine": offset,
            "totalLines": len(lines),
        }  # fmt: skip
        return numbered, {"type": "text", "file": file}, False

    def _grep(self, pattern: str) -> tuple[str, Json, bool]:
        hits = [
            f"{name}:{number}:{line}"
            for name, text in self.files.items()
            for number, line in enumerate(text.splitlines(), 1)
            if re.search(pattern, line)
        ]
        found = "\n".join(hits)
        names: list[Json] = list(dict.fromkeys(hit.partition(":")[0] for hit in hits))
        beside: Json = {"mode": "content", "numFiles": len(names), "filenames": names, "content": found}
        return found or "No matches found", beside, False

    def _edit(self, file_path: str, old_string: str, new_string: str) -> tuple[str, Json, bool]:
        name = file_path.removeprefix(CWD + "/")
        before = self.files[name]
        assert before.count(old_string) == 1, (name, old_string, before.count(old_string))
        self.files[name] = before.replace(old_string, new_string)
        beside: Json = {
            "filePath": file_path, "oldString": old_string, "newString": new_string, "originalFile": before,
            "structuredPatch": [], "userModified": False, "replaceAll": False,
        }  # fmt: skip
        return f"The file {file_path} was changed.", beside, False

    def _write(self, file_path: str, content: str) -> tuple[str, Json, bool]:
        self.files[file_path.removeprefix(CWD + "/")] = content
        beside: Json = {"type": "create", "filePath": file_path, "content": content, "structuredPatch": []}
        return f"The file {file_path} was written.", beside, False

    def _bash(self, command: str, failing: Sequence[str], out: str) -> tuple[str, Json, bool]:
        if command.startswith("git diff"):
            out = self._diff(command)
        elif "pytest" in command:
            out = self._pytest(command, failing)
        elif command.startswith("git commit"):
            self.committed = dict(self.files)
        beside: Json = {"stdout": out, "stderr": "", "interrupted": False, "isImage": False}
        if failing:
            return f"Exit code 1\n{out}", f"Error: Exit code 1\n{out}", True
        return out, beside, False

    def _diff(self, command: str) -> str:
        stat = "--stat" in command
        parts: list[str] = []
        for name in sorted({*self.files, *self.committed}):
            old, new = self.committed.get(name, ""), self.files.get(name, "")
            if old != new:
                diff = list(
                    difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
                )
                added = sum(line.startswith("+") for line in diff) - 1
                parts += [f" {name} | {added} +"] if stat else diff
        return "\n".join(parts)

    def _pytest(self, command: str, failing: Sequence[str]) -> str:
        """List all tests of the repository as pytest -v does, with those that fail and why."""
        wanted = [word for word in command.split() if word.startswith("tests/")]
        tests = [
            f"{name}::{test}"
            for name, text in self.files.items()
            if name.startswith("tests/") and (not wanted or name.startswith(tuple(wanted)))
            for test in re.findall(r"^def (test_\w+)", text, re.MULTILINE)
        ]
        broken = {item.partition("\n")[0]: item.partition("\n")[2] for item in failing}
        lines = ["============================= test session starts ==============================", f"rootdir: {CWD}"]
        lines += ["configfile: pyproject.toml", f"collected {len(tests)} items", ""]
        if "-v" in command.split():
            for number, test in enumerate(tests, 1):
                state = "FAILED" if test.partition("::")[2] in broken else "PASSED"
                lines.append(f"{test} {state} [{100 * number // len(tests):>3}%]")
        else:
            lines += [
                "".join("F" if t.partition("::")[2] in broken else "." for t in tests)[i : i + 72]
                for i in range(0, len(tests), 72)
            ]
        for name, why in broken.items():
            lines += ["", f"________ {name} ________", "", why]
        summary = f"{len(broken)} failed, {len(tests) - len(broken)} passed" if broken else f"{len(tests)} passed"
        return "\n".join([*lines, "", f"======== {summary} in {self.random.uniform(1, 6):.2f}s ========"])

    # Rows -------------------------------------------------------------------------------------------------------

    def _respond(self, blocks: list[dict[str, Json]]) -> list[str]:
        """Write one response, a row for each block; its usage says what was sent and what is new since."""
        output = _tokens(sum(_chars(block) for block in blocks)) + 12
        sent = SYSTEM_TOKENS + _tokens(self.context_chars)
        usage: dict[str, Json] = {
            "input_tokens": 4, "cache_creation_input_tokens": sent - self.sent_tokens - 4,
            "cache_read_input_tokens": self.sent_tokens, "output_tokens": output, "service_tier": "standard",
        }  # fmt: skip
        self.sent_tokens = sent
        self.context_chars += sum(_chars(block) for block in blocks)
        head: dict[str, Json] = {"model": MODEL, "id": self._name("msg_"), "type": "message", "role": "assistant"}
        stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        request = self._name("req_")
        rows = []
        for block in blocks:
            self.now += timedelta(seconds=self.random.uniform(0.8, 9))
            message: dict[str, Json] = {
                **head,
                "content": [block],
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": usage,
            }
            rows.append(self._chain("assistant", message, requestId=request))
        return rows

    def _result(self, call_id: str, use: str, text: str, beside: Json, is_error: bool) -> None:
        self.now += timedelta(seconds=self.random.uniform(0.1, 6))
        block: dict[str, Json] = {"tool_use_id": call_id, "type": "tool_result", "content": text}
        if is_error:
            block["is_error"] = True
        self.parent = use
        self._chain("user", {"role": "user", "content": [block]}, toolUseResult=beside, sourceToolAssistantUUID=use)
        self.context_chars += len(text)

    def _chain(self, kind: str, message: Json, row_id: str = "", **more: Json) -> str:
        """Append a row that hangs off the last one."""
        row_id = row_id or self._uuid()
        self.now += timedelta(milliseconds=2)
        row: dict[str, Json] = {
            "parentUuid": self.parent, "isSidechain": False, "userType": "external", "cwd": CWD, "sessionId": self.id,
            "version": "2.1.14", "gitBranch": "fix/cents", "type": kind,
        }  # fmt: skip
        if message is not None:
            row["message"] = message
        self.rows.append({**row, **more, "uuid": row_id, "timestamp": self._time()})
        self.parent = row_id
        return row_id

    def _time(self) -> str:
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _uuid(self) -> str:
        digits = f"{self.random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def _name(self, prefix: str) -> str:
        letters = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
        return prefix + "01" + "".join(self.random.choices(letters, k=22))


def _chars(block: dict[str, Json]) -> int:
    """What a block adds to the context."""
    if block["type"] == "tool_use":
        return len(json.dumps(block["input"])) + 40
    return len(str(block.get("text") or block.get("thinking")))


def _tokens(chars: int) -> int:
    return round(chars / CHARS_PER_TOKEN)


def main() -> None:
    """Write the session."""
    default = Path(__file__).parent.parent / "examples" / "session.jsonl"
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    session = Session()
    session.write()
    text = "".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in session.rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    print(f"{out}: {len(session.rows)} rows, {len(text.encode()):,} bytes, {session.sent_tokens:,} tokens")


if __name__ == "__main__":
    main()
