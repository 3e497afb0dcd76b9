"""What is around a session now: what stands in front of it, and what has changed since it ended.

A transcript may be someone else's: only its own project's folder is looked at, only if that is one, and of the user's
files only the rules for all projects and the plans.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from pathlib import Path

import msgspec

from core.attachments import decode
from core.attachments.agent_listing_delta import AgentListingDelta
from core.attachments.base import Attachment, KnownFile, Planning, Queued, Task, World, of_kind
from core.attachments.deferred_tools_delta import DeferredToolsDelta
from core.attachments.delta import Delta, announced_by
from core.attachments.disk import Disk
from core.attachments.mcp_instructions_delta import McpInstructionsDelta
from core.compaction.restore import is_project
from core.compaction.state import NO_STATE, PLAN_MODE, State, state_of
from core.facts.scan import Call
from core.facts.tasks import todo_states
from core.model import (
    JSON,
    Message,
    block_text,
    call_id,
    mapping,
    mappings,
    string,
    text_block,
    tool_results,
    tool_uses,
)  # fmt: skip
from core.redact.text import redact
from core.redact.values import redact_json
from core.service.known_files import known_files
from core.service.session import Session
from core.times import time_from
from core.transcript.materialize import derived_id
from core.turn.events import Appended, Attached, Row
from core.turn.fixed import FixedContext, Place
from core.turn.git import Git
from core.turn.journal import Journal
from core.turn.state import TurnState


@dataclass(frozen=True, slots=True)
class Workstation:
    """The machine that a question is asked on."""

    home: Path
    claude_dir: Path
    git: Callable[[Path], Git] | None = None
    """Git in a folder; None: no git status is wanted."""
    zone: tzinfo = UTC
    """Whose dates are the local ones."""


@dataclass(frozen=True)
class Surroundings:
    """Those of one session; the date in front is that of its end, and the one of `now` a change like any other."""

    session: Session
    messages: Sequence[Message]
    """Its active view as it is sent."""
    machine: Workstation
    now: datetime

    @cached_property
    def journal(self) -> Journal:
        """The session so far, with what its client announced as the scans to come know it."""
        journal = Journal(self.session.file.id)
        for message in self.messages:
            row, data = Row.of(message), self._announced.get(message.uuid)
            journal.append(Attached(row, data) if data else Appended(row))
        return journal

    @cached_property
    def fixed(self) -> FixedContext:
        """What stands in front of it."""
        machine, root = self.machine, self._root
        git = machine.git(Path(root)) if machine.git and root else None
        files, folder = self._disk, str(machine.claude_dir)
        return FixedContext(Place(root, str(machine.home), folder, files, self._ended, git, self._injected))

    def world(self, state: TurnState) -> World:
        """What scans compare with what the model knows in a state of the turn."""
        messages = state.messages
        there = {message.uuid for message in messages}
        calls = _calls(messages)
        tasks, last = _tasks(calls)
        behind = sum(m.kind == "response" for m in messages[last + 1 :])
        user = self.fixed.user
        return World(
            date=self._date(self.now),
            prefix_date=user.date,
            queued=self._queued,
            deferred_tools=self._set(DeferredToolsDelta),
            agents=self._set(AgentListingDelta),
            mcp_instructions=self._set(McpInstructionsDelta),
            files=self._disk,
            cwd=self._root,
            home=str(self.machine.home),
            known_files={path: file for path, (uuid, file) in self._known.items() if uuid in there},
            touched=[os.path.join(self._root, c.path) for c in calls if c.path] if self._root else (),
            loaded=user.loaded,
            planning=self._planning,
            tasks=tasks,
            last_task_response=state.requests - behind,
        )

    @cached_property
    def _root(self) -> str:
        """The folder of the project, "" where it is not here."""
        cwd = self.session.cwd
        return os.path.normpath(cwd) if cwd and is_project(Path(cwd), self.machine.home) else ""

    @cached_property
    def _disk(self) -> Disk:
        own = self.machine.claude_dir
        project = [Path(self._root)] if self._root else []
        return Disk([*project, own / "CLAUDE.md", own / "rules", own / "plans"])

    def _date(self, time: datetime) -> str:
        return time.astimezone(self.machine.zone).date().isoformat()

    def _ended(self) -> str:
        times = (time_from(m.timestamp) for m in reversed(self.messages))
        return self._date(next(filter(None, times), self.now))

    @cached_property
    def _announced(self) -> dict[str, dict[str, object]]:
        """The data of the client's rows that told the model something which scans know, by the row."""
        shown = {message.uuid for message in self.messages}
        return {
            uuid: msgspec.convert(data, dict[str, object])
            for uuid, data in self._attachments.items()
            if uuid in shown and decode(data) is not None
        }

    @cached_property
    def _attachments(self) -> dict[str, dict[str, JSON]]:
        if self.session.claude is None:
            return {}
        log, chain = self.session.claude
        rows = [entry for entry in chain.entries if entry.type == "attachment"]
        return {entry.uuid: mapping(redact_json(log.body(entry).get("attachment"))[0]) for entry in rows}

    def _injected(self) -> frozenset[str]:
        """The memory files that the client put into what is still in view."""
        there = {m.uuid for m in self.journal.state.messages}
        return frozenset(
            string(file.get("path"))
            for uuid, data in self._attachments.items()
            if uuid in there and data.get("type") == "instructions"
            for file in mappings(data.get("files"))
        )

    def _set(self, kind: type[Delta]) -> Mapping[str, str] | None:
        """What was announced last, and has to be announced anew once a compaction ate that."""
        earlier: list[Attachment] = [a for data in self._announced.values() if (a := decode(data))]
        return announced_by(deltas) if (deltas := of_kind(kind, earlier)) else None

    @cached_property
    def _known(self) -> Mapping[str, tuple[str, KnownFile]]:
        return known_files(*self.session.claude, Path(self._root)) if self.session.claude and self._root else {}

    @cached_property
    def _state(self) -> State:
        claude = self.session.claude
        return state_of(*claude, self.session.messages) if claude else NO_STATE

    @property
    def _queued(self) -> Sequence[Queued]:
        texts = self._state.queued
        return [Queued(derived_id("queued", text), (text_block(redact(text)),)) for text in texts]

    @property
    def _planning(self) -> Planning | None:
        path = self._state.plan.path
        if self._state.permission_mode != PLAN_MODE or not path:
            return None
        return Planning(path, self._disk.mtime_ns(path) is not None)


def _calls(messages: Sequence[Message]) -> list[Call]:
    results = {call_id(b): block_text(b) for m in messages for b in tool_results(m)}
    return [
        Call(at, string(b.get("name")), mapping(b.get("input")), result=results.get(call_id(b)))
        for at, message in enumerate(messages)
        for b in tool_uses(message)
    ]


def _tasks(calls: Sequence[Call]) -> tuple[Sequence[Task] | None, int]:
    """The list of tasks, None where nothing is open, and the message that changed it last."""
    todos = next(iter([*todo_states(calls)][-1:]), ())
    if all(todo.done for todo in todos):
        return None, -1
    return [Task(str(n), t.text, t.status) for n, t in enumerate(todos, 1)], max(t.at for t in todos)
