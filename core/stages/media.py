"""Images and documents that give way to a note, because the API refuses them or because they are in the way.

What they held is stored first; the note says where, and what it was: `[image: image/png, 800x600, 5120 bytes,
1a2b3c4d, saved at PATH]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, TypeAlias

from core.context.decisions import MediaReplaced
from core.model import Block, Message, call_id, is_media, mapping, mappings, string, text_block
from core.stages.base import Plan, Scene, Stored
from core.stages.edits import Edit, editable_from, plan_edits
from core.transcript.blob import Blob, media_blob
from core.transcript.media import Media as Shape
from core.transcript.outline import outline_blocks

Pick: TypeAlias = Literal["old", "large", "unreadable", "all", "named"]
"""old: all outside the last user turn.  large: what is over a limit or, without one, the largest half.
unreadable: what is not what it is said to be, so that the API refuses each request with it.  all: all.
named: those that `ids` name.  Of the old, and of the largest half, the newest that the user gave is no part unless it
is the only one."""


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """Which images and documents go; the limits are those that an answer of the API states, 0 for none."""

    pick: Pick = "old"
    ids: tuple[str, ...] = ()
    """Of calls, of messages, or of the bodies themselves."""
    max_bytes: int = 0
    """Of the base64, which is what the API counts."""
    max_side_pixels: int = 0
    max_pages: int = 0


@dataclass(frozen=True, slots=True)
class MediaItem:
    """One image or document that the model sees."""

    at: int
    """Its message's place in the view."""
    message: Message
    owner: str
    """The call whose result holds it, or the message."""
    block: Block
    blob: Blob

    @property
    def ids(self) -> tuple[str, ...]:
        """What names it: the call, the message with all its rows, the body."""
        return tuple(dict.fromkeys((self.owner, *self.message.uuids, self.blob.id)))

    @property
    def by_user(self) -> bool:
        """Whether a person gave it."""
        return self.message.kind == "prompt"

    @property
    def sent_bytes(self) -> int:
        """What the API counts: the length of the base64."""
        return len(string(mapping(self.block.get("source")).get("data")))

    @property
    def media_type(self) -> str:
        """What it is said to be."""
        source = self.block.get("source")
        return str((source.get("media_type") or source.get("type")) if isinstance(source, dict) else "unknown")

    @property
    def shape(self) -> Shape:
        """Its size in pixels or pages; all 0 where what it holds is neither."""
        return next((media for outline in outline_blocks([self.block]) for media in outline.media), Shape())

    @property
    def is_unreadable(self) -> bool:
        """Whether its bytes are no image or document that the API takes."""
        source = self.block.get("source")
        return isinstance(source, dict) and source.get("type") == "base64" and self.shape == Shape()


_NONE_PICKED = {
    "unreadable": "the API takes all images and documents",
    "old": "all images and documents are of the last turn, or the newest that you gave",
}


class Media:
    """The stage.  It is asked for, by a person or by an answer of the API: that it costs something is no reason."""

    name = "media"

    def __init__(self, settings: MediaSettings | None = None) -> None:
        self.settings = settings or MediaSettings()

    def plan(self, scene: Scene) -> Plan:
        """Put notes in the place of the images and documents that the settings pick."""
        if not scene.store_folder:
            return Plan(self.name, reason="there is no store for images and documents")
        view = scene.view().messages
        start = editable_from(scene, view)
        items = [*media_items(view)]
        picked = self._picked(view, items)
        edits = {(item.owner, item.blob.id): _edit(scene, item) for item in picked if item.at >= start}
        stay = sum(item.at < start for item in picked)
        reason = "" if picked else self._why_none(items)
        if stay:
            reason = f"{stay} stay: an unfinished tool loop that holds thinking is behind them"
        return plan_edits(self.name, replace(scene, forced=True), view, [*edits.values()], reason=reason)

    def _why_none(self, items: Sequence[MediaItem]) -> str:
        """Why nothing is picked."""
        if not items:
            return "there are no images or documents"
        return _NONE_PICKED.get(self.settings.pick, "")

    def _picked(self, view: Sequence[Message], items: Sequence[MediaItem]) -> list[MediaItem]:
        newest = next((item for item in reversed(items) if item.by_user), None)
        others = [item for item in items if item is not newest or len(items) == 1]
        match self.settings.pick:
            case "named":
                ids = {*self.settings.ids}
                return [item for item in items if not ids.isdisjoint(item.ids)]
            case "unreadable":
                return [item for item in items if item.is_unreadable]
            case "old":
                turn = max((i for i, m in enumerate(view) if m.kind == "prompt"), default=0)
                return [item for item in others if item.at < turn]
            case "large" if self._has_limit:
                return [item for item in items if self._is_over(item)]
            case "large":
                return sorted(others, key=lambda item: -item.sent_bytes)[: (len(others) + 1) // 2]
            case _:
                return [*items]

    @property
    def _has_limit(self) -> bool:
        return any((self.settings.max_bytes, self.settings.max_side_pixels, self.settings.max_pages))

    def _is_over(self, item: MediaItem) -> bool:
        limits = self.settings
        shape = item.shape
        measured = (
            (item.sent_bytes, limits.max_bytes),
            (max(shape.width, shape.height), limits.max_side_pixels),
            (shape.pages, limits.max_pages),
        )
        return any(limit and value > limit for value, limit in measured)


def media_items(view: Sequence[Message]) -> Iterator[MediaItem]:
    """All images and documents of what the model sees, in order."""
    for at, message in enumerate(view):
        if message.kind == "response":
            continue
        for block in message.content:
            is_result = block.get("type") == "tool_result"
            owner = call_id(block) if is_result else message.uuid
            for item in mappings(block.get("content")) if is_result else [block]:
                if is_media(item):
                    yield MediaItem(at, message, owner, item, media_blob(item))


def _edit(scene: Scene, item: MediaItem) -> Edit:
    text = _note(item, str(PurePath(scene.store_folder) / item.blob.file))
    note: Block = text_block(text)
    freed_tokens = scene.block_tokens([item.block]) - scene.block_tokens([note])
    body = Stored(item.blob.id, "", item.block)
    return Edit(item.at, MediaReplaced(item.owner, item.blob.id, text), freed_tokens, body)


def _note(item: MediaItem, path: str) -> str:
    shape = item.shape
    size = f"{shape.width}x{shape.height}" if shape.width else f"{shape.pages} pages" if shape.pages else ""
    digest = item.blob.id.removeprefix("media-")[:8]
    parts = (item.media_type, size, f"{len(item.blob.content)} bytes", digest, f"saved at {path}")
    return f"[{item.blob.kind}: {', '.join(filter(None, parts))}]"
