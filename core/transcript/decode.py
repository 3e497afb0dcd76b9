"""JSON out of bytes that may be damaged."""

from __future__ import annotations

import json

import msgspec

from core.errors import Damaged
from core.model import JSON


def decode_json(raw: bytes) -> JSON:
    """One JSON value from bytes that may hold bad UTF-8 or lone surrogates (both read as U+FFFD).

    Raises `Damaged` for anything else that is no JSON, NaN included: the client does not read it either.
    """
    try:
        value: JSON = msgspec.json.decode(raw)
        return value
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        raise Damaged("the value is nested too deeply") from None
    text = raw.decode("utf-8", "replace")
    try:
        value = json.loads(text, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from None
    return msgspec.json.decode(_without_surrogates(json.dumps(value, ensure_ascii=False)))  # type: ignore[no-any-return]


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is no JSON")


def _without_surrogates(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
