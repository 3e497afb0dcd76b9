"""`foldmark` alone: where one stands, and what can be done."""

from __future__ import annotations

from pathlib import Path

from cli import process, ui
from cli.commands.context import print_window
from cli.commands.sessions import print_lines
from cli.errors import tell
from core.context.tokens.window import Measuring
from core.service.home import home
from core.transcript.locate import no_sessions


def show(as_json: bool) -> None:
    """Show the newest sessions of this folder, or of all when this folder has none, and what fills the newest."""
    settings = process.settings()
    found = home(settings.claude_dir, Path.cwd(), Measuring.of(settings))
    if as_json:
        ui.emit(found)
        return
    if not found.sessions:
        tell(no_sessions(settings.claude_dir))
    else:
        ui.echo(f"The newest sessions of {found.folder or 'all folders'}:\n")
        print_lines(found.sessions)
        if found.more:
            ui.echo(f"the newest {len(found.sessions)} of {found.total}; foldmark sessions shows more")
    if found.newest:
        ident = found.newest.session.id[:8]
        ui.echo("\nThe newest one:\n")
        print_window(found.newest)
        ui.echo(f"\nfoldmark compact {ident} --dry-run   says what a compaction would do")
        ui.echo(f"foldmark context {ident}             shows the largest parts")
    ui.echo("\nfoldmark --help shows what else can be done.")
