"""An agent of your own on Foldmark's turn loop: it reads files, keeps its context small, and survives a restart.

    ANTHROPIC_API_KEY=... python examples/turn_loop.py FOLDER "What is in here?"

Ask again, and it goes on where it was: all that it knows is in the journal below `FOLDER/.agent`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from core.api.anthropic import Access, AnthropicEndpoint
from core.api.endpoint import Endpoint
from core.attachments.base import KnownFile, World
from core.attachments.disk import Disk
from core.context.tokens.models import lookup
from core.errors import FoldmarkError
from core.model import JSON, Block, block_text, call_id, mapping, string, tool_results, tool_uses
from core.stages.collapse import Collapse
from core.stages.microcompact import Form, Microcompact, MicrocompactSettings
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip
from core.stages.tool_budget import ToolBudget
from core.transcript.store import Store
from core.turn.fixed import FixedContext, Place
from core.turn.git import git_in
from core.turn.journal import Journal
from core.turn.loop import Conversation
from core.turn.request import RequestOptions
from core.turn.state import TurnState
from core.turn.work import TurnSettings, Work


def tool(name: str, about: str, *fields: str) -> Block:
    """The definition of a tool that takes texts."""
    properties: dict[str, JSON] = {field: {"type": "string"} for field in fields}
    return {"name": name, "description": about, "input_schema": {"type": "object", "properties": properties}}


MODEL = lookup("claude-sonnet-5-5")
SYSTEM = "You answer questions about the files of one folder. Read what you need; name files and lines."
TOOLS = (
    tool("Read", "A text file of the folder.", "file_path"),
    tool("snip_range", "Takes messages out of the context, from one id to another.", "from_id", "to_id"),
    tool("put_back", "Puts back what was taken out or folded, by the id in the line in its place.", "id"),
)


class Agent:
    """One conversation about a folder; `edits` says how old results leave the request, as the endpoint allows it."""

    def __init__(
        self, folder: Path, endpoint: Endpoint, clock: Callable[[], datetime], edits: Form = "content", window: int = 0
    ) -> None:
        self.folder = folder
        self.clock = clock
        self.disk = Disk([folder])
        self.snip = Snip()
        self.collapse = Collapse()
        own = folder / ".agent"
        self.saved = own / "journal.jsonl"
        journal = Journal.load(self.saved.read_bytes()) if self.saved.exists() else Journal(str(folder))
        clearing = Microcompact(MicrocompactSettings(form=edits, time_based=True))
        settings = TurnSettings(
            MODEL,
            SYSTEM,
            TOOLS,
            RequestOptions(edits=edits),
            stages=(ToolBudget(), ReadDedup(), self.snip, clearing, self.collapse),
            window_tokens=window or None,
            nudges=True,
            cwd=str(folder),
        )
        place = Place(str(folder), "", str(own), self.disk, self.today, git_in(folder, os.environ))
        self.fixed = FixedContext(place)
        self.work = Work(journal, settings, Store(own / "tool-results"), clock, self.fixed)
        self.talk = Conversation(self.work, endpoint, tools=self.run, world=self.world)

    def ask(self, question: str) -> str:
        """The answer, and how full the context is; the journal is written whole or not at all."""
        try:
            said = self.talk.turn(question).reply.text
        finally:
            self.saved.parent.mkdir(mode=0o700, exist_ok=True)
            new = self.saved.with_suffix(".new")
            new.write_bytes(self.work.journal.dump())
            new.replace(self.saved)
        return f"{said}\n[context: {self.talk.window_state()}]"

    def world(self, state: TurnState) -> World:
        """What may have changed meanwhile: the date, what was read, the rules of the folders that it is in."""
        results = {call_id(b): block_text(b) for m in state.messages for b in tool_results(m) if "is_error" not in b}
        reads = [b for m in state.messages for b in tool_uses(m) if b["name"] == "Read" and call_id(b) in results]
        known = {self.path_of(b): KnownFile(results[call_id(b)], 0) for b in reads}
        now = World(0, self.today(), files=self.disk, cwd=str(self.folder), known_files=known, touched=[*known])
        return replace(now, prefix_date=self.fixed.user.date, loaded=self.fixed.user.loaded)

    def today(self) -> str:
        """The date that the model is told."""
        return self.clock().date().isoformat()

    def path_of(self, call: Block) -> str:
        """The file that a call reads."""
        return str(self.folder / string(mapping(call["input"]).get("file_path")))

    def run(self, calls: Sequence[Block]) -> list[Block]:
        """The results of calls; what goes wrong is told to the model."""
        return [{"type": "tool_result", "tool_use_id": call_id(call), **self.result_of(call)} for call in calls]

    def result_of(self, call: Block) -> Block:
        """What one call comes to; a snip, and its undoing, is a decision like those of the stages."""
        scene = self.work.scene()
        given = {key: string(value) for key, value in mapping(call["input"]).items()}
        try:
            if call["name"] == "Read":
                text = self.disk.read(self.path_of(call))
                return {"content": "no such text file", "is_error": True} if text is None else {"content": text}
            if call["name"] == "snip_range":
                done = self.work.decide(scene, self.snip.plan_range(scene, given["from_id"], given["to_id"]))
            else:
                undo = self.collapse.expand if given["id"].startswith("span") else self.snip.undo
                done = self.work.decide(scene, undo(scene, given["id"]))
            return {"content": done.reason or "done"}
        except (FoldmarkError, KeyError) as error:
            return {"content": str(error), "is_error": True}


if __name__ == "__main__":
    api = AnthropicEndpoint(Access(os.environ["ANTHROPIC_API_KEY"]), clock=time.monotonic, sleep=time.sleep)
    sys.stdout.write(Agent(Path(sys.argv[1]).resolve(), api, lambda: datetime.now(UTC)).ask(sys.argv[2]) + "\n")
