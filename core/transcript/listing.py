"""What can be said about a session from the first and last 64 KiB of its file.

A list of a thousand sessions must not read a thousand transcripts.  Titles and figures stand near the ends: the
client repeats its one-value rows (title, last prompt) while a session grows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw

from core.errors import InputError
from core.model import UNDECODABLE
from core.times import time_from
from core.transcript.formats.sniff import CLAUDE_CODE, recognised
from core.transcript.note import END_TYPE
from core.transcript.projects import SessionFile, project_folders, project_slug, read_small, session_files, spellings
from core.transcript.records import is_as_made

END_BYTES = 64 << 10
"""What is read at each end of a file."""
TITLE_CHARS = 200
_GLANCE_BYTES = 4 << 10
"""Enough for a short row and the rows without times behind it."""

State: TypeAlias = Literal["live", "ready", "compacted", "foreign", "empty", "damaged"]
"""live: a client has it open.  compacted: a boundary stands in the parts that were read.  foreign: it is not of Claude
Code.  empty: no conversation.  damaged: there are bytes, but no row that can be read.  ready: none of these."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One line of a list of sessions."""

    file: SessionFile
    title: str
    """As the client's own list shows it; "" for a session in which nobody said anything."""
    cwd: str
    """The folder it was started in; "" when the file does not say."""
    updated: float
    """Time of the last row in seconds since 1970; the file's own when no row has one, or all rows are a copy that
    Foldmark made: then it is newer than what it was made of."""
    version: str
    """Of the client that wrote last."""
    model: str
    usage_tokens: int | None
    """Size of the context after the last response, as the API reported it; None when the end holds no figure."""
    state: State
    format: str
    """The name of its format; all but `file`, `updated` and `state` is looked for in a Claude Code transcript alone."""

    @property
    def project(self) -> str:
        """The folder, or the name of the client's project folder when the file does not say."""
        return self.cwd or self.file.path.parent.name


class _UsageHead(msgspec.Struct, gc=False):
    input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    output_tokens: int | None = 0

    def total(self) -> int:
        parts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens, self.output_tokens)
        return sum(part or 0 for part in parts)


class _MessageHead(msgspec.Struct, gc=False):
    model: str = ""
    content: Raw = Raw(b"")
    usage: _UsageHead | None = None


class _Row(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    timestamp: str = ""
    cwd: str = ""
    version: str = ""
    is_sidechain: bool | None = False
    is_meta: bool | None = False
    is_compact_summary: bool | None = False
    custom_title: str = ""
    ai_title: str = ""
    last_prompt: str = ""
    summary: str = ""
    leaf_uuid: str | None = None
    message: _MessageHead | None = None


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""


class _TitleFile(msgspec.Struct, gc=False, rename="camel"):
    custom_title: str = ""


_PADDING = b"\xef\xbb\xbf\r\0 \t"
"""What Windows and crashes leave around rows."""
_decode_row = msgspec.json.Decoder(_Row).decode
_decode_content = msgspec.json.Decoder(str | list[_Block]).decode

_BOUNDARIES = ((b'"compact_boundary"', "system"), (f'"{END_TYPE}"'.encode(), END_TYPE))
_COMMAND = re.compile(r"\s*<command-(?:name|message)>\s*([^<]+)")
_INJECTED = re.compile(r"\s*<[a-z][a-z-]*>|\[Request interrupted")


def sessions(claude_dir: Path, folder: str | None = None, live: Collection[str] = ()) -> Iterator[SessionInfo]:
    """List the sessions, the newest first; with `folder` (an absolute path) only those that were started there.

    `live` holds the ids, in lower case, of sessions that a client has open.  Never raises for what is in the files.
    """
    if folder is None:
        yield from described(session_files(claude_dir), live)
        return
    names = spellings(folder)
    slugs = {project_slug(name) for name in names}
    for file in _newest_first(session_files(claude_dir, project_folders(claude_dir, folder))):
        info = describe(file, live)
        # Another folder may share the slug; its sessions say so.
        if info.cwd in names or project_slug(info.cwd) not in slugs:
            yield info


def described(files: Iterable[SessionFile], live: Collection[str] = ()) -> Iterator[SessionInfo]:
    """List transcripts as `sessions` does."""
    return (describe(file, live) for file in _newest_first(files))


def _newest_first(files: Iterable[SessionFile]) -> list[SessionFile]:
    return sorted(files, key=lambda file: (-last_written(file), -file.mtime, str(file.path)))


def last_written(file: SessionFile) -> float:
    """When the last row was written, as `SessionInfo.updated` says it, mostly from a look at the very end alone.

    Not the time of the file: a copy, a backup, an undo change that, and nobody was at work in the session.
    """
    if is_as_made(file):
        return file.mtime
    with suppress(OSError), file.path.open("rb", buffering=0) as stream:
        stream.seek(max(0, file.size_bytes - _GLANCE_BYTES))
        for row in _rows(reversed((stream.read(_GLANCE_BYTES) or b"").split(b"\n"))):
            if row.timestamp:
                return _seconds(row.timestamp) or file.mtime
    return describe(file).updated


def describe(file: SessionFile, live: Collection[str] = ()) -> SessionInfo:
    """Read both ends of a file and say what they tell."""
    head, tail = _ends(file)
    facts = _Facts()
    for row in _rows(head.split(b"\n")):
        facts.see_from_the_start(row)
        if facts.cwd and facts.prompt:
            break
    for row in _rows(reversed(tail.split(b"\n"))):
        facts.see_from_the_end(row)
        if facts.timestamp and facts.version and facts.usage_tokens is not None:
            break
    title = _title(file, head, tail) or facts.prompt or facts.command
    kind = CLAUDE_CODE.name if title or facts.usage_tokens is not None else _format(file)
    state: State = "ready"
    if file.id.casefold() in live:
        state = "live"
    elif kind != CLAUDE_CODE.name:
        state = "foreign"
    elif not facts.rows and file.size_bytes:
        state = "damaged"
    elif not facts.talk:
        state = "empty"
    elif any(_find_row(part, key, kind) for part in (tail, head) for key, kind in _BOUNDARIES):
        state = "compacted"
    updated = (0.0 if is_as_made(file) else _seconds(facts.timestamp)) or file.mtime
    return SessionInfo(
        file, _shown_title(title), facts.cwd, updated, facts.version, facts.model, facts.usage_tokens, state, kind
    )


def _format(file: SessionFile) -> str:
    """The format of a file in which nothing of a Claude Code transcript was found: there may be nothing in it yet."""
    try:
        return recognised(file.path).name
    except InputError:
        return CLAUDE_CODE.name


@dataclass(slots=True)
class _Facts:
    """What the rows said so far."""

    rows: int = 0
    talk: bool = False
    cwd: str = ""
    prompt: str = ""
    command: str = ""
    timestamp: str = ""
    version: str = ""
    model: str = ""
    usage_tokens: int | None = None

    def see_from_the_start(self, row: _Row) -> None:
        self.rows += 1
        self.cwd = self.cwd or row.cwd
        if row.type not in ("user", "assistant") or row.is_sidechain:
            return
        self.talk = True
        if row.type == "user" and row.message and not (row.is_meta or row.is_compact_summary):
            text = _text(row.message.content)
            if command := _COMMAND.match(text):
                self.command = self.command or command[1]
            elif not _INJECTED.match(text):
                self.prompt = self.prompt or text

    def see_from_the_end(self, row: _Row) -> None:
        self.rows += 1
        self.timestamp = self.timestamp or row.timestamp
        self.version = self.version or row.version
        if row.type not in ("user", "assistant") or row.is_sidechain:
            return
        self.talk = True
        if row.message and row.message.usage and self.usage_tokens is None:
            # Rows that the client made up have zeros.
            self.usage_tokens = row.message.usage.total() or None
            self.model = row.message.model


def _shown_title(text: str) -> str:
    """A title on one line of at most `TITLE_CHARS` characters."""
    line = " ".join(text[: 4 * TITLE_CHARS].split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "\u2026"


def _ends(file: SessionFile) -> tuple[bytes, bytes]:
    """Read the first and the last bytes of a file; all of a short one, twice; nothing of one that cannot be read."""
    try:
        with file.path.open("rb", buffering=0) as stream:
            if file.size_bytes <= 2 * END_BYTES:
                whole = stream.read(2 * END_BYTES) or b""
                return whole, whole
            head = stream.read(END_BYTES) or b""
            stream.seek(file.size_bytes - END_BYTES)
            return head, stream.read(END_BYTES) or b""
    except OSError:
        return b"", b""


def _rows(lines: Iterable[bytes]) -> Iterator[_Row]:
    for line in lines:
        if row := _row(line):
            yield row


def _row(line: bytes) -> _Row | None:
    """Decode a line; None for the half lines at a cut, for damage and for what is no row."""
    try:
        row = _decode_row(line.strip(_PADDING))
    except UNDECODABLE:
        return None
    return row if row.type else None


def _text(content: Raw) -> str:
    try:
        value = _decode_content(content)
    except UNDECODABLE:
        return ""
    if isinstance(value, str):
        return value
    return "\n".join(block.text for block in value if block.type == "text")


def _title(file: SessionFile, head: bytes, tail: bytes) -> str:
    """The client's order: the user's title, the model's, the last prompt, an old client's summary."""
    for key, kind in ((b'"customTitle"', "custom-title"), (b'"aiTitle"', "ai-title"), (b'"lastPrompt"', "last-prompt")):
        row = _find_row(tail, key, kind) or _find_row(head, key, kind)
        if row and (title := row.custom_title or row.ai_title or row.last_prompt):
            return title
        if kind == "custom-title" and (title := _title_beside(file)):
            return title
    row = _find_row(tail, b'"leafUuid"', "summary") or _find_row(head, b'"leafUuid"', "summary")
    # Old clients left summaries of other sessions at the top of a file: the row that one names is not in this file.
    if row and row.leaf_uuid and (head + tail).count(row.leaf_uuid.encode()) > (1 if head is not tail else 2):
        return row.summary
    return ""


def _find_row(data: bytes, key: bytes, kind: str) -> _Row | None:
    """Find the last row of a type by a key that it holds, without decoding the others."""
    end = len(data)
    while (at := data.rfind(key, 0, end)) >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        stop = data.find(b"\n", at)
        row = _row(data[start : stop if stop >= 0 else len(data)])
        if row and row.type == kind:
            return row
        end = start
    return None


def _title_beside(file: SessionFile) -> str:
    """The title that the client keeps in a file of its own, in the session's folder."""
    try:
        raw = read_small(file.path.with_suffix("") / "custom-title.json")
        return msgspec.json.decode(raw, type=_TitleFile).custom_title
    except (OSError, *UNDECODABLE):
        return ""


def _seconds(timestamp: str) -> float:
    time = time_from(timestamp)
    return max(0.0, time.timestamp()) if time else 0.0
