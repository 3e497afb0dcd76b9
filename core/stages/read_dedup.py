"""Reading the same again: where nothing has changed since, the later result points to the earlier one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.context.projection import Replaced
from core.model import Block, Message, tool_results, tool_uses
from core.stages.base import Plan, Scene, Stored
from core.stages.edits import Edit, editable_from, plan_edits
from core.stages.results import ToolResult, tool_results_of
from core.transcript.blob import json_bytes

MIN_CHARS = 1_000
"""Less is not worth a change; the stub has some 130 characters."""

_LOOKING = frozenset({"Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite"})
"""Tools that change no file."""
_NOT_TEXT = (".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp")
_STUB = "[{path}: nothing has changed since it was read before; the content is in the result of {id} above.]"


@dataclass(frozen=True, slots=True)
class ReadDedupSettings:
    """What counts as reading the same."""

    tools: tuple[str, ...] = ("Read",)
    min_chars: int = MIN_CHARS


@dataclass(frozen=True, slots=True)
class _Pair:
    """A result, and the earlier one that shows the same."""

    result: ToolResult
    earlier: str


class ReadDedup:
    """The stage."""

    name = "read-dedup"

    def __init__(self, settings: ReadDedupSettings | None = None) -> None:
        self.settings = settings or ReadDedupSettings()

    def plan(self, scene: Scene) -> Plan:
        """Put a pointer in the place of every result that an earlier one, still there and whole, shows as well."""
        view = scene.view().messages
        start = editable_from(scene, view)
        found = [_edit(scene, pair) for pair in self._pairs(scene, view) if pair.result.at >= start]
        return plan_edits(self.name, scene, view, found)

    def _pairs(self, scene: Scene, view: tuple[Message, ...]) -> Iterator[_Pair]:
        decided = scene.state.cleared_on_server.union(scene.state.replaced)
        results = {r.id: r for r in tool_results_of(view) if r.id not in decided}
        calls = {str(call.get("id")): call for message in view for call in tool_uses(message)}
        known: dict[bytes, ToolResult] = {}
        for message in view:
            for call in tool_uses(message):
                self._forget(known, call)
            for block in tool_results(message):
                ident = str(block.get("tool_use_id"))
                call, result = calls.get(ident, {}), results.get(ident)
                self._forget(known, call)
                if result is None or not self._is_text_read(result):
                    continue
                key = json_bytes([result.name, call.get("input")])
                earlier = known.setdefault(key, result)
                if earlier.id != ident and earlier.block.get("content") == block.get("content"):
                    yield _Pair(result, earlier.id)
                else:
                    known[key] = result

    def _is_text_read(self, result: ToolResult) -> bool:
        reads = result.name in self.settings.tools and bool(result.path) and not result.is_error
        is_text = not (result.has_media or result.path.lower().endswith(_NOT_TEXT))
        return reads and is_text and result.chars >= self.settings.min_chars

    def _forget(self, known: dict[bytes, ToolResult], call: Block) -> None:
        """Drops what a call may have changed: every file that it names, unless it only looks."""
        if not known or call.get("name") in _LOOKING or call.get("name") in self.settings.tools:
            return
        given = json_bytes(call.get("input")).decode()
        for key, result in [*known.items()]:
            if re.split(r"[/\\]", result.path)[-1] in given:
                del known[key]


def _edit(scene: Scene, pair: _Pair) -> Edit:
    result = pair.result
    text = _STUB.format(path=result.path, id=pair.earlier)
    freed_tokens = scene.block_tokens([result.block]) - scene.block_tokens([{**result.block, "content": text}])
    decision = Replaced(result.id, text, "unchanged", leans_on=pair.earlier)
    return Edit(result.at, decision, freed_tokens, Stored(result.id, result.name, result.block))
