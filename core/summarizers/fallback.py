"""When the chosen summariser fails for good, the offline one takes over, and the result says so."""

from __future__ import annotations

from dataclasses import replace

from core.api.endpoint import ApiError
from core.errors import CompactionError, SummaryPending
from core.summarizers.base import Summarizer, Summary, SummaryRequest


class Fallback:
    """A summariser, and the one that is asked when that gives nothing."""

    def __init__(self, chosen: Summarizer, other: Summarizer) -> None:
        self._chosen, self._other = chosen, other

    @property
    def name(self) -> str:
        """The chosen one's."""
        return self._chosen.name

    def summarize(self, request: SummaryRequest) -> Summary:
        """The chosen one's summary, else the other's; its remarks say why.

        Raises `ApiError` when the call was cancelled: whoever did that wants no summary at all.
        """
        try:
            return self._chosen.summarize(request)
        except SummaryPending:
            raise
        except (ApiError, CompactionError) as error:
            if isinstance(error, ApiError) and error.kind == "cancelled":
                raise
            summary = self._other.summarize(request)
            said = f"{self._chosen.name} failed ({error}); {self._other.name} took over"
            return replace(summary, remarks=(said, *summary.remarks))
