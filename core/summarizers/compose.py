"""A summary made of what a model, or a person, wrote: a header, the text, and what code appends."""

from __future__ import annotations

from dataclasses import replace

from core.errors import CompactionError
from core.model import Usage
from core.redact.text import redact
from core.redact.values import redact_json, redact_messages
from core.summarizers.answer import Written, whole_lines
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.mechanical import mechanical
from core.summarizers.prompt import header

MECHANICAL_PART = 0.4
"""Of the room, for what code appends: a names index alone needs some 4,500 of 24,000 characters."""
CUT_MARK = "[The summary was cut off here: it reached a limit.]"
_LEAST_CHARS = 400
"""Of room for the text: header and mark alone are no summary."""


def text_chars(request: SummaryRequest) -> int:
    """The characters that a model may write: what is left is for the header and what code appends."""
    return int(request.budget_chars * (1 - MECHANICAL_PART))


def redacted(request: SummaryRequest) -> SummaryRequest:
    """The request without secrets, in all that could leave the machine."""
    fork = request.fork and redact_json(dict(request.fork))[0]
    return replace(
        request,
        messages=redact_messages(request.messages),
        instructions=redact(request.instructions),
        previous=redact(request.previous),
        fork=fork if isinstance(fork, dict) else None,
    )


def composed(
    request: SummaryRequest,
    written: Written,
    summarizer: str,
    writer: str,
    usage: Usage | None = None,
    remarks: tuple[str, ...] = (),
) -> Summary:
    """The summary, at most as long as asked for; what had to be cut is marked in it and in its remarks.

    `writer` is who wrote the text, in words.  Raises `CompactionError` where there is no room for any text.
    """
    above = header(request, writer)
    room = request.budget_chars - len(above) - 4
    if room < _LEAST_CHARS:
        raise CompactionError(
            f"a summary of {request.budget_chars} characters has no room for text", "give it more (summary_tokens)"
        )
    text = redact(written.text)
    if written.is_cut:
        remarks = (*remarks, "the model reached its limit: the summary is cut")
    below = mechanical(request, text, int(room * MECHANICAL_PART))
    left = room - len(below)
    if len(text) > left:
        remarks = (*remarks, f"the text was longer than asked for: {len(text) - left:,} characters were cut")
    if written.is_cut or len(text) > left:
        text = f"{whole_lines(text[: left - len(CUT_MARK) - 2])}\n\n{CUT_MARK}"
    return Summary("\n\n".join(filter(None, (above, text, below))), summarizer, usage or Usage(), remarks)
