"""`foldmark sessions`: the list."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import click

from cli import options, process, ui
from cli.errors import tell
from core.errors import SessionNotFound
from core.service.sessions import SessionLine, list_sessions
from core.transcript.locate import no_sessions

SHOWN = 30
"""How many lines a person gets to see at once."""

PROJECT_CHARS = 24
"""Of a folder's name: beside it there is room for a title on a terminal of 80 columns."""

_ALL = "{sessions} lists all sessions"


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--limit", type=options.Count(), help=f"How many; 0 for all (default: {SHOWN}; all with --json).")
@options.json_option
def command(folder: Path | None, limit: int | None, as_json: bool) -> None:
    """List the sessions, the newest first: all, or those that were started in FOLDER, else those that lie in it.

    STATE: live, a client has it open; compacted, a compaction stands in it; foreign, of another client, the TITLE says
    which; empty, nothing was said; damaged, no row can be read; ready, none of these.
    """
    if limit is None and not as_json:
        limit = SHOWN
    where = Path(os.path.abspath(folder)) if folder else None
    claude_dir = process.settings().claude_dir
    found = list_sessions(claude_dir, where, limit or None, inside=None)
    if where and not found.sessions and not where.is_dir():
        raise SessionNotFound(f"there is no folder {where}, and no session was started in it", _ALL)
    if as_json:
        ui.emit(found)
        return
    if not found.sessions:
        none_there = SessionNotFound(f"no session was started in {where}, and no transcript lies in it", _ALL)
        tell(none_there if where else no_sessions(claude_dir))
        return
    print_lines(found.sessions)
    if found.more:
        ui.echo(f"the newest {limit} of {found.total}; --limit 0 shows all", err=True)


def print_lines(lines: list[SessionLine]) -> None:
    """Print sessions as a table."""
    now = time.time()
    rows = [
        (
            line.id[:8],
            ui.age(now - datetime.fromisoformat(line.updated).timestamp()),
            ui.size(line.size_bytes),
            ui.tokens(line.tokens),
            line.state,
            _short(line.project),
            ui.title(line.title or (f"({line.format})" if line.state == "foreign" else "")),
        )
        for line in lines
    ]
    headers = ("ID", "AGE", "SIZE", "TOKENS", "STATE", "PROJECT", "TITLE")
    ui.print_table(headers, rows, {"AGE", "SIZE", "TOKENS"}, drops=("SIZE", "PROJECT", "STATE", "AGE", "TOKENS"))


def _short(project: str) -> str:
    """Two last parts of a folder say which one it is; of a long name the end."""
    name = "/".join(project.replace("\\", "/").rstrip("/").split("/")[-2:])
    return name if len(name) <= PROJECT_CHARS else f"…{name[1 - PROJECT_CHARS :]}"
