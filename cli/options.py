"""What several commands take: `--json`, sessions, and the settings that belong to this process."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from core.model import JSON
    from core.settings import Settings
    from core.transcript.projects import SessionFile

F = TypeVar("F", bound=Callable[..., Any])

STDIN = "-"


def json_option(function: F) -> F:
    """Add `--json`: the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def settings(**overrides: JSON) -> Settings:
    """Load the settings of this process; overrides come from the command line, None means not given."""
    from platformdirs import user_config_path

    from core.settings import load

    user_dir = user_config_path("foldmark", appauthor=False)
    return load(os.environ, home=Path.home(), project_dir=Path.cwd(), user_dir=user_dir, overrides=overrides)


def find(ctx: click.Context, name: str, claude_dir: Path) -> SessionFile:
    """Find the one transcript that SESSION stands for; "-" is standard input.

    Raises SessionNotFound.
    """
    from core.transcript.locate import locate

    return locate(_spooled(ctx) if name == STDIN else name, claude_dir, Path.cwd())


def find_all(ctx: click.Context, names: Iterable[str], claude_dir: Path) -> list[SessionFile]:
    """Find all transcripts that the arguments stand for: sessions, folders, patterns, "-".

    Raises SessionNotFound for an argument that stands for none.
    """
    from core.transcript.locate import expand

    return expand([_spooled(ctx) if name == STDIN else name for name in names], claude_dir, Path.cwd())


def _spooled(ctx: click.Context) -> str:
    """Keep standard input in a file of its own until the command ends: transcripts are read from both ends."""
    if sys.stdin.isatty():
        raise click.UsageError("standard input is a terminal: pipe a transcript into it", ctx)
    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="foldmark-"))
    path = Path(folder) / "stdin.jsonl"
    with path.open("wb") as file:
        copyfileobj(sys.stdin.buffer, file)
    return str(path)


def state_dir() -> Path:
    """The folder for what only this machine needs to know: locks, the log of unexpected errors."""
    from platformdirs import user_state_path

    return user_state_path("foldmark", appauthor=False)
