"""Which session a program means: by name, within the folders that it may read, or the one that it is called from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.errors import SessionNotFound
from core.transcript.current import session_of_call
from core.transcript.live import open_sessions
from core.transcript.locate import LATEST, latest, locate
from core.transcript.projects import SessionFile

CURRENT = "current"
_BY_NAME = "name one by its id or title: {sessions} lists them"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: what names are relative to, what may be read, and what is known of the client that asks."""

    claude_dir: Path
    folder: Path
    roots: tuple[Path, ...] = ()
    client_pid: int | None = None
    """The process that started this one: the client notes which session it has open."""
    session_id: str = ""
    """What the client said at the start; it may have gone on to another session since."""

    @property
    def inside(self) -> tuple[Path, ...]:
        """All folders of which anything may be read."""
        return (self.claude_dir / "projects", *self.roots)


def named(name: str, caller: Caller) -> SessionFile:
    """The session of a name; raises SessionNotFound for none, for several, and for what lies outside the roots."""
    return locate(name, caller.claude_dir, caller.folder, caller.roots)


def calling(call_id: str, caller: Caller) -> SessionFile | None:
    """The session that a tool call is made from, None as long as no transcript holds the call."""
    found = session_of_call(call_id, caller.claude_dir)
    return named(str(found.path), caller) if found else None


def current(caller: Caller) -> SessionFile:
    """The session that the client has open, where the call itself does not say; raises SessionNotFound."""
    if ident := _own_id(caller):
        return named(ident, caller)
    raise SessionNotFound("which session is the current one cannot be told here", _BY_NAME)


def another(name: str, caller: Caller) -> SessionFile:
    """As `named`, for who goes on with another session: `latest` passes over the one that the client has open.

    Raises SessionNotFound for that one, too.
    """
    own = _own_id(caller)
    found = latest(caller.claude_dir, caller.folder, own) if name == LATEST else named(name, caller)
    if found.id.casefold() == own:
        raise SessionNotFound("this is the session that goes on anyway", _BY_NAME)
    return found


def _own_id(caller: Caller) -> str:
    """What the client has open, in lower case; "" where that is not known."""
    opened = (ident for ident, pid in open_sessions(caller.claude_dir).items() if pid == caller.client_pid)
    return next(opened, caller.session_id).casefold()
