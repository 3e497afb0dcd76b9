"""The active view, as the model would get it."""

from __future__ import annotations

from typing import Any

from core.context.view import named_api_messages
from core.results import Result
from core.service.session import Session, SessionRef


class ViewResult(Result):
    """The messages of the next model call, and what was wrong with the file on the way to them."""

    session: SessionRef
    messages: list[dict[str, Any]]
    """As the Messages API takes them: `role`, `content` (a list of blocks)."""
    ids: list[str]
    """Of each of them the id that other commands take; "" of one that holds nothing but results, which have theirs."""
    warnings: list[str]


def view(session: Session) -> ViewResult:
    """The active view of an open session: pairs whole, neighbours of one role merged."""
    named = named_api_messages(session.messages, session.dialect)
    ids, messages = [ident for ident, _ in named], [message for _, message in named]
    return ViewResult(session=session.ref, messages=messages, ids=ids, warnings=_warnings(session))


def _warnings(session: Session) -> list[str]:
    if session.claude:
        log, chain = session.claude
        return [f"{f.kind}: {f.message}" for f in (*log.findings, *chain.findings)]
    return [f"{f.kind}: {f.message}" for f in session.conversation.findings] if session.conversation else []
