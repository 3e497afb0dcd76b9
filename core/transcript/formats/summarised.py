"""The summary in front of a compacted conversation, in formats that have no place of their own for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from core.model import Message
from core.transcript.formats.blocks import string

HEAD = "[The beginning of this conversation was summarised by Foldmark.]\n\n"
_NOTE = "<system-reminder>\n"


def with_head(text: str) -> str:
    """A summary as `split_summary` knows it again."""
    return HEAD + text


def split_summary(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with the summary in the first of them, and the notes behind it, as messages of their own."""
    if not messages or not string(messages[0].content[0].get("text")).startswith(HEAD):
        return tuple(messages)
    first = messages[0]
    summary, *rest = first.content
    notes = list(takewhile(lambda b: string(b.get("text")).startswith(_NOTE), rest))
    text = string(summary.get("text")).removeprefix(HEAD)
    split = [replace(first, kind="summary", content=({**summary, "text": text},), uuids=(f"{first.uuid}-summary",))]
    if notes:
        split.append(replace(first, kind="meta", content=tuple(notes), uuids=(f"{first.uuid}-notes",)))
    if len(notes) < len(rest):
        split.append(replace(first, content=tuple(rest[len(notes) :])))
    return (*split, *messages[1:])
