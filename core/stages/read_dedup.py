"""Reading the same again: where nothing has changed since, the later result points to the earlier one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.context.decisions import Replaced
from core.facts.names import strings_in
from core.model import Block, Message, call_id, tool_results, tool_uses
from core.stages.base import Plan, Scene, Stored
from core.stages.edits import Edit, editable_from, plan_edits
from core.stages.results import ToolResult, tool_results_of
from core.transcript.blob import json_bytes

MIN_CHARS = 1_000
"""Less is not worth a change; the stub has some 130 characters."""

_READ = "Read"
_LOOKING = frozenset({"Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite"})
"""Tools that change no file."""
_NOT_TEXT = (".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp")
_WORD = re.compile(r"\w+")
_STUB = "[{path}: nothing has changed since it was read before; the content is in the result of {id} above.]"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A result, and the earlier one that shows the same."""

    result: ToolResult
    earlier: str


class _Known:
    """Results that show how files are now, found by the files' names."""

    def __init__(self) -> None:
        self.results: dict[bytes, ToolResult] = {}
        self._keys: dict[str, list[bytes]] = {}
        """By the longest word of the file's name: a text that names many files costs no more for many results."""

    def add(self, key: bytes, result: ToolResult) -> None:
        if key not in self.results:
            self._keys.setdefault(max(_WORD.findall(_file_name(result)), key=len, default=""), []).append(key)
        self.results[key] = result

    def forget(self, text: str) -> None:
        """Drops the results of all files that a text names."""
        for word in self._keys.keys() & {"", *_WORD.findall(text)} if self._keys else ():
            keys = self._keys.pop(word)
            left = [key for key in keys if _file_name(self.results[key]) not in text]
            for key in set(keys).difference(left):
                del self.results[key]
            if left:
                self._keys[word] = left


def _shows_again(earlier: ToolResult, result: ToolResult) -> bool:
    return earlier.id != result.id and earlier.block.get("content") == result.block.get("content")


def _file_name(result: ToolResult) -> str:
    return re.split(r"[/\\]", result.path)[-1]


class ReadDedup:
    """The stage; what has fewer than `min_chars` stays."""

    name = "read-dedup"

    def __init__(self, min_chars: int = MIN_CHARS) -> None:
        self.min_chars = min_chars

    def plan(self, scene: Scene) -> Plan:
        """Put a pointer in the place of every result that an earlier one, still there and whole, shows as well."""
        view = scene.view().messages
        start = editable_from(scene, view)
        found = [_edit(scene, pair) for pair in self._pairs(scene, view) if pair.result.at >= start]
        return plan_edits(self.name, scene, view, found)

    def _pairs(self, scene: Scene, view: tuple[Message, ...]) -> Iterator[_Pair]:
        decided = scene.state.cleared_on_server.union(scene.state.replaced)
        results = {r.id: r for r in tool_results_of(view) if r.id not in decided}
        leaned_on = scene.state.leaned_on  # what points to them would have to come back
        calls = {call_id(call): call for message in view for call in tool_uses(message)}
        known = _Known()
        for message in view:
            for call in tool_uses(message):
                self._forget(known, call)
            for block in tool_results(message):
                ident = call_id(block)
                call, result = calls.get(ident, {}), results.get(ident)
                self._forget(known, call)
                if result is None or not self._is_text_read(result):
                    continue
                key = json_bytes([result.name, call.get("input")])
                earlier = known.results.get(key)
                if earlier and _shows_again(earlier, result) and ident not in leaned_on:
                    yield _Pair(result, earlier.id)
                else:
                    known.add(key, result)

    def _is_text_read(self, result: ToolResult) -> bool:
        reads = result.name == _READ and bool(result.path) and not result.is_error
        is_text = not (result.has_media or result.path.lower().endswith(_NOT_TEXT))
        return reads and is_text and result.chars >= self.min_chars

    def _forget(self, known: _Known, call: Block) -> None:
        """Drops what a call may have changed: every file that it names, unless it only looks."""
        if call.get("name") not in (_READ, *_LOOKING):
            known.forget("\n".join(strings_in(call.get("input"))))


def _edit(scene: Scene, pair: _Pair) -> Edit:
    result = pair.result
    text = _STUB.format(path=result.path, id=pair.earlier)
    freed_tokens = scene.block_tokens([result.block]) - scene.block_tokens([{**result.block, "content": text}])
    decision = Replaced(result.id, text, "unchanged", leans_on=pair.earlier)
    return Edit(result.at, decision, freed_tokens, Stored(result.id, result.name, result.block))
