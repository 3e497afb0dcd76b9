"""What a person hangs into a compaction: commands that may add to it, forbid it, or be told of it.

The commands are the user's own (never those of a project, whose files come from others), and get on their standard
input what the client gives its hooks: one JSON object.  A fault in one of them is a remark, and ends nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import IO, Any, Protocol

import msgspec

from core.errors import CompactionError
from core.model import JSON, UNDECODABLE

TIMEOUT_S = 60.0
"""As long as the client waits for its hooks."""
MOST_CHARS = 10_000
"""Of what one command adds: some 2,500 tokens, which every later request pays for."""
_MOST_BYTES = 1 << 20
"""Of what one command prints; the rest is read, so that it goes on, and dropped."""
_LAST_WORDS_S = 1.0
"""How long outputs are waited for that something which the command left running holds open."""
_BLOCKED_STATUS = 2
"""The exit status by which a command forbids what it was asked about; any other but 0 is a fault."""


@dataclass(frozen=True, slots=True)
class About:
    """The compaction that hooks are told of."""

    session_id: str = ""
    transcript: str = ""
    cwd: str = ""
    trigger: str = "manual"
    """manual, or auto: nobody asked for it."""


NOTHING_KNOWN = About()


@dataclass(frozen=True, slots=True)
class Answer:
    """What hooks said: a text to add, why they forbid it ("": they do not), and what went wrong with them."""

    text: str = ""
    blocked: str = ""
    remarks: tuple[str, ...] = ()


class Hooks(Protocol):
    """The three moments of a compaction at which others have a say."""

    def pre_compact(self, about: About, instructions: str) -> Answer:
        """Before anything is summarised: a text goes to the summariser, behind the instructions."""

    def session_start(self, about: About) -> Answer:
        """When all is put back: a text goes to the model, behind what was restored.  Nothing is forbidden any more."""

    def post_compact(self, about: About, summary: str) -> Answer:
        """When all is written."""


class NoHooks:
    """Nobody has a say."""

    def pre_compact(self, about: About, instructions: str) -> Answer:
        """Nothing."""
        return Answer()

    def session_start(self, about: About) -> Answer:
        """Nothing."""
        return Answer()

    def post_compact(self, about: About, summary: str) -> Answer:
        """Nothing."""
        return Answer()


NO_HOOKS = NoHooks()


def allowed(hooks: Hooks, about: About, instructions: str) -> Answer:
    """What hooks add to a compaction; raises CompactionError where they forbid it."""
    answer = hooks.pre_compact(about, instructions)
    if answer.blocked:
        raise CompactionError(f"a hook forbids the compaction: {answer.blocked}")
    return answer


@dataclass(frozen=True, slots=True)
class CommandHooks:
    """Shell commands, those of one moment one after the other."""

    before: Sequence[str] = ()
    started: Sequence[str] = ()
    after: Sequence[str] = ()
    timeout_s: float = TIMEOUT_S

    def pre_compact(self, about: About, instructions: str) -> Answer:
        """What the commands print, plain, is added; status 2 or `{"decision": "block"}` forbids the compaction."""
        asked: JSON = instructions if instructions or about.trigger == "manual" else None
        return self._answer(self.before, about, "PreCompact", {"trigger": about.trigger, "custom_instructions": asked})

    def session_start(self, about: About) -> Answer:
        """What the commands print, plain or as `additionalContext`, is added."""
        return self._answer(self.started, about, "SessionStart", {"source": "compact"})

    def post_compact(self, about: About, summary: str) -> Answer:
        """The commands are told of the summary; what they print is for nobody."""
        fields: dict[str, JSON] = {"trigger": about.trigger, "compact_summary": summary}
        return self._answer(self.after, about, "PostCompact", fields)

    def _answer(self, commands: Sequence[str], about: About, event: str, fields: Mapping[str, JSON]) -> Answer:
        given = msgspec.json.encode(
            {
                "session_id": about.session_id,
                "transcript_path": about.transcript,
                "cwd": about.cwd,
                "hook_event_name": event,
                **fields,
            }
        )
        answers = [_answer_of(command, event, given, self.timeout_s) for command in commands]
        return Answer(
            "\n\n".join(a.text for a in answers if a.text),
            next((a.blocked for a in answers if a.blocked), ""),
            tuple(_remarks(answers)),
        )


def _remarks(answers: Sequence[Answer]) -> Iterator[str]:
    for answer in answers:
        yield from answer.remarks


def _answer_of(command: str, event: str, given: bytes, timeout_s: float) -> Answer:
    name = f"the {event} hook {command!r}"
    try:
        status, printed, complained = _run(command, given, timeout_s)
    except subprocess.TimeoutExpired:
        return Answer(remarks=(f"{name} did not end within {timeout_s:g} seconds",))
    except OSError as error:
        return Answer(remarks=(f"{name} cannot be run: {error.strerror or error}",))
    if status == _BLOCKED_STATUS:
        return Answer(blocked=complained.strip()[:MOST_CHARS] or f"{name} gave no reason")
    if status:
        last = complained.strip().splitlines()[-1:] or ["it printed nothing"]
        return Answer(remarks=(f"{name} ended with status {status}: {last[0][:200]}",))
    return _printed(printed.strip(), name)


def _printed(text: str, name: str) -> Answer:
    """What a command that went well printed means: a JSON object says it by its keys, anything else is the text."""
    try:
        said = msgspec.json.decode(text)
    except UNDECODABLE:
        said = None
    if not isinstance(said, dict):
        return Answer(text[:MOST_CHARS])
    if said.get("decision") == "block":
        return Answer(blocked=str(said.get("reason") or f"{name} gave no reason")[:MOST_CHARS])
    specific = said.get("hookSpecificOutput")
    added = specific.get("additionalContext") if isinstance(specific, dict) else None
    return Answer(added[:MOST_CHARS] if isinstance(added, str) else "")


def _run(command: str, given: bytes, timeout_s: float) -> tuple[int, str, str]:
    """Status, output and errors of a shell command; after the timeout it is killed with all that it started.

    It has ended when it has ended itself: what it leaves running may hold its outputs open.
    It inherits the whole environment: it is the user's, and may need any of it.
    """
    process = subprocess.Popen(
        command,
        shell=True,  # the user's own command line, from the user's own settings
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    printed, complained = list[bytes](), list[bytes]()
    try:
        _aside(_given, process.stdin, given)
        readers = [_aside(_kept, process.stdout, printed), _aside(_kept, process.stderr, complained)]
        process.wait(timeout_s)
        for reader in readers:
            reader.join(_LAST_WORDS_S)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, _text(printed), _text(complained)


def _aside(run: Callable[[IO[bytes], Any], None], pipe: IO[bytes] | None, data: object) -> Thread:
    thread = Thread(target=run, args=(pipe, data), daemon=True)
    thread.start()
    return thread


def _given(pipe: IO[bytes], given: bytes) -> None:
    """Writes all of it; a command need not read it."""
    with suppress(OSError), pipe:
        pipe.write(given)


def _kept(pipe: IO[bytes], kept: list[bytes]) -> None:
    """Reads to the end, and keeps the beginning."""
    room = _MOST_BYTES
    with pipe:
        while piece := os.read(pipe.fileno(), 1 << 16):
            kept.append(piece[:room])
            room -= len(kept[-1])


def _text(pieces: list[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "replace")
