"""`foldmark redact`: a session without its secrets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from cli import options, process, ui
from cli.written import show_ways
from core.service.redact import RedactResult, find_secrets, redact_session

SHOWN = 40
"""How many places a person gets to see at once."""


@click.command()
@click.argument("session", type=options.SessionName())
@click.option("--check", is_flag=True, help="List them and write nothing; the exit code is 1 when there are any.")
@options.out_option("Folder for the new file.")
@options.pick_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, session: str, check: bool, out_dir: Path | None, pick: str, as_json: bool) -> int:
    """Copy SESSION without its secrets: passwords, tokens and keys in texts, tool inputs, results and stored outputs.

    The copy is a new session with the same rows; a mark such as [REDACTED:github-token] stands for each secret.
    Secrets are known by their form, or by what they are called: look at the copy before you pass it on.  They are
    never printed.  SESSION itself stays as it is: remove it yourself, with the folder of its name beside it.  A secret
    that was in a session was sent to the API: replace it where it came from.
    """
    if check and out_dir:
        raise click.UsageError("--check writes nothing: leave out --out", ctx)
    claude_dir = process.settings().claude_dir
    file = options.find(ctx, session, claude_dir, pick, writes_beside=not (check or out_dir))
    result = find_secrets(file) if check else redact_session(file, out_dir)
    if as_json:
        ui.emit(result)
    else:
        _print(result, check)
    return 1 if check and result.findings else 0


def _print(result: RedactResult, check: bool) -> None:
    name = ui.title(result.session.title or result.session.id)
    if not result.findings:
        ui.echo(f"{name}: no secrets found")
        return
    counts = Counter(f.kind for f in result.findings)
    ui.echo(f"{name}: {', '.join(f'{n} {kind}' for kind, n in counts.most_common())}\n")
    rows = [
        (f.kind, f.where, f"{f.file}:{f.line}" if f.file else str(f.line), f.id, f.masked)
        for f in result.findings[:SHOWN]
    ]
    ui.print_table(("KIND", "WHERE", "LINE", "ID", "VALUE"), rows)
    if len(result.findings) > SHOWN:
        ui.echo(f"and {len(result.findings) - SHOWN} more; --json lists all")
    if result.changed:
        ui.echo()
        show_ways(result.output, result.output_id, result.session.format)
    elif not check:
        ui.echo(f"\nnothing written: {result.reason}")
