"""Compare a session with what it was made of: what was lost, what is reachable, what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from core.context.sizes import parts_of_messages, tokens_by_kind
from core.context.tokens.cost import next_request_cost
from core.context.tokens.estimate import Estimator
from core.context.tokens.ledger import ContextSize, items_of, measure_like
from core.context.tokens.models import Model
from core.context.tokens.window import levels
from core.errors import InputError, SessionNotFound
from core.report.compare import Comparison
from core.report.data import Report, Side
from core.report.fidelity import fidelity_of_context
from core.service.history import readable_ids
from core.service.session import Session, opened, window_of
from core.transcript.backwards import BATCH_BYTES
from core.transcript.projects import SessionFile, session_file
from core.transcript.records import STDIN, Source, find_records, source_file
from core.transcript.store import Store


def report(before: Session, after: Session) -> Report:
    """Compares two open sessions; `after` is read whole, because what can be read on demand is looked for in it."""
    model, size = before.model, before.size
    tokens = _tokens(before, after, size, model)
    found = Comparison(before.messages, size.item_tokens, after.messages, tokens, readable_ids(after))
    return Report(
        before=_side(before, size.item_tokens, size, model),
        after=_side(after, tokens, size, model),
        places=found.places(),
        largest=found.largest(),
        requests=found.requests(),
        constraints=found.constraints(),
        names=found.names(),
        reachable=found.reachable(),
        gone=found.gone(),
        warnings=found.warnings(),
        fidelity=fidelity_of_context(before.messages, after.messages, before.cwd, _history(after)),
    )


def _history(after: Session) -> str:
    """Where what went can be read: on a page of the store, or in the file itself."""
    return f"{Store.beside(after.path.absolute()).page(after.file.id[:8])}\n{after.path.absolute()}"


@contextmanager
def opened_source(after: Session, scratch: Path) -> Iterator[Session]:
    """The session that the newest record of `after` was made of, as it was then; `scratch` is for a copy of that part.

    Raises InputError when there is no record, SessionNotFound when the source is gone.
    """
    records = [placed.record for placed in find_records(after.claude.log) if placed.record] if after.claude else []
    if not records:
        raise InputError(f"{after.path.name} does not say what it was made of", "name both: {report}")
    with opened(_as_it_was(after, records[-1].source, scratch), measuring=after.measuring) as session:
        yield session


def _as_it_was(after: Session, source: Source, scratch: Path) -> SessionFile:
    if source.path == STDIN:
        raise SessionNotFound(
            f"{after.path.name} was made of standard input",
            "name the transcript that it was: {report}",
        )
    path = source_file(after.path, source)
    if path is None:
        raise SessionNotFound(
            f"{source.path} is gone or out of reach, and {after.path.name} was made of it",
            "name both: {report}",
        )
    if path.stat().st_size <= source.size:
        return session_file(path)
    part = scratch / path.name
    with path.open("rb") as old, part.open("wb") as new:
        left = source.size
        while left and (piece := old.read(min(left, BATCH_BYTES))):
            new.write(piece)
            left -= len(piece)
    return session_file(part)


def _tokens(before: Session, after: Session, size: ContextSize, model: Model) -> Sequence[int]:
    """Tokens of each message after: of one that is as it was, those of before; else by the same estimator."""
    old = {m.uuid: (m.content, n) for m, n in zip(before.messages, size.item_tokens, strict=True) if m.uuid}
    estimates = measure_like(items_of(after.messages), model, size).item_tokens
    out = []
    for message, estimate in zip(after.messages, estimates, strict=True):
        content, tokens = old.get(message.uuid, (None, 0))
        out.append(tokens if content == message.content else estimate)
    return out


def _side(session: Session, tokens: Sequence[int], size: ContextSize, model: Model) -> Side:
    """A context with the tokens of its messages, measured and weighed as `size` was."""
    total = size.overhead_tokens + sum(tokens)
    parts, estimator = parts_of_messages(session.messages), Estimator(model, size.calibration)
    at = levels(model, window_of(session, model))
    return Side(
        **msgspec.structs.asdict(session.ref),
        model=model.id,
        messages=len(session.messages),
        tokens=total,
        by_kind=tokens_by_kind(parts, tokens, size.overhead_tokens, estimator),
        window_tokens=at.window,
        auto_threshold_tokens=at.auto_threshold,
        next_request_usd={
            "warm": next_request_cost(total, model, warm=True),
            "cold": next_request_cost(total, model, warm=False),
        },
    )
