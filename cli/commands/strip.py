"""`foldmark strip`: take images and documents out of a session."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from cli import options, process, ui
from cli.written import show_outcome
from core.context.tokens.window import Measuring
from core.service.operation import Target
from core.service.session import opened
from core.service.stages import StageSettings
from core.service.strip import MediaLine, StripResult, media_of, strip
from core.stages.media import MediaSettings, Pick


@click.command()
@click.argument("session", type=options.SessionName())
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--bad", "choice", flag_value="unreadable", help="All that are no image or document that the API takes.")
@click.option("--old", "choice", flag_value="old", help="All but those of the last turn.")
@click.option("--all", "choice", flag_value="all", help="All.")
@options.target_options
@options.pick_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    ids: tuple[str, ...],
    choice: Pick | None,
    target: Target,
    pick: str,
    as_json: bool,
) -> None:
    """Put notes in the place of images and documents of SESSION; list them when none is chosen.

    One that the API cannot process makes every request fail: --bad finds it.  ID is the id of a call, a message or a
    content, as listed, or the start of one.  The result is a new session; what was taken out is stored beside it, and
    the note says where.  Calls and their results stay whole.  foldmark undo takes it back.
    """
    chosen = MediaSettings(choice) if choice else MediaSettings("named", ids) if ids else None
    if choice and ids:
        raise click.UsageError("give ids, or one of --bad, --old and --all", ctx)
    if not chosen and (target.out_dir or target.in_place or target.dry_run):
        raise click.UsageError("say which: ids, --bad, --old or --all", ctx)
    settings = process.settings()
    beside = chosen is not None and not (target.out_dir or target.dry_run)
    file = options.find(ctx, session, settings.claude_dir, pick, writes_beside=beside)
    if chosen:
        known = StageSettings(Measuring.of(settings), datetime.now(UTC))
        _show(strip(file, chosen, target, known), as_json)
        return
    with opened(file) as found:
        listed = media_of(found)
    if as_json:
        ui.emit(listed)
    elif listed.media:
        _print(listed.media)
    else:
        ui.echo("no images or documents")


def _show(result: StripResult, as_json: bool) -> None:
    if as_json:
        ui.emit(result)
        return
    if result.media:
        _print(result.media)
        ui.echo(f"\n{ui.tokens(result.tokens_before)} → {ui.tokens(result.tokens_after)} tokens")
    show_outcome(result)


def _print(media: list[MediaLine]) -> None:
    rows = [(m.id, m.media_type, _extent(m), ui.size(m.bytes), m.path) for m in media]
    ui.print_table(("ID", "TYPE", "EXTENT", "SIZE", "FILE"), rows, {"SIZE"})


def _extent(media: MediaLine) -> str:
    if media.unreadable:
        return "unreadable"
    if media.pages:
        return ui.count(media.pages, "page")
    return f"{media.width}x{media.height}" if media.width else ""
