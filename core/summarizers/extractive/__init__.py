"""The offline summariser: a conversation's own words, chosen by rule; no model, the same bytes for the same input."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.summarizers.extractive.summarizer import Extractive

__all__ = ["Extractive"]


def __getattr__(name: str) -> object:
    """The summariser, imported when it is asked for: who only reads summaries back has no time for it."""
    if name != "Extractive":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from core.summarizers.extractive.summarizer import Extractive

    return Extractive
