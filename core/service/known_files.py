"""The files of a project as a session's model knows them: what its client noted beside what was read and written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from core.attachments.base import KnownFile
from core.model import JSON, mapping, string
from core.transcript.chain import Chain
from core.transcript.reader import Log


def known_files(log: Log, chain: Chain, root: Path) -> dict[str, tuple[str, KnownFile]]:
    """The files below `root` that were read or written whole, by path, each with the row that says so last."""
    real, found = os.path.realpath(root), dict[str, tuple[str, KnownFile]]()
    for entry in chain.entries:
        if entry.type != "user" or not entry.tools:
            continue
        noted = mapping(log.row(entry).get("toolUseResult"))
        path = string(noted.get("filePath")) or string(mapping(noted.get("file")).get("filePath"))
        if not os.path.isabs(path) or not Path(os.path.realpath(path)).is_relative_to(real):
            continue
        earlier = found.get(path)
        text = _text(noted, earlier[1].text if earlier else None)
        if text is not None:
            found[path] = entry.uuid, KnownFile(text, 0)  # when it was changed before is not noted
        elif "file" not in noted:
            found.pop(path, None)
    return found


def _text(noted: Mapping[str, JSON], before: str | None) -> str | None:
    """The whole file after a call; None where that is not noted."""
    file, new = mapping(noted.get("file")), noted.get("newString")
    if file:
        is_whole = file.get("startLine") == 1 and file.get("numLines") == file.get("totalLines")
        return _string_or_none(file.get("content")) if is_whole else None
    if not isinstance(new, str):
        return _string_or_none(noted.get("content"))
    old, text = string(noted.get("oldString")), before
    if text is None:
        text = _string_or_none(noted.get("originalFile"))
    if not old:
        return new
    return text.replace(old, new, -1 if noted.get("replaceAll") is True else 1) if text and old in text else None


def _string_or_none(value: JSON) -> str | None:
    return value if isinstance(value, str) else None
