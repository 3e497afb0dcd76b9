"""In the place of a summariser that asks a model, for a dry run: that would cost what the run costs."""

from __future__ import annotations

from dataclasses import replace

from core.summarizers.base import Summarizer, Summary, SummaryRequest


def rehearsed(chosen: Summarizer, lacks: str = "") -> Summarizer:
    """Who writes where `chosen` would: itself where that asks nobody.  `lacks`: why it cannot be asked, or ""."""
    return chosen if chosen.name == "extractive" else Rehearsed(chosen.name, lacks)


class Rehearsed:
    """Writes by rule, under the name of the one that would be asked: the plan is that of the run."""

    def __init__(self, name: str, lacks: str = "") -> None:
        self.name = name
        said = f"{name} is not asked in a dry run: the figures are those of the offline summary"
        self._remarks = (said, *([f"{lacks}: the run would fail"] if lacks else []))

    def summarize(self, request: SummaryRequest) -> Summary:
        """The offline summary; it says so, and its remarks say why."""
        from core.summarizers.extractive import Extractive

        summary = Extractive().summarize(request)
        return replace(summary, remarks=(*self._remarks, *summary.remarks))
