"""Long texts in pieces and without secrets, for readers that take only so much at once, such as models."""

from __future__ import annotations

from typing import Any

import msgspec

from core.redact.text import redact
from core.redact.values import redact_json
from core.service.history import OutputText
from core.service.view import ViewResult


class OutputPage(OutputText):
    """A piece of the lines that were asked for."""

    offset: int
    """Of the piece in them, in characters."""
    total_chars: int
    """Of all of them."""
    next_offset: int | None
    """Where the next piece begins; null at the end."""


def page_of(found: OutputText, offset: int, most_chars: int) -> OutputPage:
    """At most `most_chars` of a text without its secrets, from `offset` on.

    A piece ends with a line where one ends in its second half.
    """
    text = redact(found.text)  # as a whole: a piece may end within a secret
    end = end_of_piece(text, offset, most_chars)
    piece = {"text": text[offset:end], "offset": offset, "total_chars": len(text)}
    return OutputPage(**{**msgspec.structs.asdict(found), **piece}, next_offset=end if end < len(text) else None)


def end_of_piece(text: str, offset: int, most_chars: int) -> int:
    """Where the piece that begins at `offset` ends."""
    end = offset + most_chars
    if end >= len(text):
        return len(text)
    line_end = text.rfind("\n", offset + most_chars // 2, end)
    return line_end + 1 if line_end >= 0 else end


class ViewPage(ViewResult):
    """Some of the messages of the next model call."""

    offset: int
    """The number of messages in front of them."""
    total_messages: int
    next_offset: int | None
    """Where the next page begins; null at the end."""


def view_page(whole: ViewResult, offset: int, most_chars: int) -> ViewPage:
    """The messages from `offset` on, without their secrets: as many as fit, but one at least."""
    shown: list[dict[str, Any]] = []
    room = most_chars
    for message in whole.messages[offset:]:
        room -= len(msgspec.json.encode(message))
        if room < 0 and shown:
            break
        shown.append(message)
    end, total = offset + len(shown), len(whole.messages)
    return ViewPage(
        session=whole.session,
        messages=[clean for m in shown if isinstance(clean := redact_json(m)[0], dict)],
        ids=whole.ids[offset:end],
        warnings=whole.warnings,
        offset=offset,
        total_messages=total,
        next_offset=end if end < total else None,
    )
