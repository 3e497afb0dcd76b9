"""Which files a call read or changed, and what the change defines."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from core.facts.scan import Call
from core.facts.text import capped

Deed: TypeAlias = Literal["created", "edited", "deleted", "read"]

_EDITS = re.compile(r"edit|replace|patch|update|insert|str_replace", re.IGNORECASE)
_WRITES = re.compile(r"write|create|save", re.IGNORECASE)
_READS = re.compile(r"read|view|open|cat|fetch", re.IGNORECASE)
_BY_NAME: tuple[tuple[re.Pattern[str], Deed], ...] = ((_EDITS, "edited"), (_WRITES, "created"), (_READS, "read"))
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.{1,300})$", re.MULTILINE)
_BY_PATCH: dict[str, Deed] = {"Add": "created", "Update": "edited", "Delete": "deleted"}
_DEFINED = re.compile(
    r"^[ \t]{0,24}(?:(?:export|default|pub|public|private|protected|static|async|abstract|final) ){0,4}"
    r"(?:def|class|func|fn|function|interface|struct|enum|type|const|trait|record)"
    r" (?:\([^)\n]{0,80}\) )?([A-Za-z_]\w{2,60})",
    re.MULTILINE,
)
"""A definition at the start of a line, in the languages that begin it with a word."""


def touched(call: Call) -> list[tuple[str, Deed]]:
    """The files that a call read or changed, and what it did; none of a call that failed."""
    if call.failed:
        return []
    patches = [
        m
        for text in (call.command, call.input.get("input"), call.input.get("patch"))
        if isinstance(text, str)
        for m in _PATCHED.finditer(capped(text))
    ]
    if patches:
        return [(m[2].strip(), _BY_PATCH[m[1]]) for m in patches]
    if not call.path:
        return []
    for pattern, what in _BY_NAME:
        if pattern.search(call.name):
            return [(call.path, what)]
    return []


def definitions(call: Call) -> list[str]:
    """The names that the new text of a call defines, in order."""
    texts = [
        v
        for k in ("new_string", "content", "new_str", "file_text", "input", "patch")
        if isinstance(v := call.input.get(k), str)
    ]
    return [name for text in texts for name in _DEFINED.findall(capped(text))]
