"""JSON from bytes that may be damaged: what a JavaScript client reads is read, and nothing else."""

from __future__ import annotations

import json
from typing import cast

import msgspec

from core.errors import Damaged
from core.model import JSON, UNDECODABLE

BOM = b"\xef\xbb\xbf"
_MAX_DIGITS = 400
"""Longer whole numbers are read as floats, as a JavaScript client does; Python refuses them from 4,300 digits on."""


def decode_json(raw: bytes) -> JSON:
    """One JSON value from bytes that may hold NUL bytes, bad UTF-8 or lone surrogates (both read as U+FFFD).

    Raises `Damaged` for anything else that is no JSON, NaN included: the client does not read it either.
    """
    try:
        return cast(JSON, msgspec.json.decode(raw))
    except UNDECODABLE:
        pass
    text = raw.replace(b"\0", b"").removeprefix(BOM).decode("utf-8", "replace")
    try:
        value = _tolerant(text)
        # An escaped surrogate without its other half is text for Python, but cannot be written as UTF-8.
        clean = (
            json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )
        return cast(JSON, _tolerant(clean))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"no JSON: {error}") from None


def _whole_number(digits: str) -> int | float | None:
    return int(digits) if len(digits) <= _MAX_DIGITS else _number(digits)


def _number(digits: str) -> float | None:
    """A number; None for one that is beyond any float, which a JavaScript client writes as null."""
    value = float(digits)
    return value if abs(value) < float("inf") else None


def _constant(name: str) -> JSON:
    raise ValueError(f"{name} is no JSON")


_tolerant = json.JSONDecoder(
    strict=False, parse_int=_whole_number, parse_float=_number, parse_constant=_constant
).decode
