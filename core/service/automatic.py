"""What stands against compacting a session automatically; a person who asks for it is never refused."""

from __future__ import annotations

from core.redact.text import redact
from core.service.session import Session
from core.transcript.chain import load
from core.turn.breaker import Breaker
from core.turn.thrash import may_thrash, thrash


def warnings_of(session: Session) -> tuple[str, ...]:
    """What a person should know before the next automatic compaction: that the context fills up soon after each."""
    if session.claude is None:
        return ()
    log, chain = session.claude
    found = thrash(log, chain)
    if found is None and not log.whole and may_thrash(chain):
        whole, its_chain = load(log.path, whole=True)
        with whole:
            found = thrash(whole, its_chain)
    return (redact(str(found)),) if found else ()


def stopped(session: Session, breaker: Breaker | None) -> str:
    """Why a session is not compacted automatically any more, "" if it is."""
    if breaker is not None and breaker.is_open:
        reasons = breaker.reasons
        return f"automatic compaction failed {len(reasons)} times in a row, at last: {reasons[-1]}"
    return next(iter(warnings_of(session)), "")
