"""Transcripts to test with, row by row in the shapes that Claude Code 2.1 writes; also for tests of other programs.

    Transcript().prompt("Fix the parser").use("Read", "1\\tdef parse():", file_path="p.py").answer("Fixed.").data()

Ids, times and usage figures are made up, consistent, and the same on every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import msgspec

from core.context.tokens.estimate import Estimator
from core.context.tokens.models import lookup
from core.model import JSON, Block
from core.times import stamp
from core.transcript.outline import outline_blocks

SESSION_ID = "11111111-1111-4111-8111-111111111111"
_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_STEP = timedelta(seconds=2)
_OVERHEAD_TOKENS = 20_000
"""What usage figures count for system prompt and tools."""


class Transcript:
    """A transcript that grows by one turn, step or row with each call; every method returns it.

    `rows` may be changed at will before they are written; `last` is the uuid that the next row hangs off.
    """

    def __init__(
        self,
        session_id: str = SESSION_ID,
        *,
        cwd: str = "/nowhere/app",
        model: str = "claude-opus-4-8",
        agent_id: str = "",
    ) -> None:
        """Start an empty one; with `agent_id` it is the file of a subagent of the session."""
        self.session_id = session_id
        self.rows: list[dict[str, JSON]] = []
        self.last: str | None = None
        self.calls: list[str] = []
        """The ids of all tool calls."""
        self._model = model
        self._time = _BEGIN
        self._tokens = Estimator(lookup(model)).tokens
        self._context_tokens = 0.0
        self._homes: dict[str, str | None] = {}
        self._envelope: dict[str, JSON] = {
            "isSidechain": bool(agent_id),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": cwd,
            "sessionId": session_id,
            "version": "2.1.332",
            "gitBranch": "main",
        }
        if agent_id:
            self._envelope["agentId"] = agent_id

    def prompt(self, text: str, **fields: JSON) -> Self:
        """What a person typed; `fields` are further keys of the row."""
        return self._user(text, fields)

    def note(self, text: str) -> Self:
        """What the client itself told the model."""
        return self._user(text, {"isMeta": True})

    def answer(self, text: str, thinking: str = "") -> Self:
        """A response without calls."""
        return self.respond(*_thinking(thinking), {"type": "text", "text": text})

    def respond(self, *blocks: Block) -> Self:
        """A response, one row a block, with the usage of the whole context."""
        number = len(self.rows) + 1
        prompt_tokens = _OVERHEAD_TOKENS + round(self._context_tokens)
        output_tokens = self._count(*blocks)
        usage: JSON = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": prompt_tokens - 4,
            "output_tokens": max(1, round(output_tokens)),
        }
        for block in blocks:
            message: dict[str, JSON] = {
                "id": f"msg_{self.session_id[:8]}_{number:04}",
                "type": "message",
                "role": "assistant",
                "model": self._model,
                "content": [block],
                "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
                "stop_sequence": None,
                "usage": usage,
            }
            self._chain({"type": "assistant", "message": message, "requestId": f"req_{number:04}"})
            if block["type"] == "tool_use":
                self._homes[str(block["id"])] = self.last
        return self

    def call(self, *names: str, text: str = "", thinking: str = "", **given: JSON) -> Self:
        """A response with one call of each tool, all with the input `given`, and no results yet."""
        said: list[Block] = [{"type": "text", "text": text}] if text else []
        return self.respond(*_thinking(thinking), *said, *(self._new_call(name, given) for name in names))

    def result(self, content: JSON, call: str = "", error: bool = False) -> Self:
        """The result of a call (the newest, if none is named); it hangs off the row of that call."""
        call = call or self.calls[-1]
        block: Block = {"tool_use_id": call, "type": "tool_result", "content": content}
        if error:
            block["is_error"] = True
        self.last = self._homes.get(call, self.last)
        row: dict[str, JSON] = {
            "type": "user",
            "message": {"role": "user", "content": [block]},
            "toolUseResult": {"stdout": content, "stderr": "", "interrupted": False},
            "sourceToolAssistantUUID": self.last,
        }
        self._count(block)
        return self._chain(row)

    def use(self, name: str, output: JSON, *, thinking: str = "", **given: JSON) -> Self:
        """A response with one call, and the result of that."""
        return self.respond(*_thinking(thinking), self._new_call(name, given)).result(output)

    def attachment(self, kind: str, text: str, role: str = "system") -> Self:
        """A change of state that the client shows to the model."""
        self._count({"type": "text", "text": text})
        rendered: JSON = [{"content": text}]
        return self._chain(
            {"type": "attachment", "attachment": {"type": kind}, "rendered": rendered, "renderedRole": role}
        )

    def system(self, subtype: str, content: str) -> Self:
        """A row for the screen (`informational`), or a local command and its output (`local_command`)."""
        row: dict[str, JSON] = {"type": "system", "subtype": subtype, "content": content}
        return self._chain({**row, "isMeta": False, "level": "info"})

    def boundary(self, summary: str, kept: Sequence[str] = ()) -> Self:
        """A compaction of the client: what was before is out of the context, but for the rows `kept`."""
        logical, self.last = self.last, None
        metadata: dict[str, JSON] = {"trigger": "auto", "preTokens": round(self._context_tokens)}
        row = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info"}
        self._chain({**row, "logicalParentUuid": logical, "isMeta": False, "compactMetadata": metadata})
        self._context_tokens = 0.0
        self._user(summary, {"isCompactSummary": True, "isVisibleInTranscriptOnly": True})
        if kept:
            metadata["preservedMessages"] = {"anchorUuid": self.last, "uuids": [*kept], "allUuids": [*kept]}
        return self

    def beside(self, kind: str, **fields: JSON) -> Self:
        """A row off the chain: `permission-mode`, `custom-title`, `last-prompt` and the like."""
        self.rows.append({"type": kind, "sessionId": self.session_id, **fields})
        return self

    def back_to(self, uuid: str | None) -> Self:
        """A rewind: the next row hangs off this one."""
        self.last = uuid
        return self

    def data(self) -> bytes:
        """The file."""
        return b"".join(msgspec.json.encode(row) + b"\n" for row in self.rows)

    def write(self, path: Path) -> Path:
        """Write the file, and the folders that it needs."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data())
        return path

    def _new_call(self, name: str, given: dict[str, JSON]) -> Block:
        self.calls.append(f"toolu_{self.session_id[:8]}_{len(self.calls) + 1:04}")
        return {"type": "tool_use", "id": self.calls[-1], "name": name, "input": {**given}}

    def _user(self, text: str, fields: dict[str, JSON]) -> Self:
        self._count({"type": "text", "text": text})
        return self._chain({"type": "user", "message": {"role": "user", "content": text}, **fields})

    def _count(self, *blocks: Block) -> float:
        tokens = self._tokens(outline_blocks(blocks))
        self._context_tokens += tokens
        return tokens

    def _chain(self, row: dict[str, JSON]) -> Self:
        self._time += _STEP
        uuid = f"{self.session_id[:8]}-0000-4000-8000-{len(self.rows) + 1:012x}"
        time = stamp(self._time)
        self.rows.append({"parentUuid": self.last, **self._envelope, **row, "uuid": uuid, "timestamp": time})
        self.last = uuid
        return self


def _thinking(text: str) -> list[Block]:
    return [{"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}] if text else []
