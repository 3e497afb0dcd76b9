"""The budget of tool results: what is too large goes into the store, and a preview stands in its place.

Every result is looked at once.  Results that stay are recorded as seen, those that go with the exact text that stands
for them: a later run, with other limits or another wording, changes neither, and the cached prefix stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType

from core import defaults
from core.context.decisions import Replaced, Seen
from core.model import JSON, Block, is_media, mappings, string
from core.redact.values import redact_json
from core.stages.base import Plan, Scene, Stored
from core.stages.edits import Edit, editable_from, plan_edits
from core.stages.results import ToolResult, named_by, tool_results_of
from core.stages.stand_in import EXEMPT, stand_in
from core.transcript.blob import blob_of, json_bytes

_NO_OUTPUT, _NO_ERROR = "{} finished without any output.", "{} failed and said nothing."
_response = attrgetter("response")
_GONE = "[The stored output is gone.]"


@dataclass(frozen=True, slots=True)
class ToolBudgetSettings:
    """The limits, in characters of text; images and documents count nothing."""

    result_chars: int = defaults.RESULT_CHARS
    """For one result; a tool's own limit counts where it is lower."""
    results_chars: int = defaults.RESULTS_CHARS
    """For all results that answer one response together."""
    preview_bytes: int = defaults.PREVIEW_BYTES
    exempt: tuple[str, ...] = EXEMPT
    """Names or patterns (`mcp__db__*`) of tools whose results always stay."""
    declared_chars: tuple[tuple[str, int], ...] = ()
    """What tools, named as above, declare as the limit of one result."""


class ToolBudget:
    """The stage; `persisted` are the calls whose output the client itself stored, by its own records of them, and
    `gone` the recorded paths of those that cannot be found any more.
    """

    name = "budget"

    def __init__(
        self,
        settings: ToolBudgetSettings | None = None,
        persisted: frozenset[str] = frozenset(),
        gone: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.settings = settings or ToolBudgetSettings()
        self.persisted = persisted
        self.gone = gone

    def plan(self, scene: Scene) -> Plan:
        """Store what is over a limit, the largest fresh results of a message first; say where a tool said nothing."""
        if not scene.store_folder:
            return Plan(self.name, reason="there is no store for outputs")
        view = scene.view().messages
        start = editable_from(scene, view)
        results = [r for r in tool_results_of(view) if r.name]
        fresh = {r.id for r in results if r.id not in scene.state.seen and r.at >= start}
        found: dict[str, Edit] = {}
        for _, answers in groupby(sorted(results, key=_response), key=_response):
            found |= self._over(scene, [*answers], fresh)
        kept = tuple(dict.fromkeys(r.id for r in results if r.id in fresh and r.id not in found))
        return plan_edits(self.name, scene, view, [*found.values()], [Seen(kept)] if kept else [])

    def _over(self, scene: Scene, answers: Sequence[ToolResult], fresh: Collection[str]) -> dict[str, Edit]:
        """What has to be done with the results that answer one response."""
        new = [r for r in answers if r.id in fresh]
        edits = {r.id: edit for r in new if (edit := self._of_one(scene, r))}
        shown_chars = sum(len(edits[r.id].decision.text) if r.id in edits else _chars(r) for r in answers)
        for result in sorted(new, key=_chars, reverse=True):
            if shown_chars <= self.settings.results_chars:
                break
            if result.id not in edits and (edit := self.stored(scene, result)):
                edits[result.id] = edit
                shown_chars -= _chars(result) - len(edit.decision.text)
        return edits

    def _of_one(self, scene: Scene, result: ToolResult) -> Edit | None:
        """What has to be done with a result by itself."""
        if result.id in self.gone:
            return _edit(scene, result, _without_path(_text(result), self.gone[result.id]))
        if result.id in self.persisted:
            return None
        if not (_text(result) or _others(result)):
            return _edit(scene, result, (_NO_ERROR if result.is_error else _NO_OUTPUT).format(result.name))
        declared = [chars for pattern, chars in self.settings.declared_chars if named_by(result.name, [pattern])]
        return self.stored(scene, result) if _chars(result) > min([self.settings.result_chars, *declared]) else None

    def stored(self, scene: Scene, result: ToolResult) -> Edit | None:
        """The result with a preview in its place; None where it has to stay, or is no longer than that."""
        stays = named_by(result.name, self.settings.exempt) or result.id in self.persisted
        if stays or any(i.get("type") == "tool_reference" for i in _others(result)):
            return None
        content, _ = redact_json(_without_media(result))
        blob = blob_of(result.id, content)
        shown = _joined(content) or blob.content.decode()
        text = stand_in(result.name, _chars(result), shown, blob, scene.store_folder, self.settings.preview_bytes)
        if len(text) >= _chars(result):
            return None
        return _edit(scene, result, text, Stored(result.id, result.name, {**result.block, "content": content}))


def _edit(scene: Scene, result: ToolResult, text: str, body: Stored | None = None) -> Edit:
    before: Block = {**result.block, "content": _without_media(result)}
    freed_tokens = scene.block_tokens([before]) - scene.block_tokens([{**result.block, "content": text}])
    return Edit(result.at, Replaced(result.id, text, "budget"), freed_tokens, body)


def _without_media(result: ToolResult) -> JSON:
    """What of the content can go."""
    content = result.block.get("content")
    return [item for item in content if not is_media(item)] if isinstance(content, list) else content


def _text(result: ToolResult) -> str:
    return _joined(_without_media(result))


def _joined(content: JSON) -> str:
    if isinstance(content, list):
        texts = (item.get("text") for item in mappings(content) if item.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))
    return string(content)


def _others(result: ToolResult) -> list[Block]:
    """All but text."""
    return [item for item in mappings(result.block.get("content")) if item.get("type") != "text"]


def _chars(result: ToolResult) -> int:
    return len(_text(result)) + sum(len(json_bytes(item)) for item in _others(result) if not is_media(item))


def _without_path(text: str, path: str) -> str:
    """A preview that sends nobody to a file that is gone."""
    return "\n".join([_GONE, *(line for line in text.split("\n") if path not in line)])
