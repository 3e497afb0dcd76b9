"""The summary is handed in: the model of the host wrote it, or a person; it is checked and completed all the same."""

from __future__ import annotations

from dataclasses import replace

from core.model import block_text
from core.summarizers.answer import read_text
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.compose import composed, redacted

_ENOUGH_CHARS = 1_000
"""Some ten sentences: more than that is never called thin."""
_LEAST_SHARE = 0.005
"""Of the text that goes."""


class Given:
    """A text in place of a model's answer; tags around it are welcome and not needed."""

    name = "host"

    def __init__(self, text: str) -> None:
        self.text = text

    def summarize(self, request: SummaryRequest) -> Summary:
        """The text as a summary.  Raises `SummaryRejected` for one that is none."""
        written = read_text(self.text, needs_tags=False)
        summary = composed(redacted(request), written, self.name, "the model of the host")
        size_chars = len(written.text)
        if size_chars >= min(_ENOUGH_CHARS, _LEAST_SHARE * _chars(request)):
            return summary
        thin = f"a summary of {size_chars} characters stands for {len(request.messages)} messages: is that all of it?"
        return replace(summary, remarks=(*summary.remarks, thin))


def _chars(request: SummaryRequest) -> int:
    return sum(len(block_text(block)) for message in request.messages for block in message.content)
