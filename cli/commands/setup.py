"""`foldmark setup`: the server, registered with a host."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from cli import options, process, ui
from core.hosts.known import HOSTS
from core.service.setup import Setup, SetupResult, apply_setup, plan_removal, plan_setup

_COMMAND_S = 60
"""How long a host's own command may take."""


_NAMED = "\b\nHosts:\n" + "\n".join(f"  {name:14}  {host.label}" for name, host in HOSTS.items())


@click.command(epilog=_NAMED)
@click.argument("host", metavar="HOST", type=options.Name([*HOSTS]))
@click.option("--remove", is_flag=True, help="Take the server out again.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show the change; write nothing.")
@options.json_option
@click.pass_context
def command(ctx: click.Context, host: str, remove: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Register the Foldmark server with HOST, so that its model can look at its own context and compact it.

    Shows the change to the host's settings and asks first; everything else in the file stays as it is, and a copy of
    it is kept.  With --remove the file is what it was before.  Where CLAUDE_CONFIG_DIR is set, the host hands it on.
    """
    machine = process.machine()
    if remove:
        setup = plan_removal(host, machine, process.state_dir())
    else:
        setup = plan_setup(host, machine, process.launch(), process.state_dir(), shutil.which)
    if as_json and not (yes or dry_run or setup.needless):
        raise click.UsageError("--json cannot ask: add --yes or --dry-run", ctx)
    if not as_json:
        _show(setup, remove)
    if dry_run or setup.needless:
        result = setup.result
    elif yes or _agreed(ctx):
        result = apply_setup(setup, _run)
    else:
        ui.echo("nothing was changed")
        return
    if as_json:
        ui.emit(result)
    elif result.changed:
        _show_done(result, remove)
    elif not setup.needless:
        ui.echo(f"\ndry run: would write {result.config}")


def _agreed(ctx: click.Context) -> bool:
    with suppress(click.Abort):
        if sys.stdin is not None:  # closed
            return click.confirm("Make this change?", err=True)
    click.echo(err=True)  # what is said next is no answer to the question
    if _has_terminal():
        raise click.Abort
    raise click.UsageError("nobody is there to ask: add --yes or --dry-run", ctx)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _run(command: Sequence[str]) -> int:
    """Run a host's own command, quietly."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_COMMAND_S,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 127


def _show(setup: Setup, remove: bool) -> None:
    label = setup.host.label
    if setup.needless:
        ui.echo(f"{label}: {'the server is not registered' if remove else 'the server is registered already'}")
        return
    for line in setup.result.diff.splitlines():
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.secho(ui.printable(line), fg=colour)
    if setup.result.command:
        ui.echo(f"\nby {label}'s own command: {' '.join(setup.result.command[:3])}")


def _show_done(result: SetupResult, remove: bool) -> None:
    ui.echo(f"{'taken out of' if remove else 'written to'} {result.config}")
    if result.backup:
        ui.echo(f"as it was before: {result.backup}")
    ui.echo(f"now {result.next_step}")
    if not remove:
        ui.echo(f"take it out again with:  foldmark setup {result.host} --remove")
