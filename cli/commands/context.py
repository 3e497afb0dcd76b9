"""`foldmark context`: what fills the window."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli import options, process, ui
from core.defaults import LEAST_WINDOW_TOKENS
from core.report.words import STATES, part_name

if TYPE_CHECKING:
    from core.api.endpoint import Endpoint
    from core.service.context import ContextReport, StageOutlook
    from core.service.session import Session
    from core.settings import Settings


@click.command()
@click.argument("session", type=options.SessionName())
@options.pick_option
@click.option("--window", "window_tokens", type=options.TokenCount(LEAST_WINDOW_TOKENS), help="Size of the window.")
@click.option("--stages", is_flag=True, help="Also say what each stage would free, and a compaction.")
@click.option("--count", is_flag=True, help="Have the Messages API count, too: sends the messages, needs a key.")
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    pick: str,
    window_tokens: int | None,
    stages: bool,
    count: bool,
    as_json: bool,
) -> None:
    """Show what fills the window of SESSION: by kind and by tool, the largest parts, the thresholds."""
    with options.read_ahead(session) as begun:
        import msgspec

        from core.context.tokens.window import Measuring
        from core.service.context import context_report
        from core.service.session import opened

        settings = process.settings(window_tokens=window_tokens)
        file = options.find(ctx, session, settings.claude_dir, pick)
        endpoint = _endpoint(settings) if count else None
        with opened(file, measuring=Measuring.of(settings), begun=begun) as found:
            report = context_report(found, endpoint)
            if stages:
                report = msgspec.structs.replace(report, stages=_looked(found, settings))
    if as_json:
        ui.emit(report)
        return
    print_window(report)
    if report.messages:
        _print_parts(report)
    if report.stages is not None:
        ui.echo("\nWhat could be freed, each by itself")
        rows = [(each.stage, ui.tokens(each.tokens_freed), each.reason) for each in report.stages]
        ui.print_table(("STAGE", "TOKENS", ""), rows, {"TOKENS"})


def _endpoint(settings: Settings) -> Endpoint:
    from cli import resources

    return resources.access(settings).endpoint()


def _looked(session: Session, settings: Settings) -> list[StageOutlook]:
    from core.context.tokens.window import Measuring
    from core.service.from_settings import choices_of
    from core.service.operation import Target
    from core.service.outlook import outlook
    from core.service.stages import StageSettings

    known = StageSettings(Measuring.of(settings), datetime.now(UTC))
    return outlook(session, choices_of(settings, Path.home(), Target(process.lock_dir()), known))


def print_window(report: ContextReport) -> None:
    """Print which session it is, the bar, and how near the thresholds are."""
    tokens, window = report.tokens, report.window
    if report.session.title:
        ui.echo(ui.title(report.session.title))
    count = ui.count(report.messages, "message")
    ui.echo(f"{report.session.id}  {count}  {window.model or 'unknown model'}\n")
    if not report.messages:
        ui.echo("the session holds no messages")
        return
    click.echo(ui.context_bar(report.by_kind, window.window_tokens, window.auto_threshold_tokens))
    share = tokens.total / max(1, window.window_tokens)
    assumed = ", a window assumed for an unknown model: --window sets it" if window.assumed else ""
    of_window = f"{ui.tokens(tokens.total)} of {ui.tokens(window.window_tokens)} tokens ({share:.0%})"
    ui.echo(f"\n{of_window}, {_exactness(report)}{assumed}")
    ui.echo(f"{STATES[window.state]}; compaction is due at {ui.tokens(window.auto_threshold_tokens)} (│)")
    if report.counted_tokens is not None:
        ui.echo(f"the API counts {ui.tokens(report.counted_tokens)} tokens for the messages")
    for warning in report.warnings:
        ui.echo(f"warning: {warning}")


def _print_parts(report: ContextReport) -> None:
    warm, cold = report.next_request_usd["warm"], report.next_request_usd["cold"]
    if warm is not None and cold is not None:
        ui.echo(f"the next request costs ${warm:.3f} with a warm cache, ${cold:.3f} with a cold one")
    if report.by_tool:
        ui.echo("\nTool results")
        ui.print_table(("TOOL", "TOKENS"), [(t, ui.tokens(n)) for t, n in report.by_tool.items()], {"TOKENS"})
    if report.largest:
        ui.echo("\nThe largest parts (foldmark output shows one)")
        rows = [(p.id, part_name(p.kind, p.tool), ui.tokens(p.tokens), f"{p.share:.1%}") for p in report.largest]
        ui.print_table(("ID", "WHAT", "TOKENS", "SHARE"), rows, {"TOKENS", "SHARE"}, shrinks="WHAT", drops=("SHARE",))


def _exactness(report: ContextReport) -> str:
    tokens = report.tokens
    if tokens.source == "estimate":
        return f"estimated, ±{ui.tokens(tokens.margin)}"
    return "as the API counted" + (f", the last {ui.tokens(tokens.tail)} estimated" if tokens.tail else "")
