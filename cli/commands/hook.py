"""`foldmark hook`: what a host calls while a session runs."""

from __future__ import annotations

import sys

import click

from cli.hook import run
from core.service.hooks import EVENTS


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("event", default="")
@click.pass_context
def command(ctx: click.Context, event: str) -> int:
    """Answer a hook of Claude Code: its JSON on standard input, EVENT as in the client's settings.

    \b
    PostToolUse   store what is too large, leave a preview
    PreCompact    say what the summary must not lose
    SubagentStop  keep the summary for SessionStart
    SessionStart  put back what a summary lost; say when the cache is cold
    Stop          keep the session's notes up to date

    Whatever goes wrong, the host goes on: no output, exit code 0.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        known = event in EVENTS
        said = "its input comes from a host, on standard input" if known else f"known events: {', '.join(EVENTS)}"
        raise click.UsageError(said, ctx)
    return run(event)
