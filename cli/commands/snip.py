"""`foldmark snip`: take a range out of the middle of a session."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import click

from cli import options, ui
from cli.written import show_ways
from core.context.tokens.window import Measuring
from core.service.operation import Target
from core.service.session import opened
from core.service.snip import SnipProposals, SnipResult, snip, snip_proposals
from core.service.stages import StageSettings
from core.stages.verdict import when_it_pays


@click.command()
@click.argument("session")
@click.argument("from_id", metavar="[FROM", required=False)
@click.argument("to_id", metavar="TO]", required=False)
@click.option("--suggest", is_flag=True, help="Say which ranges may go; write nothing.")
@click.option("--out", "out_dir", type=click.Path(path_type=Path, file_okay=False), help="Folder for the new file.")
@click.option("--in-place", is_flag=True, help="Append to the transcript itself; its old rows stay.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and whether it pays; write nothing.")
@options.pick_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    from_id: str | None,
    to_id: str | None,
    suggest: bool,
    out_dir: Path | None,
    in_place: bool,
    dry_run: bool,
    pick: str,
    as_json: bool,
) -> None:
    """Take the messages FROM to TO out of SESSION; one line stands in their place.

    FROM and TO are ids of messages or tool calls, or the starts of them.  The range grows to whole rounds; what you
    wrote yourself stays, unless you name it.  The result is a new session; what was taken out is stored beside it:
    foldmark output shows it, foldmark undo takes the snip back.
    """
    if in_place and out_dir:
        raise click.UsageError("--in-place and --out exclude each other", ctx)
    if suggest == bool(from_id) or bool(from_id) != bool(to_id):
        raise click.UsageError("give both FROM and TO, or --suggest", ctx)
    if suggest and (out_dir or in_place or dry_run):
        raise click.UsageError("--suggest writes nothing: leave out --out, --in-place and --dry-run", ctx)
    settings = options.settings()
    beside = not (suggest or out_dir or dry_run)
    file = options.find(ctx, session, settings.claude_dir, pick, writes_beside=beside)
    target = Target(options.state_dir() / "locks", out_dir, in_place, dry_run, clock=time.time)
    known = StageSettings(Measuring.of(settings), datetime.now(UTC))
    if from_id and to_id:
        _show(snip(file, from_id, to_id, target, known), as_json, settings.claude_dir)
        return
    with opened(file, measuring=known.measuring) as found:
        _show_proposals(snip_proposals(found, target, known), as_json)


def _show(result: SnipResult, as_json: bool, claude_dir: Path) -> None:
    if as_json:
        ui.print_json(result.model_dump(mode="json"))
        return
    before, after = result.tokens_before, result.tokens_after
    count = ui.count(result.count, "message")
    ui.echo(f"{count}, {ui.tokens(before - after)} tokens: from {result.first} to {result.last}")
    ui.echo(f"{ui.tokens(before)} → {ui.tokens(after)} tokens")
    for verdict in result.verdicts:
        ui.echo(f"on the prompt cache: {verdict}")
    if not result.changed:
        ui.echo(f"nothing written: {result.reason}")
        return
    show_ways(result.output, result.session_id, result.source.format, claude_dir)


def _show_proposals(found: SnipProposals, as_json: bool) -> None:
    if as_json:
        ui.print_json(found.model_dump(mode="json"))
        return
    if not found.proposals:
        ui.echo(f"nothing to propose: {found.reason}")
        return
    rows = [
        (p.from_id, p.to_id, str(p.messages), ui.tokens(p.tokens), when_it_pays(p.pays_after), ", ".join(p.reasons))
        for p in found.proposals
    ]
    ui.print_table(("FROM", "TO", "MESSAGES", "TOKENS", "PAYS", "WHY"), rows, {"MESSAGES", "TOKENS"})
