"""A session in short, by rule, for whoever goes on with it."""

from __future__ import annotations

from core.redact.values import redact_messages
from core.service.session import Session
from core.summarizers import make
from core.summarizers.base import DEFAULT_BUDGET_CHARS, SummaryRequest


def brief(session: Session, budget_chars: int = DEFAULT_BUDGET_CHARS) -> str:
    """What an offline summary says of the whole active view, without its secrets."""
    messages = redact_messages(session.messages)
    request = SummaryRequest(messages, budget_chars, cwd=session.cwd, transcript=str(session.path))
    return make("extractive").summarize(request).text
