"""The offline summariser: a conversation's own words, chosen by rule; no model, the same bytes for the same input."""

from core.summarizers.extractive.summarizer import Extractive

__all__ = ["Extractive"]
