"""What stages need to know of tool results: of which call, how old, what it shows, what came after it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from core.model import Block, Message, block_text, call_id, mapping, mappings, tool_results, tool_uses

_INSTRUCTIONS = re.compile(
    r"(^|[/\\])((CLAUDE|CLAUDE\.local|AGENTS|GEMINI|SKILL)\.md|\.claude[/\\](rules|skills|commands|agents)[/\\].*"
    r"|(memory|memories)[/\\][^/\\]*\.md)$",
    re.IGNORECASE,
)
"""Files that tell the model how to work: clearing them changes what it does."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One tool result; responses are counted from 0."""

    block: Block
    id: str
    name: str
    """The tool, "" where the call is not there."""
    path: str
    """The file that the call names, "" where it names none."""
    at: int
    """Which message it is in."""
    response: int
    """Which response asked for it."""
    chars: int
    has_media: bool
    is_error: bool
    repeated_at: int | None
    """The first later response that asked for the same, or for all of the same file, and got it."""

    @property
    def is_instruction(self) -> bool:
        """Whether it shows a file that tells the model how to work."""
        return bool(_INSTRUCTIONS.search(self.path))


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    response: int
    path: str
    key: bytes
    """The same for calls that ask for the same."""
    is_whole: bool
    """Whether it asks for a file from its beginning to its end."""


def tool_results_of(messages: Sequence[Message], hollow: Collection[str] = ()) -> list[ToolResult]:
    """All tool results, in order; those whose ids are `hollow` show nothing (any more), and repeat nothing."""
    calls = _calls(messages)
    repeated: dict[bytes, int] = {}
    found: list[ToolResult] = []
    for at in range(len(messages) - 1, -1, -1):
        for block in reversed(tool_results(messages[at])):
            ident = call_id(block)
            call = calls.get(ident, _UNKNOWN)
            result = _result(block, ident, call, at, repeated)
            found.append(result)
            if call is not _UNKNOWN and not result.is_error and ident not in hollow:
                repeated[call.key] = call.response
                if call.is_whole:
                    repeated[_file_key(call)] = call.response
    return found[::-1]


def named_by(name: str, patterns: Sequence[str]) -> bool:
    """Whether a tool is one of those that the patterns name (`mcp__db__*`)."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_UNKNOWN = _Call("", 0, "", b"", False)


def _calls(messages: Sequence[Message]) -> dict[str, _Call]:
    found: dict[str, _Call] = {}
    number = -1
    for message in messages:
        if message.kind != "response":
            continue
        number += 1
        for block in tool_uses(message):
            found.setdefault(call_id(block), _call(block, number))
    return found


def _call(block: Block, response: int) -> _Call:
    given = block.get("input")
    name = str(block.get("name"))
    fields = mapping(given)
    path = next((p for k in ("file_path", "notebook_path", "path") if isinstance(p := fields.get(k), str)), "")
    key = name.encode() + b"\0" + msgspec.json.encode(given, order="deterministic")
    return _Call(name, response, path, key, bool(path) and name == "Read" and not {"offset", "limit"} & fields.keys())


def _file_key(call: _Call) -> bytes:
    return b"\0" + call.name.encode() + b"\0" + call.path.encode(errors="surrogatepass")


def _result(block: Block, ident: str, call: _Call, at: int, repeated: Mapping[bytes, int]) -> ToolResult:
    content = block.get("content")
    media = any(c.get("type") != "text" for c in mappings(content))
    later = [n for k in (call.key, _file_key(call)) if (n := repeated.get(k)) is not None]
    return ToolResult(
        block,
        ident,
        call.name,
        call.path,
        at,
        call.response,
        len(block_text(block)),
        media,
        block.get("is_error") is True,
        min(later) if later and call is not _UNKNOWN else None,
    )
