"""`foldmark undo`: the way back."""

from __future__ import annotations

import click

from cli import options, process, ui
from core.service.undo import undo


@click.command()
@click.argument("session", type=options.SessionName())
@options.json_option
@click.pass_context
def command(ctx: click.Context, session: str, as_json: bool) -> None:
    """Take back the newest operation on SESSION.

    A session that a compaction made is removed, with what it stored, unless it was continued since.  What was
    appended to a transcript is cut out of it again; rows that were written behind it stay.
    """
    if session == options.STDIN:
        raise click.UsageError("what comes from standard input is a copy: name the session", ctx)
    settings = process.settings()
    file = options.find(ctx, session, settings.claude_dir)
    result = undo(file, settings.claude_dir, process.lock_dir())
    if as_json:
        ui.emit(result)
    elif result.removed:
        source = "was standard input" if result.source_path == options.STDIN else f"is as it was: {result.source_path}"
        ui.echo(f"removed: {result.path}\nits source {source}")
    else:
        ui.echo(f"taken back: {result.op} of {result.path}")
