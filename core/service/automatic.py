"""When a session is left alone, and what stands against compacting it automatically.

A person who asks for one is never refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.context.tokens.words import tokens as short
from core.redact.text import redact
from core.service.session import Session
from core.transcript.chain import load
from core.transcript.listing import last_written
from core.transcript.projects import SessionFile

if TYPE_CHECKING:
    from core.turn.breaker import Breaker


def warnings_of(session: Session) -> tuple[str, ...]:
    """What a person should know before the next automatic compaction: that the context fills up soon after each."""
    if session.claude is None or session.claude.chain.boundary is None:
        return ()
    from core.turn.thrash import may_thrash, thrash

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


@dataclass(frozen=True, slots=True)
class Guards:
    """When a session is left alone: not over so many tokens, or written to since (seconds since 1970).

    Who says `over_tokens` compacts automatically: then a session is left alone, too, where that failed too often, or
    does not help.
    """

    over_tokens: int | None = None
    idle_since: float | None = None
    failures_dir: Path | None = None
    """Where failures are counted from run to run; None: they are not."""

    def reason(self, session: Session) -> str:
        """Why the session is left alone, "" if it is not."""
        file = session.file
        if self.idle_since is not None:
            if last_written(file) > self.idle_since:
                return "it was written to a short time ago"
            if file.mtime > self.idle_since:  # by who knows whom; the list of sessions does not count that
                return "its file was written a short time ago"
        if self.over_tokens is None:
            return ""
        if session.size.total_tokens <= self.over_tokens:
            return f"it has no more than {short(self.over_tokens)} tokens"
        return stopped(session, self.breaker(file))

    def breaker(self, file: SessionFile) -> Breaker | None:
        """The counter of a session's failures."""
        from core.turn.breaker import Breaker

        folder = None if file.piped else self.failures_dir
        return Breaker(folder, str(file.path.resolve())) if folder else None


NO_GUARDS = Guards()
