"""What a session would have cost under each policy: the whole of it replayed, request by request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import msgspec

from core.context.tokens.cost import CacheLife
from core.context.tokens.models import Model
from core.context.tokens.window import levels
from core.context.view import messages_of
from core.errors import InputError, WrongUsage
from core.model import Message, Usage
from core.results import Result
from core.service.session import Session, SessionRef, size_of, window_of
from core.service.usage import Spent, spent
from core.stages.verdict import REREAD_TOKENS
from core.stages.worth import cache_life
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.reader import Log
from core.turn.policies import policies
from core.turn.replay import Assumptions, History, Outcome, Sizes, input_price, replayed

CLIENT = "client"
"""The row of what was really charged."""


class PolicyResult(Result):
    """What a policy came to, with so many tokens read again after each compaction; tokens are sums of all calls."""

    policy: str
    reread_tokens: int
    requests: int
    compactions: int
    edits: int
    cold_requests: int
    """Requests that found no cache."""
    usage: Spent
    peak_tokens: int
    cache_hit_share: float
    """How much of all that was sent was read from the cache."""
    input_equivalents: int
    """The cost in tokens of uncached input."""
    usd: float | None
    """None where the model's prices are not known."""
    change: float
    """Of the cost, against doing nothing: -0.1 is a tenth less."""


class Simulation(Result):
    """All policies over one session."""

    session: SessionRef
    model: str
    cache_life: str
    auto_threshold_tokens: int
    overhead_tokens: int
    """System prompt, tools and memory files."""
    repeats: int
    requests: int
    results: list[PolicyResult]


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What a person may choose; None: as the session has it."""

    model_id: str = ""
    life: CacheLife | None = None
    reread_tokens: Sequence[int] = (REREAD_TOKENS,)
    repeats: int = 1
    """How often the work is done in one session: short ones never reach a compaction."""


def simulate(
    session: Session,
    options: SimulationOptions,
    step: Callable[[str], None] = lambda _name: None,
) -> Simulation:
    """Replays an open session (read whole) under all policies; `step` is told the name of each before it begins.

    Raises `InputError` for a session without a response, `WrongUsage` for a model that is chosen and not known.
    """
    model = session.models.lookup(options.model_id or session.model_id)
    if options.model_id and not model.known:
        near = get_close_matches(options.model_id.lower(), session.models.ids, n=1)
        raise WrongUsage(
            f"nothing is known of a model {options.model_id}, no prices and no window",
            f"did you mean {near[0]}?" if near else "the setting models_file names a file that says what it costs",
        )
    history = _history(session, model)
    if not any(m.kind == "response" for m in history.messages):
        raise InputError(f"{session.path} holds no response", "simulate a session in which the model has answered")
    life = options.life or cache_life(history.messages)
    threshold_tokens = levels(history.model, window_of(session, history.model)).auto_threshold
    work = history.repeated(options.repeats)
    sizes = Sizes(work)
    results: list[PolicyResult] = []
    for reread_tokens in options.reread_tokens:
        assumptions = Assumptions(threshold_tokens, life, reread_tokens)
        outcomes: list[Outcome] = []
        for policy in policies(life):
            step(policy.name)
            outcomes.append(replayed(work, policy, assumptions, sizes))
        if options.repeats == 1 and (charged := _charged(session, history)):  # it did not do the work in one session
            outcomes.append(charged)
        results += [_result(o, outcomes[0], history.model, reread_tokens) for o in outcomes]
    return Simulation(
        session=session.ref,
        model=history.model.id,
        cache_life=life,
        auto_threshold_tokens=threshold_tokens,
        overhead_tokens=history.overhead_tokens,
        repeats=options.repeats,
        requests=results[0].requests,
        results=results,
    )


def _history(session: Session, model: Model) -> History:
    """All messages of the session; the sizes are calibrated on what its active view was charged for."""
    size = size_of(session, model)
    messages = _all_messages(*session.claude, session) if session.claude else session.messages
    return History(messages, model, size.calibration, size.overhead_tokens)


def _all_messages(log: Log, chain: Chain, session: Session) -> tuple[Message, ...]:
    """What was ever said in the main conversation, in file order, each row once, without what compactions wrote."""
    rows: dict[str, Entry] = {}
    for entry in log.entries:
        if entry.on_chain and not (entry.sidechain or entry.summary or entry.is_boundary):
            rows.setdefault(entry.uuid, entry)
    return messages_of(log, replace(chain, entries=tuple(rows.values())), session.dialect)


def _charged(session: Session, history: History) -> Outcome | None:
    """What the client did, by the usage that it recorded; the output is estimated as for the policies."""
    charged = [m for m in history.messages if m.usage and m.usage.prompt_tokens]
    if not charged:
        return None
    outcome, sizes = Outcome(CLIENT), Sizes(history)
    for message in charged:
        usage = message.usage or Usage()
        outcome.requests += 1
        outcome.cold += not usage.cache_read_tokens
        outcome.add(msgspec.structs.replace(usage, output_tokens=round(sizes.of(message.content))), history.model)
    if session.claude:
        outcome.compactions = sum(e.is_boundary for e in session.claude.log.entries)
    return outcome


def _result(outcome: Outcome, nothing: Outcome, model: Model, reread_tokens: int) -> PolicyResult:
    usage = outcome.usage
    known = bool(model.prices)
    return PolicyResult(
        policy=outcome.policy,
        reread_tokens=reread_tokens,
        requests=outcome.requests,
        compactions=outcome.compactions,
        edits=outcome.edits,
        cold_requests=outcome.cold,
        usage=spent(usage),
        peak_tokens=outcome.peak_tokens,
        cache_hit_share=round(usage.cache_read_tokens / max(1, usage.prompt_tokens), 4),
        input_equivalents=round(outcome.usd * 1_000_000 / input_price(model)),
        usd=round(outcome.usd, 4) if known else None,
        change=round(outcome.usd / nothing.usd - 1, 4) if nothing.usd else 0.0,
    )
