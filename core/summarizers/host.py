"""The summary is handed in: the model of the host wrote it, or a person; it is checked and completed all the same."""

from __future__ import annotations

from core.summarizers.answer import read_text
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.compose import composed, redacted


class Given:
    """A text in place of a model's answer; tags around it are welcome and not needed."""

    name = "host"

    def __init__(self, text: str) -> None:
        self._text = text

    def summarize(self, request: SummaryRequest) -> Summary:
        """The text as a summary.  Raises `SummaryRejected` for one that is none."""
        return composed(redacted(request), read_text(self._text, needs_tags=False), self.name, "the model of the host")
