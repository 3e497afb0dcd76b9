"""Long texts in pieces, for readers that take only so much at once."""

from __future__ import annotations

from core.service.history import OutputText


class OutputPage(OutputText):
    """A piece of the lines that were asked for."""

    offset: int
    """Of the piece in them, in characters."""
    total_chars: int
    """Of all of them."""
    next_offset: int | None
    """Where the next piece begins; null at the end."""


def page_of(found: OutputText, offset: int, most_chars: int) -> OutputPage:
    """At most `most_chars` of a text from `offset` on; a piece ends with a line where one ends in its second half."""
    text = found.text
    end = end_of_piece(text, offset, most_chars)
    piece = {"text": text[offset:end], "offset": offset, "total_chars": len(text)}
    return OutputPage(**{**dict(found), **piece}, next_offset=end if end < len(text) else None)


def end_of_piece(text: str, offset: int, most_chars: int) -> int:
    """Where the piece that begins at `offset` ends."""
    end = offset + most_chars
    if end >= len(text):
        return len(text)
    line_end = text.rfind("\n", offset + most_chars // 2, end)
    return line_end + 1 if line_end >= 0 else end
