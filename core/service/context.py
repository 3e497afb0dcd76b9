"""What fills the window of a session: totals, kinds, tools, the largest parts, the levels."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from core.context.sizes import (
    Part,
    count_messages,
    parts_of_chain,
    parts_of_conversation,
    tokens_by_kind,
    tokens_by_tool,
)
from core.context.tokens.cost import next_request_cost
from core.context.tokens.estimate import Estimator
from core.context.tokens.ledger import ContextSize
from core.context.tokens.window import State
from core.redact.text import redact
from core.results import Result
from core.service.automatic import warnings_of
from core.service.session import Session, SessionRef
from core.transcript.entries import Entry

if TYPE_CHECKING:
    from core.api.endpoint import Endpoint

LARGEST = 10
"""How many of the largest parts are named."""


class Tokens(Result):
    """The size of the context a resume would load, in tokens."""

    total: int
    source: Literal["usage", "estimate"]
    """"usage": exact up to the last response; "estimate": estimated as a whole."""
    tail: int
    """The estimated part at the end."""
    margin: int
    """The true figure lies within `total` plus or minus this."""


class Window(Result):
    """The window of the model, and the levels at which something happens."""

    window_tokens: int
    effective_tokens: int
    auto_threshold_tokens: int
    warning_tokens: int
    error_tokens: int
    blocking_tokens: int
    state: State
    model: str
    known_model: bool
    assumed: bool
    """The model table does not know the model, and nobody said how large its window is."""


class LargePart(Result):
    """One of the largest parts: `id` is what `output` and `snip` take."""

    id: str
    """Of results the id of their (first) call, of all else the message's own."""
    kind: str
    tool: str
    """Of results, and of a response with calls."""
    tokens: int
    share: float
    """Of the whole context."""


class Boundary(Result):
    """A compaction that the file records."""

    uuid: str
    timestamp: str
    offset: int


class StageOutlook(Result):
    """What one stage would free by itself, or a compaction by an offline summary (`full`)."""

    stage: str
    tokens_freed: int
    reason: str
    """Why that is nothing; else what it costs and saves on the prompt cache, "" where that is not known."""


class ContextReport(Result):
    """What fills the window."""

    session: SessionRef
    """Which one was measured."""
    tokens: Tokens
    """What the next request holds."""
    window: Window
    """What has room, and at which sizes something happens."""
    by_kind: dict[str, int]
    """Tokens of prompts, answers, tool calls and so on, the most first."""
    by_tool: dict[str, int]
    """Tokens of tool results, by the name of the tool."""
    largest: list[LargePart]
    """The largest parts, with the ids that they can be taken out by."""
    messages: int
    """How many the model sees."""
    boundaries: list[Boundary]
    """Those in the part of the file that was read: of a large file, the last one."""
    next_request_usd: dict[str, float | None]
    """What the next request costs for the context alone, with a warm and with a cold cache; None: price unknown."""
    counted_tokens: int | None
    """What the API counts for the messages, without the client's own system prompt and tools; null: not asked."""
    warnings: list[str]
    """What a person should know: that compacting does not help any more, and what fills the context."""
    stages: list[StageOutlook] | None = None
    """What could be freed; null: that was not asked."""


def context_report(session: Session, endpoint: Endpoint | None = None) -> ContextReport:
    """Measures the active view of an open session; with an endpoint, its messages are counted there as well.

    What is sent for that holds no secrets.  Raises `ApiError`.
    """
    model = session.model
    parts = _parts(session)
    size = session.measured(parts, model)
    names = _tool_names(parts)
    estimator = Estimator(model, size.calibration)
    return ContextReport(
        session=session.ref,
        tokens=Tokens(total=size.total_tokens, source=size.source, tail=size.tail_tokens, margin=size.margin_tokens),
        window=_window(session, size),
        by_kind=tokens_by_kind(parts, size.item_tokens, size.overhead_tokens, estimator),
        by_tool=tokens_by_tool(parts, size.item_tokens, names, estimator),
        largest=_largest(parts, size, names),
        messages=count_messages(parts),
        boundaries=_boundaries(session.claude.log.entries if session.claude else ()),
        next_request_usd={
            "warm": next_request_cost(size.total_tokens, model, warm=True),
            "cold": next_request_cost(size.total_tokens, model, warm=False),
        },
        counted_tokens=_counted(session, endpoint) if endpoint else None,
        warnings=[*warnings_of(session)],
    )


def _counted(session: Session, endpoint: Endpoint) -> int:
    from core.service.plain import counted_tokens  # loads what writes and redacts messages

    return counted_tokens(session.messages, session.tools, session.model.id, endpoint)


def _parts(session: Session) -> list[Part]:
    if session.conversation:
        return parts_of_conversation(session.conversation)
    return parts_of_chain(*session.claude, session.dialect) if session.claude else []


def _window(session: Session, size: ContextSize) -> Window:
    at, model = session.levels, session.model
    return Window(
        window_tokens=at.window,
        effective_tokens=at.effective,
        auto_threshold_tokens=at.auto_threshold,
        warning_tokens=at.warning,
        error_tokens=at.error,
        blocking_tokens=at.blocking,
        state=at.state(size),
        model=model.id,
        known_model=model.known,
        assumed=not model.known and not session.measuring.window_tokens,
    )


def _tool_names(parts: Sequence[Part]) -> dict[str, str]:
    """The tools by the ids of their calls; a file may have anything in the place of a name, a secret too."""
    calls = [o for p in parts if p.kind == "response" for o in p.outlines if o.tool_name]
    clean = {name: redact(name) for name in {o.tool_name for o in calls}}
    return {o.tool_id: clean[o.tool_name] for o in calls}


def _largest(parts: Sequence[Part], size: ContextSize, names: dict[str, str]) -> list[LargePart]:
    ranked = nlargest(LARGEST, zip(size.item_tokens, parts, strict=True), key=itemgetter(0))
    return [_large(part, tokens, size.total_tokens, names) for tokens, part in ranked if tokens]


def _large(part: Part, tokens: int, total: int, names: dict[str, str]) -> LargePart:
    calls = [o.tool_id for o in part.outlines if o.tool_id]
    tool = names.get(calls[0], "") if calls else ""
    return LargePart(
        id=calls[0] if calls and part.kind == "results" else part.uuid,
        kind=part.kind,
        tool=tool,
        tokens=tokens,
        share=round(tokens / max(1, total), 4),
    )


def _boundaries(entries: Sequence[Entry]) -> list[Boundary]:
    found = (e for e in entries if e.subtype and e.is_boundary)
    return [Boundary(uuid=e.uuid, timestamp=e.timestamp, offset=e.offset) for e in found]
