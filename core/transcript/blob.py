"""What is stored in a file of its own: one output, image or document, under a name that says what is in it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from core.errors import Damaged
from core.model import JSON, Block, is_media

Form: TypeAlias = Literal["text", "JSON", "media"]

_SUFFIXES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
}  # what the Messages API takes as base64
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of the store before it is written: `id` finds it, `kind` is that of the body (output, image, document)."""

    id: str
    kind: str
    file: str
    content: bytes
    form: Form


def blob_of(ident: str, content: JSON) -> Blob:
    """The blob of a tool result's content: text as it is (also where it is one block of text), else its JSON.

    Text can be read in parts and searched by lines, which JSON, one line of it, cannot.  Raises Damaged for what is
    nested too deeply to be written.
    """
    stem = ident if _PLAIN_ID.match(ident) else f"output-{_digest(utf8(ident))}"
    text = _plain_text(content)
    if text is not None:
        return Blob(ident, "output", f"{stem}.txt", utf8(text), "text")
    return Blob(ident, "output", f"{stem}.json", json_bytes(content), "JSON")


def media_blob(block: Block) -> Blob:
    """The blob of an image or document; of one that is not base64 (a link, plain text, damage), its JSON."""
    kind = str(block.get("type"))
    content = _decoded(block)
    if content is None:
        raw = json_bytes(block)
        ident = f"media-{_digest(raw)}"
        return Blob(ident, kind, f"{ident}.json", raw, "JSON")
    ident = f"media-{_digest(content)}"
    source = block.get("source")
    suffix = _SUFFIXES.get(str(source.get("media_type")), "bin") if isinstance(source, dict) else "bin"
    return Blob(ident, kind, f"{ident}.{suffix}", content, "media")


def stored_blob(ident: str, content: JSON) -> Blob:
    """The blob of whatever is stored: an image or document, or the content of a result."""
    return media_blob(content) if isinstance(content, dict) and is_media(content) else blob_of(ident, content)


def utf8(text: str) -> bytes:
    """The bytes of a text; a lone surrogate, which has none, is a question mark."""
    return text.encode("utf-8", "replace")


def json_bytes(value: JSON) -> bytes:
    """The JSON of a value; raises Damaged for one that no program could have written."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return utf8(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        raise Damaged("a block is nested too deeply to be stored") from None


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]  # 64 bits: no two of a session are taken for each other


def _decoded(block: Block) -> bytes | None:
    source = block.get("source")
    data = source.get("data") if isinstance(source, dict) and source.get("type") == "base64" else None
    if not isinstance(data, str):
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _plain_text(content: JSON) -> str | None:
    match content:
        case str():
            return content
        case [{"type": "text", "text": str(text), **others}] if not others:
            return text
    return None
