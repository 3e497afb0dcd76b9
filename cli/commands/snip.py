"""`foldmark snip`: take a range out of the middle of a session."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from cli import options, process, ui
from cli.written import show_outcome
from core.context.tokens.window import Measuring
from core.service.operation import Target
from core.service.session import opened
from core.service.snip import SnipProposals, SnipResult, snip, snip_proposals
from core.service.stages import StageSettings
from core.stages.verdict import when_it_pays


@click.command()
@click.argument("session", type=options.SessionName())
@click.argument("from_id", metavar="[FROM", required=False)
@click.argument("to_id", metavar="TO]", required=False)
@click.option("--suggest", is_flag=True, help="Say which ranges may go; write nothing.")
@options.target_options
@options.pick_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    from_id: str | None,
    to_id: str | None,
    suggest: bool,
    target: Target,
    pick: str,
    as_json: bool,
) -> None:
    """Take the messages FROM to TO out of SESSION; one line stands in their place.

    FROM and TO are ids of messages or tool calls, or the starts of them.  The range grows to whole rounds; what you
    wrote yourself stays, unless you name it.  The result is a new session; what was taken out is stored beside it:
    foldmark output shows it, foldmark undo takes the snip back.
    """
    if suggest == bool(from_id) or bool(from_id) != bool(to_id):
        raise click.UsageError("give both FROM and TO, or --suggest", ctx)
    if suggest and (target.out_dir or target.in_place or target.dry_run):
        raise click.UsageError("--suggest writes nothing: leave out --out, --in-place and --dry-run", ctx)
    settings = process.settings()
    beside = not (suggest or target.out_dir or target.dry_run)
    file = options.find(ctx, session, settings.claude_dir, pick, writes_beside=beside)
    known = StageSettings(Measuring.of(settings), datetime.now(UTC))
    if from_id and to_id:
        _show(snip(file, from_id, to_id, target, known), as_json)
        return
    with opened(file, measuring=known.measuring) as found:
        _show_proposals(snip_proposals(found, target, known), as_json)


def _show(result: SnipResult, as_json: bool) -> None:
    if as_json:
        ui.emit(result)
        return
    before, after = result.tokens_before, result.tokens_after
    count = ui.count(result.messages, "message")
    ui.echo(f"{count}, {ui.tokens(before - after)} tokens: from {result.from_id} to {result.to_id}")
    ui.echo(f"{ui.tokens(before)} → {ui.tokens(after)} tokens")
    for verdict in result.verdicts:
        ui.echo(f"on the prompt cache: {verdict}")
    show_outcome(result)


def _show_proposals(found: SnipProposals, as_json: bool) -> None:
    if as_json:
        ui.emit(found)
        return
    if not found.proposals:
        ui.echo(f"nothing to propose: {found.reason}")
        return
    rows = [
        (p.from_id, p.to_id, str(p.messages), ui.tokens(p.tokens), when_it_pays(p.pays_after), ", ".join(p.reasons))
        for p in found.proposals
    ]
    ui.print_table(("FROM", "TO", "MESSAGES", "TOKENS", "PAYS", "WHY"), rows, {"MESSAGES", "TOKENS"})
