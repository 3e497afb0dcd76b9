"""`foldmark memory`: the notes of a session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import click

from cli import options, process, resources, ui
from cli.errors import report_one
from core.memory.extractors import EXTRACTORS, ExtractorName, make
from core.memory.limits import limits_of, timed_limits

if TYPE_CHECKING:
    from core.api.endpoint import Endpoint
    from core.service.memory import MemoryUpdate
    from core.service.memory_refresh import Refreshed

F = TypeVar("F", bound=Callable[..., object])


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep notes on a session, from which it can be compacted without asking a model again.

    They are one Markdown file beside the transcript, yours to read and to edit.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _extractor_options(function: F) -> F:
    who = "Who takes the notes.  extractive (the default): by rule, nothing leaves the machine."
    function = click.option("--model", default="", metavar="ID", help="The model that is asked; else the cheapest.")(
        function
    )
    return click.option("--summarizer", type=click.Choice(EXTRACTORS), default="extractive", help=who)(function)


@command.command("show", short_help="Print the notes, and what they do not tell of.")
@click.argument("session", type=options.SessionName())
@options.pick_option
@options.json_option
@click.pass_context
def show_command(ctx: click.Context, session: str, pick: str, as_json: bool) -> None:
    """Print the notes of SESSION, and how much of it they do not tell of."""
    from core.service.memory import show

    settings = process.settings()
    view = show(options.find(ctx, session, settings.claude_dir, pick), limits_of(settings))
    if as_json:
        ui.emit(view)
        return
    if not view.exists:
        ui.echo(f"{ui.quoted(view.session.title or view.session.id)}: no notes yet")
    else:
        ui.echo(view.text)
    unseen = f"{ui.count(view.unseen_messages, 'message')} ({ui.tokens(view.unseen_tokens)} tokens)"
    ui.echo(f"not noted yet: {unseen}" if view.unseen_messages else f"up to date: {view.path}")


@command.command("update", short_help="Bring the notes up to the end of the session.")
@click.argument("session", type=options.SessionName())
@_extractor_options
@options.pick_option
@options.json_option
@click.pass_context
def update_command(
    ctx: click.Context, session: str, summarizer: ExtractorName, model: str, pick: str, as_json: bool
) -> None:
    """Bring the notes of SESSION up to its end; only what is new is read for it."""
    from core.service.memory import update

    settings = process.settings()
    resources.refuse_without_model(ctx, summarizer, {"--model": model})
    extractor = make(summarizer, resources.access(settings, model).resources)
    done = update(options.find(ctx, session, settings.claude_dir, pick), extractor, limits_of(settings))
    if as_json:
        ui.emit(done)
    else:
        ui.echo(_in_words(done))


@command.command("refresh", short_help="Update the notes of many sessions: for a timer.")
@options.sessions_argument
@click.option("--idle", "idle_s", type=options.Span(), help="Only those not written to for this long (50m, 3h, 2d).")
@click.option("--since", "since_s", type=options.Span(), help="Only those written to within this time.")
@_extractor_options
@click.option("--max-usd", type=options.Dollars(), help="The most that all calls may cost.")
@click.option("--max-tokens", type=options.TokenCount(1), help="The most that all calls may take, answers counted.")
@click.option("--max-time", "max_s", type=options.Span(), help="The longest that it may take (50m, 3h).")
@options.json_lines_option
@click.pass_context
def refresh_command(
    ctx: click.Context,
    sessions: tuple[str, ...],
    all_sessions: bool,
    idle_s: float | None,
    since_s: float | None,
    summarizer: ExtractorName,
    model: str,
    max_usd: float | None,
    max_tokens: int | None,
    max_s: float | None,
    as_json: bool,
) -> int:
    """Update the notes of SESSIONS (names, files, folders, patterns) where enough is new: for a timer.

    A session that did not change is not opened, one that another process works on is left to it, one that Foldmark
    made is left alone until somebody goes on there.  It says nothing when there is nothing to do.  A cap that is
    reached ends it without an error: the next run goes on.
    """
    from core.service.memory_refresh import Which, refresh

    given = {"--model": model, "--max-usd": max_usd, "--max-tokens": max_tokens}
    resources.refuse_without_model(ctx, summarizer, given)
    settings = process.settings()
    files = options.chosen(ctx, sessions, all_sessions, settings.claude_dir)
    begin, now = time.monotonic(), time.time()

    def metered(endpoint: Endpoint) -> Endpoint:
        from core.api.metered import Caps, Metered
        from core.context.tokens.models import load

        caps = Caps(max_tokens, max_usd, max_s)
        return Metered(endpoint, caps, clock=time.monotonic, models=load(settings.models_file))

    extractor = make(summarizer, resources.access(settings, model).resources, metered)
    which = Which(None if idle_s is None else now - idle_s, None if since_s is None else now - since_s)
    limits = timed_limits(settings, extractor.cadence)
    out_of_time = (lambda: time.monotonic() - begin >= max_s) if max_s is not None else lambda: False
    # What is no session of the client is named once, where it is asked for, and not by every run of a timer.
    return _report(refresh(files, extractor, limits, which, out_of_time, named=not all_sessions), as_json)


def _report(found: Iterable[Refreshed], as_json: bool) -> int:
    failed = 0
    for one in found:
        if isinstance(one.outcome, Exception):
            failed += not one.is_cap
            report_one(one.file.path, one.outcome, as_json)
        elif as_json:
            ui.emit(one.outcome, one_line=True)
        else:
            ui.echo(_in_words(one.outcome))
    return 1 if failed else 0


def _in_words(done: MemoryUpdate) -> str:
    name = ui.quoted(done.session.title or done.session.id)
    if not done.changed:
        return f"{name}: {done.reason}"
    calls = f", {ui.count(done.calls, 'call')} of a model" if done.calls else ""
    noted = f"{ui.count(done.messages, 'message')} ({ui.tokens(done.tokens)} tokens)"
    refused = f", {len(done.refused)} refused" if done.refused else ""
    return f"{name}: noted {noted} in {ui.count(done.operations, 'change')}{refused}{calls}: {done.path}"
