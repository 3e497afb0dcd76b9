"""`foldmark ask`: one real turn of an old session."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from cli import options, process, resources, ui
from cli.written import show_ways
from core.context.tokens.window import Measuring
from core.errors import ApiError
from core.service.ask import AskOptions, AskResult, Voice, ask
from core.service.from_settings import choices_of
from core.service.operation import Target
from core.service.stages import StageSettings
from core.service.surroundings import Workstation
from core.summarizers import make
from core.turn.git import git_in


@click.command()
@click.argument("session", type=options.SessionName())
@click.argument("question")
@click.option("--model", default="", metavar="ID", help="The model that answers; else that of the session.")
@click.option("--save", is_flag=True, help="Write a new session with the question and the answer.")
@options.out_option("Folder for that session.")
@click.option("--bare", is_flag=True, help="Send nothing but the session: no memory files, no git status, no changes.")
@options.pick_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    question: str,
    model: str,
    save: bool,
    out_dir: Path | None,
    bare: bool,
    pick: str,
    as_json: bool,
) -> None:
    """Ask the model of SESSION a QUESTION about it, and print the answer as it comes.

    The session is sent to the Messages API, without the secrets in it: that needs a key and costs money.  Where it
    is larger than the window it is compacted for that one request.  Nothing is written unless --save is given.

    Where its project is on this machine, the model also gets what a session there would begin with (memory files, git
    status, the date), and what has changed since: files that it had read, say, or prompts that no turn took up.
    """
    if out_dir and not save:
        raise click.UsageError("--out is for --save", ctx)
    settings = process.settings()
    access = resources.access(settings)
    endpoint = access.resources().endpoint
    if endpoint is None:
        raise ApiError("auth", "there is no key for the model API", "set ANTHROPIC_API_KEY")
    file = options.find(ctx, session, settings.claude_dir, pick, writes_beside=save and out_dir is None)
    now, home = datetime.now(UTC), Path.home()
    target = Target(process.lock_dir(), out_dir)
    choices = choices_of(settings, home, target, StageSettings(Measuring.of(settings), now))
    machine = Workstation(home, settings.claude_dir, partial(git_in, env=os.environ), now.astimezone().tzinfo or UTC)
    printed = _Printed()
    voice = Voice(
        endpoint(),
        lambda: datetime.now(UTC),
        time.monotonic,
        make(settings.summarizer, access.resources()),
        None if as_json else printed.say,
        printed.note,
    )
    result = ask(file, question, choices, voice, AskOptions(model, save), None if bare else machine)
    if as_json:
        ui.emit(result)
    else:
        _show(result)


class _Printed:
    """The answer as it comes."""

    def __init__(self) -> None:
        self.is_open = False
        """Whether a line has begun."""

    def say(self, piece: str) -> None:
        """Prints a piece of the answer."""
        click.echo(ui.printable(piece), nl=False)
        self.is_open = True

    def note(self, why: str) -> None:
        """Says that it is asked again: what was printed of the answer is not the answer."""
        if self.is_open:
            click.echo()
        self.is_open = False
        ui.echo(f"asked again: {why}", err=True)


def _show(result: AskResult) -> None:
    """Print what is said about the answer: to stderr, so that the answer alone can be piped."""
    click.echo()
    for warning in result.warnings:
        ui.echo(f"warning: {warning}", err=True)
    if result.stop_reason == "max_tokens":
        ui.echo("warning: the answer was cut: it had no more room", err=True)
    usage = result.usage
    sent = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens
    freed = [f"{s.stage} freed {ui.tokens(s.tokens_freed)}" for s in result.stages if s.tokens_freed > 0]
    price = "" if result.usd is None else f", ${result.usd:.4f}"
    said = f"{result.model}: {ui.tokens(sent)} tokens sent, {ui.tokens(usage.output_tokens)} written{price}"
    told = [f"told of {', '.join(dict.fromkeys(result.attachments))}"] if result.attachments else []
    ui.echo("; ".join((said, *freed, *told)), err=True)
    if result.output:
        show_ways(result.output, result.output_id, result.session.format)
