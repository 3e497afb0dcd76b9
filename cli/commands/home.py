"""`foldmark` alone: where one stands, and what can be done."""

from __future__ import annotations

from pathlib import Path

from cli import options, ui
from cli.commands.context import print_window
from cli.commands.sessions import print_lines
from core.context.tokens.window import Measuring
from core.errors import FoldmarkError
from core.service.context import ContextReport, context_report
from core.service.session import opened
from core.service.sessions import SessionLine, SessionList, list_sessions
from core.settings import Settings
from core.transcript.locate import no_sessions
from core.transcript.projects import session_file

SHOWN = 5


class Home(SessionList):
    """The newest sessions of this folder, or of all where it has none, and what fills the newest."""

    newest: ContextReport | None


def show(as_json: bool) -> None:
    """Show the newest sessions of this folder, or of all when this folder has none, and what fills the newest."""
    settings = options.settings()
    here = Path.cwd()
    found, where = list_sessions(settings.claude_dir, here, SHOWN), f"of {here}"
    if not found.sessions:
        found, where = list_sessions(settings.claude_dir, None, SHOWN), "of all folders"
    newest = _newest(found.sessions, settings)
    if as_json:
        ui.emit(Home(**dict(found), newest=newest))
        return
    if not found.sessions:
        nothing = no_sessions(settings.claude_dir)
        ui.echo(f"{nothing}\n{nothing.hint}")
    else:
        ui.echo(f"The newest sessions {where}:\n")
        print_lines(found.sessions)
        if found.more:
            ui.echo(f"the newest {SHOWN} of {found.total}; foldmark sessions shows more")
    if newest:
        ui.echo("\nThe newest one:\n")
        print_window(newest)
        ui.echo(f"\nfoldmark compact {newest.session.id[:8]} --dry-run   says what a compaction would do")
        ui.echo(f"foldmark context {newest.session.id[:8]}             shows the largest parts")
    ui.echo("\nfoldmark --help shows what else can be done.")


def _newest(lines: list[SessionLine], settings: Settings) -> ContextReport | None:
    """Measure the newest session that holds a conversation and can be read."""
    for line in lines:
        if line.state in ("empty", "damaged"):
            continue
        try:
            with opened(session_file(Path(line.path)), measuring=Measuring.of(settings)) as session:
                return context_report(session)
        except (FoldmarkError, OSError):
            continue
    return None
