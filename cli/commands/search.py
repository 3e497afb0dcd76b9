"""`foldmark search`: in everything that a session ever held."""

from __future__ import annotations

import click

from cli import options, process, ui
from core.report.words import part_name
from core.service.history import search
from core.service.session import opened


@click.command()
@click.argument("session", type=options.SessionName())
@click.argument("text")
@click.option("--regex", is_flag=True, help="TEXT is a regular expression.")
@click.option("--limit", type=options.Count(1), default=100, show_default=True, help="How many lines at most.")
@options.pick_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, session: str, text: str, regex: bool, limit: int, pick: str, as_json: bool) -> None:
    """Search SESSION for TEXT: what the model sees, and what was compacted, stored, or left on another branch.

    In TEXT upper and lower case are the same, in a --regex they are not. foldmark output prints the
    whole text of an id.
    """
    if not text:
        raise click.UsageError("TEXT is empty: every line would match", ctx)
    with opened(options.find(ctx, session, process.settings().claude_dir, pick), whole=True) as found:
        result = search(found, text, regex, limit)
    if as_json:
        ui.emit(result)
        return
    for hit in result.hits:
        ui.print_found(f"{hit.id}:{hit.line} ({part_name(hit.kind, hit.name)}, {hit.where})", hit.text)
    if result.more:
        ui.echo(f"the first {limit}; --limit shows more", err=True)
    if not result.hits:
        ui.echo("not found", err=True)
