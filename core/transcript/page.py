"""What was taken out of a session, as one readable page of Markdown, and where on it each body lies.

Every message stands under a heading with its id, every tool result under one with the id of its call.  Results are
fenced, so that nothing in them can pass for a heading; images and documents are files of their own.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from core.model import JSON, Block, Message, call_id, string, tool_uses
from core.transcript.blob import Blob, json_bytes, media_blob, utf8

_INPUT_CHARS = 100
"""What a heading shows of a call's input: enough for a path or the start of a command, on one line."""
_TICKS = re.compile(r"`+")


class Body(msgspec.Struct, frozen=True):
    """Where the text of one message or one tool result is: the line of an index.

    `offset` and `size` are bytes of `file`; `line` (from 1) and `lines` say the same for an editor.
    """

    id: str
    kind: str
    """A message's kind, or result, image, document; `output` for a whole result in a file of its own."""
    name: str
    """Of a result: the tool."""
    file: str
    offset: int
    size: int = msgspec.field(name="bytes")
    line: int
    lines: int
    """0 where they are not counted: an empty body, an image, what the client stored."""
    sha256: str


@dataclass(slots=True)
class Page:
    """The text of a page in pieces, and the bodies on it (a message's body holds those of its results).

    `media` are the images and documents, decoded, by the names of their files.
    """

    file: str
    pieces: list[bytes] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    media: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0
    _line: int = 1

    def put(self, text: str) -> None:
        """Write on."""
        raw = utf8(text)
        self.pieces.append(raw)
        self._size += len(raw)
        self._line += raw.count(b"\n")

    @contextlib.contextmanager
    def body(self, ident: str, kind: str, name: str = "") -> Iterator[None]:
        """What is put meanwhile is the body of `ident`; without an id it is just put."""
        first, offset, line = len(self.pieces), self._size, self._line
        yield
        if ident:
            raw = b"".join(self.pieces[first:])
            digest = hashlib.sha256(raw).hexdigest()
            where = (self.file, offset, len(raw), line, count_lines(raw), digest)
            self.bodies.append(Body(utf8(ident).decode(), kind, utf8(name).decode(), *where))

    def keep(self, block: Block) -> str:
        """Take the image or document of a block; a link to its file, or "" when it holds none that can be read."""
        if not isinstance(block.get("source"), dict):
            return ""
        blob = media_blob(block)
        if blob.form != "media":
            return ""
        if blob.file not in self.media:
            self.media[blob.file] = blob.content
            self.bodies.append(body_of(blob))
        return f"{'!' if blob.kind == 'image' else ''}[{blob.kind}]({blob.file})"


def body_of(blob: Blob, name: str = "") -> Body:
    """The index line of a file of its own; `name` is the tool."""
    raw = blob.content
    lines = 0 if blob.form == "media" else count_lines(raw)
    ident, tool = utf8(blob.id).decode(), utf8(name).decode()
    return Body(ident, blob.kind, tool, blob.file, 0, len(raw), 1, lines, hashlib.sha256(raw).hexdigest())


def count_lines(raw: bytes) -> int:
    """How many lines an editor shows; a last one without a line end counts."""
    return raw.count(b"\n") + (not raw.endswith(b"\n") and bool(raw))


def render(file: str, header: str, messages: Sequence[Message], ident: str = "") -> Page:
    """The page of the messages, to be stored as `file`; the same messages give the same bytes.

    With an `ident`, all of them together are a body too.
    Raises Damaged for a block that no program could have written: nested too deeply to be read again.
    """
    page = Page(file)
    page.put(header.rstrip("\n"))
    calls = {call_id(call): call for message in messages for call in tool_uses(message)}
    with page.body(ident, "page"):
        for number, message in enumerate(messages, 1):
            _put_message(page, number, message, calls)
    page.put("\n")
    return page


def _put_message(page: Page, number: int, message: Message, calls: dict[str, Block]) -> None:
    details = (f"{message.role}, {message.kind}", message.timestamp, message.uuid)
    page.put(f"\n\n## {number}. {' · '.join(filter(None, map(one_line, details)))}\n\n")
    with page.body(message.uuid, message.kind):
        for place, block in enumerate(message.content):
            page.put("\n\n" if place else "")
            _put_block(page, block, calls)


def _put_block(page: Page, block: Block, calls: dict[str, Block]) -> None:
    match block:
        case {"type": "text", "text": str(text)}:
            page.put(text)
        case {"type": "thinking", "thinking": str(text)}:
            page.put(f"**Thinking**\n\n{text}")
        case {"type": "tool_use"}:
            page.put(f"**Call** {_call(block)}\n\n")
            page.put(_fenced_json(block.get("input")))
        case {"type": "tool_result"}:
            _put_result(page, block, calls)
        case _:
            page.put(page.keep(block) or _fenced_json(block))


def _put_result(page: Page, block: Block, calls: dict[str, Block]) -> None:
    ident = block.get("tool_use_id")
    call = calls.get(str(ident), {"id": ident})
    shown = json_bytes(call["input"]).decode()[:_INPUT_CHARS] if "input" in call else ""
    failed = " (error)" if block.get("is_error") is True else ""
    page.put(f"### Result{failed} of {_call(call)}{' · ' if shown else ''}{shown}\n\n")
    text = _result_text(page, block.get("content"))
    line = fence(text)
    page.put(f"{line}\n")
    with page.body(str(ident), "result", str(call.get("name") or "")):
        page.put(text)
    page.put(f"\n{line}")


def _result_text(page: Page, content: JSON) -> str:
    """The text of a result's content, its blocks joined by line ends, as `core.model.block_text` joins them."""
    if isinstance(content, list):
        return "\n".join(filter(None, (_item_text(page, item) for item in content)))
    return string(content)


def _item_text(page: Page, item: JSON) -> str:
    match item:
        case {"type": "text", "text": str(text)}:
            return text
        case dict():
            return page.keep(item) or json_bytes(item).decode()
        case _:
            return ""


def _call(block: Block) -> str:
    """The tool and the id of a call, as a heading shows them."""
    return " · ".join(filter(None, (one_line(str(block.get(key) or "")) for key in ("name", "id"))))


def one_line(text: str) -> str:
    """The text on one line, as `core.facts.text` has it, which is a part beside this one."""
    return " ".join(text.split())


def fence(text: str) -> str:
    """A fence that is longer than any in the text."""
    return "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))


def _fenced_json(value: JSON) -> str:
    text = msgspec.json.format(json_bytes(value), indent=2).decode()
    line = fence(text)
    return f"{line}json\n{text}\n{line}"
