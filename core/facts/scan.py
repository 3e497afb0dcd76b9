"""One pass over the messages: who said what, which calls were made and how they ended, which names were used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.facts.names import Names, strings_in
from core.facts.text import SCAN_CHARS, SUMMARY_CHARS, capped, cut, typed
from core.model import JSON, Block, Message, block_text, call_id, mapping, string, tool_results, tool_uses

_PATH_KEYS = ("file_path", "notebook_path", "path", "filePath", "absolute_path", "target_file", "filename", "file")
_CHANGE_KEYS = ("old_string", "new_string", "content", "new_str", "file_text", "new_source", "edits", "patch")
_COMMAND_KEYS = ("command", "cmd", "script")


@dataclass(frozen=True, slots=True)
class Said:
    """A text that a person or the model wrote, with its place among the messages and its message's short id."""

    text: str
    at: int
    id: str = ""


@dataclass(slots=True)
class Call:
    """A tool call and how it ended; `result` is None while it has no answer."""

    at: int
    name: str
    input: dict[str, JSON]
    id: str = ""
    result: str | None = None
    failed: bool = False

    @property
    def path(self) -> str:
        """The file that the call is about, "" if it names none."""
        value = next((v for k in _PATH_KEYS if isinstance(v := self.input.get(k), str) and v), "")
        return value if len(value) <= 400 and "\n" not in value else ""

    @property
    def changes(self) -> bool:
        """Whether it brings new text for a file."""
        return any(key in self.input for key in _CHANGE_KEYS)

    @property
    def command(self) -> str:
        """The shell command that it runs, "" if it runs none."""
        value = next((v for k in _COMMAND_KEYS if (v := self.input.get(k))), "")
        if isinstance(value, list):
            value = " ".join(x for x in value if isinstance(x, str))
        return string(value)


@dataclass(slots=True)
class Talk:
    """What the sections are made of, each in order of time."""

    requests: list[Said] = field(default_factory=list)
    prose: list[Said] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    messages: int = 0
    last_response: int = -1

    def recency(self, at: int) -> float:
        """The place of a message in time, 0 (oldest, or from an earlier summary) to 1 (newest)."""
        return max(0, at) / max(1, self.messages)


def scan(messages: Sequence[Message]) -> Talk:
    """The conversation of some messages.  What a client made (meta, commands, attachments) is no text of a person."""
    talk = Talk(messages=len(messages))
    open_calls: dict[str, Call] = {}
    for at, message in enumerate(messages):
        if message.kind == "summary":
            talk.summaries.append(said_in(message)[:SUMMARY_CHARS])
        elif message.role == "assistant":
            _response(talk, message, at, open_calls)
        elif message.kind in ("prompt", "results"):
            _user(talk, message, at, open_calls)
    return talk


def _response(talk: Talk, message: Message, at: int, open_calls: dict[str, Call]) -> None:
    place = talk.recency(at)
    talk.last_response = at
    text = capped(said_in(message))
    if text.strip():
        talk.prose.append(Said(text, at, message.uuid[:8]))
        talk.names.add(text, place, own=True)
    for block in tool_uses(message):
        given = block.get("input")
        call = Call(at, str(block.get("name") or ""), mapping(given), message.uuid[:8])
        talk.calls.append(call)
        open_calls[call_id(block)] = call
        for value in strings_in(given):
            talk.names.add(capped(value), place, own=True)
        if "." in call.path.replace("\\", "/").rsplit("/", 1)[-1] or call.input.get("file_path"):
            talk.names.add_path(call.path, place, call.changes)


def _user(talk: Talk, message: Message, at: int, open_calls: dict[str, Call]) -> None:
    place = talk.recency(at)
    text = cut(typed(said_in(message)), SCAN_CHARS, tail=SCAN_CHARS // 4)
    if text:
        talk.requests.append(Said(text, at, message.uuid[:8]))
        talk.names.add(text, place, own=True)
    for block in tool_results(message):
        result = capped(block_text(block))
        talk.names.add(result, place, own=False)
        call = open_calls.get(call_id(block))
        if call is not None:
            call.result = result
            call.failed = block.get("is_error") is True


def said_in(message: Message) -> str:
    """What a message says, with images and documents by their kind; no calls, no results, no thinking."""
    return "\n".join(filter(None, map(_block, message.content)))


def _block(block: Block) -> str:
    match block.get("type"):
        case "text" | "compaction":
            return block_text(block)
        case "image" | "document" as media:
            return f"[{media}]"
        case _:
            return ""
