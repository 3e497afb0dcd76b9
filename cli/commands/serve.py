"""`foldmark serve`: the MCP server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli import process, resources, ui
from cli.signals import leave_to_others
from core.layers import TOKEN

if TYPE_CHECKING:
    from core.summarizers.base import Summarizer

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})\Z")


class Place(click.ParamType[tuple[str, int]]):
    """An address: 127.0.0.1:8765, localhost:8765, [::1]:8765."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Host and port."""
        found = _ADDRESS.match(str(value))
        if found is None or not 0 < int(found["port"]) < 1 << 16:
            self.fail(f"{value!r} is no address: write 127.0.0.1:8765 or [::1]:8765", param, ctx)
        return found["six"] or found["host"], int(found["port"])


@click.command()
@click.option("--http", type=Place(), metavar="HOST:PORT", help="Serve over HTTP, at /mcp, instead.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A name that the machine is called by.")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL", help="A web page that may call it.")
@click.pass_context
def command(ctx: click.Context, http: tuple[str, int] | None, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
    """Serve AI hosts as an MCP server, over standard input and output: foldmark setup registers it.

    Over HTTP it listens on this machine alone, unless FOLDMARK_TOKEN holds a token, which every request must show.
    """
    if (hosts or origins) and not http:
        raise click.UsageError("--allow-host and --allow-origin are for --http", ctx)
    leave_to_others()
    settings, state_dir, home = process.settings(), process.state_dir(), Path.home()

    def summarizer(name: str, cancelled: Callable[[], bool]) -> Summarizer:
        from core.summarizers import make

        return make(name, resources.access(settings).resources(cancelled=cancelled))

    # The server is a shell of its own, started by its entry point; only this command pays for loading it.
    entry = import_module("mcp_server.main")
    if http:
        entry.serve_http(settings, state_dir, home, summarizer, http, os.environ.get(TOKEN, ""), hosts, origins)
        return
    if sys.stdin is None or sys.stdin.isatty():
        ui.echo("waiting for a host on standard input; foldmark setup HOST has a host start this", err=True)
    entry.serve_stdio(settings, state_dir, home, summarizer, os.environ)
