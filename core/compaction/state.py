"""What a session was in the middle of, beside its messages: its mode, its plan, what runs in the background, its queue.

A summary is no substitute for it.  It is read from the rows of a transcript; other clients' files hold none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.model import JSON, Block, Message, block_text, call_id, mapping, string, tool_results, tool_uses
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.reader import Log

PLAN_MODE = "plan"
_EXIT_PLAN = "ExitPlanMode"
_AGENTS = ("Agent", "Task")
_STOPS = ("TaskStop", "KillShell", "KillBash")
_PLAN_ATTACHMENTS = ("plan_mode", "plan_mode_exit")
_NOTIFICATION = "<task-notification>"
_PLAN_FILE = re.compile(r"[/\\]\.claude[/\\]plans[/\\][^/\\]+\.md\Z")
_TASK_ID = re.compile(r"<task-id>([^<]+)</task-id>")


@dataclass(frozen=True, slots=True)
class PlanState:
    """The newest plan: where its file is, what it said in the transcript, and the rows that said so."""

    path: str = ""
    text: str = ""
    uuids: tuple[str, ...] = ()
    approved: bool = False
    is_followed: bool = False
    """A person asked for something after it was approved."""


@dataclass(frozen=True, slots=True)
class Running:
    """An agent, or a command, that was started in the background and has not reported back."""

    id: str
    what: str
    output: str = ""
    """The file that it writes to, where that is known."""


@dataclass(frozen=True, slots=True)
class State:
    """All of it, at the end of the transcript."""

    permission_mode: str = ""
    plan: PlanState = PlanState()
    running: tuple[Running, ...] = ()
    queued: tuple[str, ...] = ()
    """What the user typed while a turn ran, and no turn has taken up."""


NO_STATE = State()


def state_of(log: Log, chain: Chain, messages: Sequence[Message]) -> State:
    """The state of a session; `messages` are those of the chain."""
    rows = {entry.uuid: entry for entry in chain.entries}
    calls = {call_id(block): block for message in messages for block in tool_uses(message)}
    return State(
        _permission_mode(log, chain),
        _plan(log, rows, messages, calls),
        tuple(_running(log, rows, messages, calls)),
        tuple(_queued(log, messages)),
    )


def _permission_mode(log: Log, chain: Chain) -> str:
    """The newest mode: prompts carry it, and rows that say nothing else."""
    active = {entry.uuid for entry in chain.entries}
    for entry in reversed(log.entries):
        is_prompt = entry.type == "user" and entry.uuid in active and not (entry.tools or entry.meta or entry.summary)
        if is_prompt or entry.type == "permission-mode":
            mode = log.row(entry).get("permissionMode")
            if isinstance(mode, str) and mode:
                return mode
    return ""


def _plan(log: Log, rows: dict[str, Entry], messages: Sequence[Message], calls: dict[str, Block]) -> PlanState:
    found = PlanState(_announced_path(log, rows))
    for message in messages:
        if message.kind == "prompt" and found.approved:
            found = PlanState(found.path, found.text, found.uuids, True, True)
        for result in tool_results(message):
            call = calls.get(call_id(result), {})
            if call.get("name") == _EXIT_PLAN:
                path = _string(_details(log, rows, message), "filePath") or found.path
                text = _string(call.get("input"), "plan")
                found = PlanState(path, text or found.text, message.uuids, result.get("is_error") is not True)
            elif (text := _string(call.get("input"), "content")) and _is_plan(call, found.path):
                path = _string(call.get("input"), "file_path")
                found = PlanState(path, text, message.uuids, found.approved, found.is_followed)
    return found


def _announced_path(log: Log, rows: dict[str, Entry]) -> str:
    """What the client said last about where the plan goes."""
    for entry in reversed(rows.values()):
        if entry.type == "attachment":
            attachment = log.body(entry).get("attachment")
            if _string(attachment, "type") in _PLAN_ATTACHMENTS:
                return _string(attachment, "planFilePath")
    return ""


def _is_plan(call: Block, path: str) -> bool:
    """Whether a call is about the plan's file; where none was named yet, about any file of plans."""
    given = _string(call.get("input"), "file_path")
    return given == path if path else bool(_PLAN_FILE.search(given))


def _running(
    log: Log, rows: dict[str, Entry], messages: Sequence[Message], calls: dict[str, Block]
) -> Iterator[Running]:
    started: dict[str, Running] = {}
    for message in messages:
        for result in tool_results(message):
            call = calls.get(call_id(result), {})
            if call.get("name") in _AGENTS or mapping(call.get("input")).get("run_in_background") is True:
                started |= {task.id: task for task in _started(_details(log, rows, message), call)}
        for ended in _ended(message):
            started.pop(ended, None)
    yield from started.values()


def _started(details: JSON, call: Block) -> Iterator[Running]:
    given = mapping(call.get("input"))
    if _string(details, "status") == "async_launched" and (ident := _string(details, "agentId")):
        yield Running(
            ident, _string(details, "description") or _string(given, "description"), _string(details, "outputFile")
        )
    elif ident := _string(details, "backgroundTaskId"):
        yield Running(ident, _string(given, "command"))


def _ended(message: Message) -> Iterator[str]:
    """The ids of what reported back, or was stopped."""
    for block in message.content:
        text = block_text(block) if message.kind != "response" else ""
        if text.lstrip().startswith(_NOTIFICATION):
            yield from _TASK_ID.findall(text)
    for block in tool_uses(message):
        if block.get("name") in _STOPS:
            yield from (value for value in mapping(block.get("input")).values() if isinstance(value, str))


def _queued(log: Log, messages: Sequence[Message]) -> Iterator[str]:
    """What is in the queue still; not every client says what it takes out: then a prompt says the same."""
    waiting: list[str] = []
    for entry in log.entries:
        if entry.type != "queue-operation":
            continue
        row = log.row(entry)
        text = _string(row, "content")
        match row.get("operation"):
            case "enqueue":
                waiting.append(text)
            case "popAll":
                waiting.clear()
            case "dequeue" | "remove" if waiting:
                waiting.pop(waiting.index(text) if text in waiting else 0)
    said = {block_text(block).strip() for m in messages if m.kind == "prompt" for block in m.content}
    for text in waiting:
        if text.strip() and text.strip() not in said and not text.lstrip().startswith(_NOTIFICATION):
            yield text


def _details(log: Log, rows: dict[str, Entry], message: Message) -> JSON:
    """What the client keeps beside a result."""
    entry = rows.get(message.uuid)
    return log.row(entry).get("toolUseResult") if entry else None


def _string(value: JSON, key: str) -> str:
    return string(mapping(value).get(key))
