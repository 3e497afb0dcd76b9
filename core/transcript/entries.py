"""One row of a Claude Code transcript: its header decoded, its body left on disk.

A 500 MB file has some 80,000 rows; only what a chain, a leaf or a size needs is kept of each.  Bodies are read
again when a message is built (`Log.row`, `Log.body`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Raw

from core.errors import Damaged
from core.model import JSON, UNDECODABLE, Usage, text_block
from core.transcript.decode import decode_json
from core.transcript.outline import BlockHead, BlockOutline, outline_blocks, outline_content, outline_heads

CHAIN_TYPES = frozenset({"user", "assistant", "attachment", "system"})
"""Row types that the client puts on the parent chain; any other row with a uuid is only passed through as a parent."""


_MAX_COUNT = 1 << 53
"""Larger figures are no token counts, and no whole numbers for a JavaScript client."""
_Count = Annotated[int, msgspec.Meta(ge=-_MAX_COUNT, le=_MAX_COUNT)]


class _Lifetimes(msgspec.Struct, frozen=True, gc=False):
    hour: _Count = msgspec.field(default=0, name="ephemeral_1h_input_tokens")


class _UsageHead(msgspec.Struct, frozen=True, gc=False):
    input_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_creation: _Lifetimes | None = None


class _MessageHead(msgspec.Struct, gc=False):
    id: str = ""
    model: str = ""
    content: list[BlockHead] | str | None = None
    usage: _UsageHead | None = None


_NOTHING = Raw()
"""The default itself is what stands where a row has no such field."""


class _RowHead(msgspec.Struct, gc=False):
    type: str = ""
    subtype: str = ""
    uuid: str = ""
    parent: str | None = msgspec.field(default=None, name="parentUuid")
    sidechain: bool = msgspec.field(default=False, name="isSidechain")
    meta: bool = msgspec.field(default=False, name="isMeta")
    summary: bool = msgspec.field(default=False, name="isCompactSummary")
    api_error: bool = msgspec.field(default=False, name="isApiErrorMessage")
    leaf: str = msgspec.field(default="", name="leafUuid")
    timestamp: str = ""
    message: _MessageHead | None = None
    foldmark: Raw = _NOTHING


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The header of one row, and where its bytes are (`offset`, `size` in bytes, without the line end)."""

    offset: int
    size: int
    type: str = ""
    subtype: str = ""
    uuid: str = ""
    parent: str = ""
    timestamp: str = ""
    sidechain: bool = False
    meta: bool = False
    summary: bool = False
    """A user row that a compaction wrote."""
    api_error: bool = False
    """An assistant row that the client made up to show an error of the API; never sent."""
    leaf: str = ""
    """Of a `last-prompt` row: the row that a resume starts from."""
    response_id: str = ""
    model: str = ""
    usage: Usage | None = None
    tools: tuple[str, ...] = ()
    """Ids of the tool calls (assistant) or of the calls that are answered (user)."""
    outlines: tuple[BlockOutline, ...] = ()
    """What the message's blocks amount to, for user and assistant rows."""
    projected: bool = False
    """The usage is Foldmark's own figure for a request that was never made: the row carries the real one beside it."""

    @property
    def is_boundary(self) -> bool:
        """A compaction's boundary: the one row that cuts the history."""
        return self.subtype == "compact_boundary" and self.type == "system"

    @property
    def on_chain(self) -> bool:
        """Whether the row can be a link of the conversation."""
        return self.type in CHAIN_TYPES and bool(self.uuid)

    @property
    def may_be_sent(self) -> bool:
        """Whether the row can be a message: of the client's system rows only the output of its own commands is one."""
        if self.type == "system":
            return self.subtype == "local_command"
        return self.type in CHAIN_TYPES and not self.api_error


class _ContentHead(msgspec.Struct, frozen=True, gc=False):
    content: Raw = _NOTHING


class _ContentRow(msgspec.Struct, gc=False):
    message: _ContentHead = _ContentHead()


_decode_row = msgspec.json.Decoder(_RowHead).decode
_decode_content = msgspec.json.Decoder(_ContentRow).decode


def decode_entry(raw: bytes | bytearray | memoryview, offset: int) -> Entry | None:
    """The header of a row, or None for a JSON value that is no row (null, a list, {}).

    A field of the wrong type counts as missing.  Raises `Damaged` if the bytes are no JSON.
    """
    size = len(raw)
    try:
        head = _decode_row(raw)
    except UNDECODABLE:
        value = decode_json(bytes(raw))
        if not isinstance(value, dict):
            return None
        raw = msgspec.json.encode(_sane_row(value))
        head = _decode_row(raw)
    if not head.type:
        return None
    if head.message is not None and head.type in ("user", "assistant"):
        return _with_message(head, head.message, offset, size, raw)
    return Entry(
        offset,
        size,
        head.type,
        head.subtype,
        head.uuid,
        head.parent or "",
        head.timestamp,
        head.sidechain,
        head.meta,
        leaf=head.leaf,
    )


def _with_message(
    head: _RowHead, message: _MessageHead, offset: int, size: int, raw: bytes | bytearray | memoryview
) -> Entry:
    spoken = head.type == "assistant"
    content = message.content
    tools: tuple[str, ...] = ()
    outlines: tuple[BlockOutline, ...] = ()
    if isinstance(content, list):
        outlines = outline_heads(content) or outline_content(bytes(_decode_content(raw).message.content))
        kind = "tool_use" if spoken else "tool_result"
        tools = tuple([outline.tool_id for outline in outlines if outline.kind == kind])
    elif content is not None:
        outlines = outline_blocks([text_block(content)])
    return Entry(
        offset,
        size,
        head.type,
        head.subtype,
        head.uuid,
        head.parent or "",
        head.timestamp,
        head.sidechain,
        head.meta,
        head.summary,
        head.api_error,
        "",
        message.id if spoken else "",
        message.model,
        _usage(message.usage) if message.usage else None,
        tools,
        outlines,
        head.foldmark is not _NOTHING,
    )


def _usage(head: _UsageHead) -> Usage:
    hour = head.cache_creation.hour if head.cache_creation else 0
    return Usage(
        head.input_tokens, head.cache_creation_input_tokens, head.cache_read_input_tokens, head.output_tokens, hour
    )


_TEXT, _FLAG = (str,), (bool,)
_ROW_FIELDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "subtype", "uuid", "parentUuid", "leafUuid", "timestamp"), _TEXT),
    **dict.fromkeys(("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage"), _FLAG),
}
_MESSAGE_FIELDS = dict.fromkeys(("id", "model"), _TEXT)
_BLOCK_FIELDS = dict.fromkeys(("type", "id", "name", "tool_use_id"), _TEXT)
_BODY_FIELDS = ("text", "thinking", "signature", "content", "input", "source")
_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def _sane_row(row: Mapping[str, JSON]) -> dict[str, JSON]:
    """The header fields of a row that have the right type."""
    kept = _typed(row, _ROW_FIELDS)
    message = row.get("message")
    if isinstance(message, dict):
        kept["message"] = _sane_message(message)
    if "foldmark" in row:
        kept["foldmark"] = row["foldmark"]
    return kept


def _sane_message(message: Mapping[str, JSON]) -> dict[str, JSON]:
    kept = _typed(message, _MESSAGE_FIELDS)
    content, usage = message.get("content"), message.get("usage")
    if isinstance(content, str):
        kept["content"] = content
    elif isinstance(content, list):
        kept["content"] = [_sane_block(b) for b in content if isinstance(b, dict)]
    if isinstance(usage, dict):
        lifetimes = usage.get("cache_creation")
        hour = _counts(lifetimes, ("ephemeral_1h_input_tokens",)) if isinstance(lifetimes, dict) else None
        kept["usage"] = {**_counts(usage, _COUNTS), "cache_creation": hour}
    return kept


def _sane_block(block: Mapping[str, JSON]) -> dict[str, JSON]:
    return _typed(block, _BLOCK_FIELDS) | {key: block[key] for key in _BODY_FIELDS if key in block}


def _typed(value: Mapping[str, JSON], fields: Mapping[str, tuple[type, ...]]) -> dict[str, JSON]:
    return {key: value[key] for key, types in fields.items() if isinstance(value.get(key), types)}


def _counts(value: Mapping[str, JSON], keys: tuple[str, ...]) -> dict[str, JSON]:
    numbers = {key: value.get(key) for key in keys}
    return {k: n for k, n in numbers.items() if isinstance(n, int) and not isinstance(n, bool) and abs(n) <= _MAX_COUNT}


class _Body(msgspec.Struct, gc=False):
    message: object = None
    content: object = None
    attachment: object = None
    rendered: object = None
    rendered_role: object = msgspec.field(default=None, name="renderedRole")
    origin: object = None
    own_note: object = msgspec.field(default=None, name="ownNote")
    display_only: object = msgspec.field(default=None, name="isDisplayOnly")
    compact: object = msgspec.field(default=None, name="compactMetadata")
    logical_parent: object = msgspec.field(default=None, name="logicalParentUuid")
    foldmark: object = None


_BODY_NAMES = tuple(f.encode_name for f in msgspec.structs.fields(_Body))
_decode_body = msgspec.json.Decoder(_Body).decode


def decode_body(raw: bytes) -> dict[str, JSON]:
    """What a message is made of: a row without its `toolUseResult`, which is never sent and often most of it.

    Raises `Damaged` if the bytes are no JSON object.
    """
    try:
        return dict(zip(_BODY_NAMES, msgspec.structs.astuple(_decode_body(raw)), strict=True))
    except UNDECODABLE:
        return decode_row(raw)


def decode_row(raw: bytes) -> dict[str, JSON]:
    """A row, all of it; bad bytes and lone surrogates are U+FFFD.  Raises `Damaged` if it is no JSON object."""
    value = decode_json(raw)
    if not isinstance(value, dict):
        raise Damaged("a JSON value that is no row")
    return value
