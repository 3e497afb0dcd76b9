"""The `foldmark` command: finds the subcommand, loads it alone, turns every error into a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from cli.signals import interruptible
from core import __version__

INTERRUPTED = 130
"""The exit code of what was ended by Ctrl-C, or by SIGTERM."""

COMMANDS = {
    "sessions": ("cli.commands.sessions", "List the sessions: project, title, age, size, tokens, state."),
    "context": ("cli.commands.context", "Show what fills the window of a session."),
    "view": ("cli.commands.view", "Show what the next model call would see."),
    "compact": ("cli.commands.compact", "Write a shorter session that the client resumes."),
    "memory": ("cli.commands.memory", "Keep notes on sessions; show, update, refresh them."),
    "snip": ("cli.commands.snip", "Take a range out of the middle of a session."),
    "strip": ("cli.commands.strip", "Put notes in the place of images and documents."),
    "output": ("cli.commands.output", "Print a tool result or message, also what was compacted."),
    "search": ("cli.commands.search", "Search everything that a session ever held."),
    "check": ("cli.commands.check", "Name the damage in transcripts; write repaired copies."),
    "ask": ("cli.commands.ask", "Ask the model of a session a question about it."),
    "report": ("cli.commands.report", "Say what was lost, what is reachable, and what it costs."),
    "redact": ("cli.commands.redact", "Copy a session without its secrets, or list them."),
    "simulate": ("cli.commands.simulate", "Say what a session would have cost under several policies."),
    "undo": ("cli.commands.undo", "Take back the newest operation on a session."),
    "serve": ("cli.commands.serve", "Serve AI hosts as an MCP server."),
    "setup": ("cli.commands.setup", "Register the server with a host, or take it out again."),
    "hook": ("cli.commands.hook", "Answer a hook of Claude Code while a session runs."),
    "doctor": ("cli.commands.doctor", "Show what is in place, and each setting with its origin."),
}
"""Name -> (module with `command`, what the list of commands says).  A command's imports (models, readers) are paid
for by that command alone; the help must be said here too, because the list must not import them all."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one command that is meant."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest names that are near a wrong one."""
        self.commands = dict.fromkeys(COMMANDS, self)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="foldmark", message="%(prog)s %(version)s")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def foldmark(ctx: click.Context, as_json: bool) -> None:
    """Read, measure, compact and restore the transcripts of long agent sessions.

    Without a command: the sessions of this folder, and what can be done.

    SESSION is a path, a session's id or the start of it, a title, "latest", or "-" for standard input.
    """
    if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        ctx.color = False
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"--json goes behind {ctx.invoked_subcommand}", ctx)
    else:
        from cli.commands.home import show

        show(as_json)


def run(args: Sequence[str]) -> int:
    """Run the command line and return its exit code: 0 done, 1 something failed, 2 wrong usage, 130 interrupted."""
    _open_outputs()
    try:
        with interruptible() as interrupts:
            code = _run(args, interrupts)
            sys.stdout.flush()
            sys.stderr.flush()
        return code
    except KeyboardInterrupt:  # the second one: the first had its message
        code = INTERRUPTED
    except (SystemExit, BrokenPipeError):  # the reader of the output has seen enough
        code = 0
    except OSError as error:  # a full disk
        code = 1
        with suppress(OSError):
            click.echo(f"error: the output is not whole: {error.strerror or error}", err=True)
    return code


def _open_outputs() -> None:
    """Have both outputs, closed ones as nothing, and able to print what transcripts hold whatever the locale."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open until the process ends, as the real ones)
        # A lone surrogate is printed as its escape, which JSON reads too.
        getattr(sys, name).reconfigure(encoding="utf-8", errors="backslashreplace")


def _run(args: Sequence[str], interrupts: Sequence[int]) -> int:
    try:
        result = foldmark.main(args, prog_name="foldmark", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _interrupted()
    except Exception as error:  # noqa: BLE001 (the last resort: a person never sees a traceback)
        if interrupts:
            return _interrupted()
        from cli.errors import report

        return report(error, as_json="--json" in args)


def _interrupted() -> int:
    click.echo("interrupted", err=True)
    return INTERRUPTED
