"""The summary in front of a compacted conversation, in formats that have no place of their own for it.

Its first line says what a note on a boundary says: how much was kept, and what the end of it was then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from core.model import REMINDER, Message, string
from core.transcript.formats.outgoing import write_messages

_HEAD = re.compile(r"\[Foldmark summarised what was before the last (\d+) tokens \(([0-9a-f]{16})\)\.\]\n\n")
_NOTE = REMINDER.partition("{}")[0]


def with_head(text: str, keep_tokens: int, kept: Sequence[Message]) -> str:
    """A summary in front of the messages `kept`, as `split_summary` and `is_settled` know it again."""
    return f"[Foldmark summarised what was before the last {keep_tokens} tokens ({_mark(kept)}).]\n\n{text}"


def split_summary(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with the summary in the first of them, and the notes behind it, as messages of their own."""
    head = _head(messages)
    if head is None:
        return tuple(messages)
    first = messages[0]
    summary, *rest = first.content
    notes = list(takewhile(lambda b: string(b.get("text")).startswith(_NOTE), rest))
    text = string(summary.get("text"))[head.end() :]
    split = [replace(first, kind="summary", content=({**summary, "text": text},), uuids=(f"{first.uuid}-summary",))]
    if notes:
        split.append(replace(first, kind="meta", content=tuple(notes), uuids=(f"{first.uuid}-notes",)))
    if len(notes) < len(rest):
        split.append(replace(first, content=tuple(rest[len(notes) :])))
    return (*split, *messages[1:])


def is_settled(messages: Sequence[Message], keep_tokens: int) -> bool:
    """Whether this is what a compaction left, as it was read, and it was asked to keep no more than now."""
    head = _head(messages)
    if head is None or int(head[1]) > keep_tokens:
        return False
    return head[2] == _mark([m for m in split_summary(messages) if m.kind not in ("summary", "meta")])


def _head(messages: Sequence[Message]) -> re.Match[str] | None:
    first = messages[0].content[:1] if messages else ()
    return _HEAD.match(string(first[0].get("text"))) if first else None


def _mark(kept: Sequence[Message]) -> str:
    """The same for messages before and after they were written and read."""
    import hashlib  # 4 ms, for what few conversations have

    sent = json.dumps(json.loads(write_messages(kept))["messages"])
    return hashlib.sha256(sent.encode()).hexdigest()[:16]
