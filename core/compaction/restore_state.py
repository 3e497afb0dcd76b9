"""What a session was in the middle of, put back behind its summary: background work, the plan, skills, the queue.

Tools, agents and instructions of servers are not among it: with the old rows, what the client announced of them is
out of the context, and so it announces all of it again, in full, with the next prompt (measured on 2.1.197 and
2.1.332; clients before send them beside the messages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.attachments.plan_mode import PlanMode
from core.compaction.restore import CHARS_PER_TOKEN, Restored, RestoreLimits, framed
from core.compaction.state import PLAN_MODE, PlanState, State
from core.facts.text import one_line
from core.model import Message, block_text
from core.redact.text import redact
from core.transcript.ordinary import open_ordinary

_SKILL = re.compile(r"\s*Base directory for this skill: ([^\n]+)\n")
"""How a client begins the text of a skill that was invoked."""
_SKILL_TOKENS, _SKILLS_TOKENS = 5_000, 25_000
"""The room of one skill, and of all."""
_RUNNING_MOST = 20
"""Of what runs in the background; the rest is counted."""
_PLAN_BYTES = 1 << 20
"""As much of a plan as is looked at; what is shown is far less."""


def restored_state(
    state: State, messages: Sequence[Message], stays: Sequence[Message], limits: RestoreLimits
) -> Iterator[Restored]:
    """The texts for the model, in the order of their weight; nothing that is in the messages which stay."""
    there = {uuid for message in stays for uuid in message.uuids}
    yield from _running(state)
    yield from _plan(state, there, limits)
    yield from _skills(messages, there)
    yield from _queued(state)


def _running(state: State) -> Iterator[Restored]:
    if not state.running:
        return
    lines = [
        f"- {task.id}: {_line(task.what)}" + (f" (writes to {_line(task.output)})" if task.output else "")
        for task in state.running[:_RUNNING_MOST]
    ]
    if len(state.running) > _RUNNING_MOST:
        lines.append(f"- and {len(state.running) - _RUNNING_MOST} more")
    head = "Started in the background before the compaction, and not reported back yet; do not start it again:"
    yield Restored("background", framed("\n".join((head, *lines))), has_content=True)


def _plan(state: State, there: set[str], limits: RestoreLimits) -> Iterator[Restored]:
    plan = state.plan
    name = plan.path or "plan"
    is_there = not there.isdisjoint(plan.uuids)
    if state.permission_mode == PLAN_MODE:
        text = "" if is_there else _text_of(plan, limits)
        rule = PlanMode("full", plan.path or "which is not named yet", bool(text) or is_there).text()
        yield Restored(
            name, framed(f"Plan mode is on. {rule}" + (f"\n\nThe plan so far:\n{text}" if text else "")), True
        )
    elif plan.approved and not is_there:
        if plan.is_followed:
            where = f" ({_line(plan.path)})" if plan.path else ""
            said = "asked for something else since: it is not what is to be done now, unless they say so"
            yield Restored(name, framed(f"An earlier plan{where} was approved, and the user {said}."), False)
        elif text := _text_of(plan, limits):
            yield Restored(name, framed(f"The user approved this plan; go on with it ({name}):\n{text}"), True)


def _text_of(plan: PlanState, limits: RestoreLimits) -> str:
    """The plan as it is on disk now, else as it was given, without secrets, within the limit of one file."""
    text = redact(_on_disk(plan.path, limits.plans) or plan.text).strip()
    return _cut(text, limits.file_tokens * CHARS_PER_TOKEN)


def _on_disk(path: str, folder: Path | None) -> str:
    """The file, if it lies in the client's folder of plans; a transcript may name any other."""
    if folder is None or not path:
        return ""
    try:
        real = Path(path).resolve()
        if not real.is_relative_to(folder.resolve()):
            return ""
        with open_ordinary(real) as file:
            return file.read(_PLAN_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):
        return ""


def _skills(messages: Sequence[Message], there: set[str]) -> Iterator[Restored]:
    """The skills that were invoked, the newest first, each once."""
    left_chars = _SKILLS_TOKENS * CHARS_PER_TOKEN
    done: set[str] = set()
    for message in reversed(messages):
        text = "\n".join(map(block_text, message.content)) if message.kind == "meta" else ""
        found = _SKILL.match(text)
        if found is None or found[1] in done:
            continue
        done.add(found[1])
        if not there.isdisjoint(message.uuids):
            continue
        room = min(_SKILL_TOKENS * CHARS_PER_TOKEN, left_chars)
        shown = framed(_cut(redact(text.strip()), room))
        left_chars -= len(shown)
        if left_chars < 0:
            return
        yield Restored(f"skill {found[1].replace(chr(92), '/').rstrip('/').rpartition('/')[2]}", shown, True)


def _queued(state: State) -> Iterator[Restored]:
    if state.queued:
        texts = "\n\n".join(redact(text) for text in state.queued)
        head = "The user typed this while a turn ran, and it has not been answered yet:"
        yield Restored("queue", framed(f"{head}\n{texts}"), has_content=True)


def _line(text: str) -> str:
    return one_line(redact(text))[:200]


def _cut(text: str, room_chars: int) -> str:
    if len(text) <= room_chars:
        return text
    note = f"\n[cut: it has {len(text)} characters]"
    shown = text[: max(0, room_chars - len(note))]
    return (shown.rpartition("\n")[0] or shown) + note
