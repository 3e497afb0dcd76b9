"""`foldmark` alone: where one stands, and what can be done."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options, ui
from cli.commands.sessions import print_lines
from core.service.sessions import list_sessions

SHOWN = 5


def show(as_json: bool) -> None:
    """Show the newest sessions of this folder, or of all when this folder has none."""
    claude_dir = options.settings().claude_dir
    here = Path.cwd()
    found = list_sessions(claude_dir, here, SHOWN)
    where = f"of {here}"
    if not found.sessions:
        found, where = list_sessions(claude_dir, None, SHOWN), "of all folders"
    if as_json:
        ui.print_json(found.model_dump(mode="json"))
        return
    if found.sessions:
        click.echo(f"The newest sessions {where}:\n")
        print_lines(found.sessions)
    else:
        click.echo(f"No sessions in {claude_dir}.")
    click.echo("\nfoldmark --help shows what can be done.")
