"""A session in short, by rule, for whoever goes on with it."""

from __future__ import annotations

from core.redact.values import redact_messages
from core.service.session import Session
from core.summarizers import make
from core.summarizers.base import SummaryRequest


def in_short(session: Session) -> str:
    """What an offline summary says of the whole active view, without its secrets."""
    messages = redact_messages(session.messages)
    request = SummaryRequest(messages, cwd=session.cwd, transcript=str(session.path))
    return make("extractive").summarize(request).text
