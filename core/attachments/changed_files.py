"""Files that the model has read and that changed on disk since: what changed, as a bounded diff."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from difflib import unified_diff
from itertools import islice
from typing import Self

import msgspec

from core.attachments.base import Attachment, Files, KnownFile, World, of_kind
from core.redact.paths import may_hold_secrets
from core.redact.text import redact

DIFF_CHARS = 4_000
"""Of one file: some hundred lines, more is read better in the file itself."""
TOTAL_CHARS = 16_000
"""Of all files of one attachment: a change of branch touches hundreds."""
MOST_FILES = 40
"""Named in one attachment; what is over is left for the next scan."""
_DIFF_LINES = 8_000
"""Of two longer texts no diff is made: it takes time that grows with their product."""
_CONTEXT_LINES = 2


class Change(msgspec.Struct, frozen=True, rename="camel"):
    """One file as it is now."""

    path: str
    digest: str
    """Of the content that was told, "" for a file that is gone."""
    mtime_ns: int = 0
    diff: str = ""
    """Against the content that the model read; "" where that cannot be shown."""


class ChangedFiles(Attachment, frozen=True, tag="changed_files"):
    """All that changed since the last scan."""

    files: tuple[Change, ...]

    def text(self) -> str:
        """The diffs."""
        head = (
            "These files changed on disk since you read them; not by you. Take it into account, and do not change it "
            "back unless you are asked to."
        )
        return "\n\n".join([head, *map(_said, self.files)])

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The files whose time, and then whose content, is neither what the model read nor what it was told."""
        told = {change.path: change for a in of_kind(cls, earlier) for change in a.files}
        changes: list[Change] = []
        left_chars = TOTAL_CHARS
        for path, known in world.known_files.items():
            if len(changes) == MOST_FILES:
                break
            if change := _change(world.files, path, known, told.get(path), min(DIFF_CHARS, left_chars)):
                changes.append(change)
                left_chars -= len(change.diff)
        return (cls(tuple(changes)),) if changes else ()


def _said(change: Change) -> str:
    if not change.digest:
        return f"{change.path} was deleted."
    return f"{change.path}:\n{change.diff}" if change.diff else f"{change.path}: read it again if you need it."


def _change(files: Files, path: str, known: KnownFile, told: Change | None, room_chars: int) -> Change | None:
    mtime_ns = files.mtime_ns(path)
    if mtime_ns is None:
        return Change(path, "") if told is None or told.digest else None
    # What came back after it was deleted may have its old time.
    if mtime_ns == (told.mtime_ns if told else known.mtime_ns):
        return None
    text = None if may_hold_secrets(path.replace("\\", "/")) else files.read(path)
    if text is None:
        return None
    digest = digest_of(text)
    if digest == (told.digest if told else digest_of(known.text)):
        return None
    return Change(path, digest, mtime_ns, diff_of(known.text, text, room_chars))


def digest_of(text: str) -> str:
    """A short name of a content."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def diff_of(old: str, new: str, limit_chars: int) -> str:
    """A unified diff without secrets, cut at a line end; "" where there is no room for one."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _DIFF_LINES:
        return ""
    lines = islice(unified_diff(before, after, n=_CONTEXT_LINES, lineterm=""), 2, None)
    text = redact("\n".join(lines))
    if len(text) <= limit_chars:
        return text
    note = "\n[more changes: read the file]"
    return text[: max(0, limit_chars - len(note))].rpartition("\n")[0] + note if limit_chars > len(note) else ""
