"""`foldmark report`: what an operation did to a session."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from cli import options, process, ui
from core.context.tokens.window import Measuring
from core.report.data import Fidelity, Report, Said
from core.report.words import PLACES, SCALE, STANDINGS, change, dollars, faults, fidelity_words, part_name, share
from core.service.report import opened_source, report
from core.service.session import opened
from core.transcript.writer import write_new

SHOWN = 12
"""How many requests and statements a person gets to see at once."""


@click.command()
@click.argument("before", type=options.SessionName())
@click.argument("after", required=False, type=options.SessionName())
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page for a browser to a new file, too."
)
@options.pick_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, before: str, after: str | None, html: Path | None, pick: str, as_json: bool) -> None:
    """Compare the sessions BEFORE and AFTER; one name alone is AFTER, and what it was made of is BEFORE.

    Says what fills the context before and after, where the largest parts went, how true and how complete the summary
    is, whether what you asked for still stands word for word, what can be read on demand, and what the next request
    costs.
    """
    if pick and not after:
        raise click.UsageError("--pick is for BEFORE: name AFTER, too", ctx)
    settings = process.settings()
    measuring = Measuring.of(settings)
    with ExitStack() as stack:
        file = options.find(ctx, after or before, settings.claude_dir)
        new = stack.enter_context(opened(file, whole=True, measuring=measuring))
        if after:
            file = options.find(ctx, before, settings.claude_dir, pick)
            old = stack.enter_context(opened(file, measuring=measuring))
        else:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foldmark-")))
            old = stack.enter_context(opened_source(new, scratch))
        found = report(old, new)
    if html:
        from core.report.page import render

        write_new(html, [render(found).encode("utf-8", "replace")])  # never over a file: it may be a transcript
    if as_json:
        ui.emit(found)
        return
    _print(found)
    if html:
        ui.echo(f"\nwritten: {html}")


def _print(found: Report) -> None:
    before, after = found.before, found.after
    ui.echo(ui.title(before.title or before.id))
    kinds = [*dict.fromkeys((*before.by_kind, *after.by_kind))]  # one order, so that the bars can be compared
    for name, side in (("before", before), ("after", after)):
        ui.echo(f"\n{name}  {side.id}  {ui.count(side.messages, 'message')}")
        by_kind = {kind: side.by_kind.get(kind, 0) for kind in kinds}
        click.echo(ui.context_bar(by_kind, side.window_tokens, side.auto_threshold_tokens))
    saved = change(before.tokens, after.tokens)
    ui.echo(f"\n{ui.tokens(before.tokens)} → {ui.tokens(after.tokens)} tokens ({saved})")
    for state in ("warm", "cold"):
        old, new = before.next_request_usd[state], after.next_request_usd[state]
        if old is not None:
            ui.echo(f"next request, {state} cache: {dollars(old)} → {dollars(new)}")
    ui.echo(SCALE)
    for warning in found.warnings:
        ui.echo(f"warning: {warning}")
    ui.echo("\nWhere it went")
    places = [(PLACES[place], str(n.messages), ui.tokens(n.tokens)) for place, n in found.places.items() if n.messages]
    ui.print_table(("MESSAGES OF BEFORE", "COUNT", "TOKENS"), places, {"COUNT", "TOKENS"})
    if found.largest:
        ui.echo("\nThe largest parts (foldmark output shows one)")
        rows = [
            (p.id, part_name(p.kind, p.tool), ui.tokens(p.tokens), ui.tokens(p.tokens_after), PLACES[p.place])
            for p in found.largest
        ]
        ui.print_table(
            ("ID", "WHAT", "BEFORE", "AFTER", "WHERE"), rows, {"BEFORE", "AFTER"}, shrinks="WHAT", drops=("AFTER",)
        )
    if found.fidelity:
        _print_fidelity(found.fidelity)
    _print_said("What you asked for", found.requests)
    _print_said("What goes on to hold", found.constraints)
    names = found.names
    paths, symbols = f"{names.paths_named} of {names.paths} paths", f"{names.symbols_named} of {names.symbols} symbols"
    ui.echo(f"\nstill named: {paths}, {symbols}")
    if names.missing:
        ui.echo(f"  not named any more: {ui.plain(', '.join(names.missing))}")
    ui.echo(f"ids: {len(found.reachable)} readable on demand, {len(found.gone)} gone (--json lists them)")


def _print_fidelity(found: Fidelity) -> None:
    ui.echo(f"\nThe summary: {', '.join(fidelity_words(found))}")
    rows = [(word, line) for word, lines in faults(found) for line in lines]
    if rows:
        ui.print_table(("WHAT IS WRONG", "TEXT"), rows[:SHOWN])
    if len(rows) > SHOWN:
        ui.echo(f"  and {len(rows) - SHOWN} more (--json lists them)")


def _print_said(heading: str, said: list[Said]) -> None:
    if not said:
        return
    whole = sum(s.standing == "verbatim" for s in said)
    ui.echo(f"\n{heading}: {whole} of {len(said)} word for word ({share(whole, len(said))})")
    ui.print_table(
        ("WHERE", "TEXT"),
        [(STANDINGS[s.standing], s.text) for s in sorted(said, key=lambda s: s.standing == "verbatim")[:SHOWN]],
    )
