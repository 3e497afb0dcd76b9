"""One row of a Claude Code transcript: its header decoded, its body left on disk.

A 500 MB file has some 80,000 rows; only what a chain, a leaf or a size needs is kept of each.  Bodies are read
again when a message is built (`Log.row`).
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from core.model import JSON, Usage
from core.transcript.decode import decode_json
from core.transcript.outline import BlockHead, BlockOutline, outline_content

CHAIN_TYPES = frozenset({"user", "assistant", "attachment", "system"})
"""Row types that the client puts on the parent chain; any other row with a uuid is only passed through as a parent."""

_EMPTY = Raw(b"")


class _UsageHead(msgspec.Struct, gc=False):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    cache_creation: dict[str, int] | None = None


class _MessageHead(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: Raw = _EMPTY
    usage: _UsageHead | None = None


class _RowHead(msgspec.Struct, gc=False):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent: str | None = msgspec.field(default=None, name="parentUuid")
    sidechain: bool | None = msgspec.field(default=None, name="isSidechain")
    meta: bool | None = msgspec.field(default=None, name="isMeta")
    summary: bool | None = msgspec.field(default=None, name="isCompactSummary")
    api_error: bool | None = msgspec.field(default=None, name="isApiErrorMessage")
    leaf: str | None = msgspec.field(default=None, name="leafUuid")
    timestamp: str | None = None
    message: _MessageHead | None = None


class Entry(msgspec.Struct, frozen=True, gc=False):
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

    @property
    def is_boundary(self) -> bool:
        """A compaction's boundary: the one row that cuts the history."""
        return self.type == "system" and self.subtype == "compact_boundary"

    @property
    def on_chain(self) -> bool:
        return self.type in CHAIN_TYPES and bool(self.uuid)


_decode_row = msgspec.json.Decoder(_RowHead).decode
_decode_blocks = msgspec.json.Decoder(list[BlockHead]).decode


def decode_entry(raw: bytes, offset: int) -> Entry | None:
    """The header of a row, or None for a JSON value that is no row (null, a list, {}); `Damaged` if it is no JSON."""
    try:
        head = _decode_row(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_oddly_typed(raw, offset)
    return _entry(head, raw, offset)


def _decode_oddly_typed(raw: bytes, offset: int) -> Entry | None:
    """A row with a field of the wrong type: the field is left out, the rest is read."""
    value = decode_json(raw)
    if not isinstance(value, dict):
        return None
    kept: dict[str, JSON] = {}
    for key, item in value.items():
        try:
            msgspec.convert({key: item}, _RowHead)
        except (msgspec.ValidationError, RecursionError):
            item = _sane_message(item) if key == "message" and isinstance(item, dict) else None
        kept[key] = item
    clean = msgspec.json.encode(kept)
    return _entry(_decode_row(clean), raw, offset)


def _sane_message(message: dict[str, JSON]) -> JSON:
    kept: dict[str, JSON] = {}
    for key, item in message.items():
        try:
            msgspec.convert({key: item}, _MessageHead)
        except msgspec.ValidationError:
            continue
        kept[key] = item
    return kept


def _entry(head: _RowHead, raw: bytes, offset: int) -> Entry | None:
    if not head.type:
        return None
    message = head.message
    if message is None or head.type not in ("user", "assistant"):
        return Entry(
            offset,
            len(raw),
            head.type,
            head.subtype or "",
            head.uuid or "",
            head.parent or "",
            head.timestamp or "",
            bool(head.sidechain),
            bool(head.meta),
            leaf=head.leaf or "",
        )
    blocks = block_heads(message.content)
    tools = tuple(
        b.id if head.type == "assistant" else b.tool_use_id for b in blocks if b.type in ("tool_use", "tool_result")
    )
    return Entry(
        offset,
        len(raw),
        head.type,
        head.subtype or "",
        head.uuid or "",
        head.parent or "",
        head.timestamp or "",
        bool(head.sidechain),
        bool(head.meta),
        bool(head.summary),
        bool(head.api_error),
        "",
        (message.id or "") if head.type == "assistant" else "",
        message.model or "",
        _usage(message.usage),
        tools,
        outline_content(bytes(message.content), blocks),
    )


def block_heads(content: Raw) -> tuple[BlockHead, ...]:
    """The heads of a message's content; a string counts as one text block, anything unreadable as none."""
    raw = bytes(content)
    if raw[:1] == b'"':
        return (BlockHead("text", text=content),)
    if raw[:1] != b"[":
        return ()
    try:
        return tuple(_decode_blocks(raw))
    except msgspec.DecodeError:
        return tuple(_odd_blocks(raw))


def _odd_blocks(raw: bytes) -> list[BlockHead]:
    heads = []
    for item in msgspec.json.decode(raw, type=list[Raw]):
        try:
            heads.append(msgspec.json.decode(item, type=BlockHead))
        except msgspec.DecodeError:
            continue
    return heads


def _usage(head: _UsageHead | None) -> Usage | None:
    if head is None:
        return None
    hour = (head.cache_creation or {}).get("ephemeral_1h_input_tokens", 0)
    return Usage(
        head.input_tokens, head.cache_creation_input_tokens, head.cache_read_input_tokens, head.output_tokens, hour
    )
