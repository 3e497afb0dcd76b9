"""Secrets out of what is made of texts: JSON values, messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model import JSON, Message
from core.redact.text import Hit, redact_value

_NO_TEXT = frozenset({"signature", "encrypted_content", "uuid", "parentUuid"})
"""Fields that hold no text: random to look at, and worthless when changed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A hit in a JSON value, and the keys that lead to its text."""

    path: tuple[str | int, ...]
    hit: Hit


def redact_json(value: JSON) -> tuple[JSON, list[Place]]:
    """A copy of the value with a mark in the place of each secret in its texts; the value itself if there is none."""
    root: list[JSON] = [value]
    places: list[Place] = []
    stack: list[tuple[list[JSON] | dict[str, JSON], tuple[str | int, ...], str]] = [(root, (), "")]
    while stack:  # no recursion: what a transcript holds may be nested deeply
        holder, path, inherited = stack.pop()
        keys: Sequence[tuple[int, JSON]] | Sequence[tuple[str, JSON]]
        keys = list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder))
        for key, child in keys:
            name = key if isinstance(key, str) else inherited
            new = child
            if isinstance(child, str):
                if name not in _NO_TEXT and not _is_media(holder, key):
                    new, hits = redact_value(child, name)
                    places += [Place((*path, key)[1:], hit) for hit in hits]
            elif isinstance(child, dict):
                new = dict(child)
                stack.append((new, (*path, key), name))
            elif isinstance(child, list):
                new = list(child)
                stack.append((new, (*path, key), name))
            holder[key] = new  # type: ignore[index]
    return (root[0] if places else value), places


def _is_media(holder: JSON, key: str | int) -> bool:
    return key == "data" and isinstance(holder, dict) and holder.get("type") in ("base64", "redacted_thinking")


def redact_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without secrets; those that hold none are the same objects."""
    return tuple(_redacted(message) for message in messages)


def _redacted(message: Message) -> Message:
    content, places = redact_json(list[JSON](message.content))
    if not places or not isinstance(content, list):
        return message
    return replace(message, content=tuple(block for block in content if isinstance(block, dict)))
