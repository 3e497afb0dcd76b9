"""Where one stands: the newest sessions of a folder, and what fills the newest."""

from __future__ import annotations

from pathlib import Path

import msgspec

from core.context.tokens.window import Measuring
from core.errors import FoldmarkError
from core.service.context import ContextReport, context_report
from core.service.session import opened
from core.service.sessions import SessionList, list_sessions
from core.transcript.projects import session_file

SHOWN = 5
"""Of the newest sessions: what a person takes in at a glance."""


class Home(SessionList):
    """The newest sessions of a folder, or of all where it has none, and what fills the newest."""

    folder: str
    """Whose sessions these are; "" for all."""
    newest: ContextReport | None
    """Of the newest that holds a conversation and can be read."""


def home(claude_dir: Path, folder: Path, measuring: Measuring) -> Home:
    """Shows the sessions of `folder`, or of all folders when it has none."""
    found, of = list_sessions(claude_dir, folder, SHOWN), str(folder)
    if not found.sessions:
        found, of = list_sessions(claude_dir, None, SHOWN), ""
    return Home(**msgspec.structs.asdict(found), folder=of, newest=_newest(found, measuring))


def _newest(found: SessionList, measuring: Measuring) -> ContextReport | None:
    for line in found.sessions:
        if line.state in ("empty", "damaged"):
            continue
        try:
            with opened(session_file(Path(line.path)), measuring=measuring) as session:
                return context_report(session)
        except (FoldmarkError, OSError):
            continue
    return None
