"""When the chosen summariser fails for good, the offline one takes over, and the result says so."""

from __future__ import annotations

from dataclasses import replace

from core.api.endpoint import ApiError
from core.errors import CompactionError, SummaryPending
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.repair import Repairer


class Fallback:
    """A summariser, and the one that is asked when that gives nothing."""

    def __init__(self, chosen: Summarizer, other: Summarizer) -> None:
        self.chosen, self._other = chosen, other

    @property
    def name(self) -> str:
        """The chosen one's."""
        return self.chosen.name

    def summarize(self, request: SummaryRequest) -> Summary:
        """The chosen one's summary, else the other's; its remarks say why.

        Raises `ApiError` when the call was cancelled: whoever did that wants no summary at all.
        """
        try:
            return self.chosen.summarize(request)
        except SummaryPending:
            raise
        except (ApiError, CompactionError) as error:
            if isinstance(error, ApiError) and error.kind == "cancelled":
                raise
            summary = self._other.summarize(request)
            said = f"{self.chosen.name} failed ({error}); {self._other.name} took over"
            return replace(summary, remarks=(said, *summary.remarks))


def repairer_of(summarizer: Summarizer) -> Repairer | None:
    """Whoever can mend what a summariser wrote: itself, or the chosen one of a fallback; None where no model wrote."""
    from core.summarizers.model import ModelSummarizer

    chosen = summarizer.chosen if isinstance(summarizer, Fallback) else summarizer
    return chosen if isinstance(chosen, ModelSummarizer) else None
