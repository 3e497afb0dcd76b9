"""When the chosen summariser fails for good, the offline one takes over, and the result says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from core.errors import ApiError, CompactionError, FoldmarkError, SummaryPending
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.repair import Repairer

Rescue: TypeAlias = "Callable[[SummaryRequest, FoldmarkError], Summary]"
"""Another summary for a request, and why it is needed."""


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
            return self.instead(request, error)

    def instead(self, request: SummaryRequest, why: FoldmarkError) -> Summary:
        """The other's summary; its remarks say why the chosen one's cannot be used."""
        return Instead(self._other, self.chosen.name, str(why)).summarize(request)


class Instead:
    """A summariser in the place of one that was chosen and cannot be asked; its remarks say why."""

    def __init__(self, other: Summarizer, chosen: str, why: str) -> None:
        self._other = other
        self.remark = f"{chosen} failed ({why}); {other.name} took over"

    @property
    def name(self) -> str:
        """Its own: what it writes is what it would write anyway."""
        return self._other.name

    def summarize(self, request: SummaryRequest) -> Summary:
        """Its summary."""
        summary = self._other.summarize(request)
        return replace(summary, remarks=(self.remark, *summary.remarks))


def repairer_of(summarizer: Summarizer) -> Repairer | None:
    """Whoever can mend what a summariser wrote: itself, or the chosen one of a fallback; None where no model wrote."""
    chosen = summarizer.chosen if isinstance(summarizer, Fallback) else summarizer
    return chosen if isinstance(chosen, Repairer) else None


def rescue_of(summarizer: Summarizer) -> Rescue | None:
    """What gives another summary where a summariser's is refused; None where that is not wanted."""
    return summarizer.instead if isinstance(summarizer, Fallback) else None


def remarks_of(summarizer: Summarizer, writer: str) -> tuple[str, ...]:
    """What a person should know of a summary that `writer` wrote when this summariser was asked before."""
    if isinstance(summarizer, Instead):
        return (summarizer.remark,) if writer == summarizer.name else ()
    took_over = isinstance(summarizer, Fallback) and writer != summarizer.name
    return (f"{summarizer.name} had failed; {writer} took over",) if took_over else ()
