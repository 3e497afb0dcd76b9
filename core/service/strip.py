"""Take images and documents out of a transcript, or say which there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from core.context.decisions import MediaReplaced
from core.ids import one_of
from core.model import Message
from core.results import Result
from core.service.operation import Target
from core.service.session import Session, SessionRef
from core.service.stages import StageResult, StageRun, StageSettings, run_stages
from core.stages.base import Plan
from core.stages.media import Media, MediaItem, MediaSettings, media_items
from core.stages.results import tool_results_of
from core.transcript.projects import SessionFile

OP = "strip"


class MediaLine(Result):
    """One image or document that the model sees."""

    id: str
    """What `strip` takes: the call whose result holds it, its message, or, where these hold several, its content."""
    kind: Literal["image", "document"]
    media_type: str
    path: str
    """The file that the call names, "" where it names none."""
    width: int
    """In pixels, 0 where it is not known; so is `height`."""
    height: int
    pages: int
    bytes: int
    unreadable: bool
    """It is not what it is said to be: the API refuses each request with it."""


class MediaList(Result):
    """All images and documents that the model sees, in order."""

    session: SessionRef
    media: list[MediaLine]


class StripResult(StageResult):
    """What gave way to notes, or would: the same lines as in the list."""

    media: list[MediaLine]


def media_of(session: Session) -> MediaList:
    """The images and documents of an open session."""
    return MediaList(session=session.ref, media=_lines(session.messages, [*media_items(session.messages)]))


def strip(file: SessionFile, chosen: MediaSettings, target: Target, settings: StageSettings) -> StripResult:
    """Puts a note in the place of what is chosen; `chosen.ids` may be the starts of ids.  Calls and results stay.

    What goes is stored beside the result.  The source keeps its bytes, unless `in_place` appends to it.
    Raises IdNotFound, and what reading and writing raise; then nothing was changed.
    """
    gone: list[MediaLine] = []

    def choose(run: StageRun) -> list[Plan]:
        view = run.scene.view().messages
        items = [*media_items(view)]
        plan = Media(replace(chosen, ids=_found(items, chosen.ids))).plan(run.scene)
        taken = {(d.owner, d.body) for d in plan.decisions if isinstance(d, MediaReplaced)}
        gone[:] = _lines(view, items, taken)
        return [plan]

    result = run_stages(file, OP, (chosen.pick, *sorted(chosen.ids)), choose, target, settings)
    return StripResult(**msgspec.structs.asdict(result), media=gone)


def _found(items: Sequence[MediaItem], names: Sequence[str]) -> tuple[str, ...]:
    """The whole ids that names, or the starts of ids, stand for; a content's id is known without its `media-` too."""
    known = {ident: ident for item in items for ident in item.ids}
    known |= {item.blob.id.removeprefix("media-"): item.blob.id for item in items}
    hint = "{media} lists all there are"
    return tuple(one_of(name, known.items(), "image or document of the active context", hint) for name in names)


def _lines(
    view: Sequence[Message], items: Sequence[MediaItem], only: Collection[tuple[str, str]] | None = None
) -> list[MediaLine]:
    owners = [item.owner for item in items]
    paths = {r.id: r.path for r in tool_results_of(view)}
    wanted: Iterator[MediaItem] = (i for i in items if only is None or (i.owner, i.blob.id) in only)
    return [_line(item, owners.count(item.owner) > 1, paths.get(item.owner, "")) for item in wanted]


def _line(item: MediaItem, has_siblings: bool, path: str) -> MediaLine:
    shape = item.shape
    return MediaLine(
        id=item.blob.id if has_siblings else item.owner,
        kind="document" if item.block["type"] == "document" else "image",
        media_type=item.media_type,
        path=path,
        width=shape.width,
        height=shape.height,
        pages=shape.pages,
        bytes=len(item.blob.content),
        unreadable=item.is_unreadable,
    )
