"""What several commands take: `--json`, sessions, where results go."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from cli import process
from core.defaults import MOST

if TYPE_CHECKING:
    from core.transcript.projects import SessionFile
    from core.transcript.reader import Reading

F = TypeVar("F", bound=Callable[..., Any])

STDIN = "-"
_COMPLETED = 200
"""Sessions that Tab knows: what else there is, one finds by a list."""
_TOKENS = re.compile(r"(\d{1,12}(?:\.\d+)?)([kKmM]?)\Z")
_SPAN = re.compile(r"(\d{1,9})\s*(s|m|h|d)\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class TokenCount(click.ParamType[int]):
    """A number of tokens: 20000, 20,000, 20k, 1.5M."""

    name = "tokens"

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        found = _TOKENS.match(str(value).replace(",", "").replace("_", ""))
        if found is None:
            self.fail(f"{value!r} is no number of tokens: write 20000, 20k or 1.5M", param, ctx)
        count = round(float(found[1]) * _UNITS[found[2].lower()])
        return _within(self, count, self.least, MOST, param, ctx)


class Count(click.ParamType[int]):
    """How many of something: a whole number."""

    name = "number"

    def __init__(self, least: int = 0, most: int = MOST) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        text = str(value).strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            self.fail(f"{value!r} is no whole number", param, ctx)
        return _within(self, int(text), self.least, self.most, param, ctx)


def _within(
    kind: click.ParamType[int],
    count: int,
    least: int,
    most: int,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> int:
    if not least <= count <= most:
        bound = f"less than {least:,}" if count < least else f"more than {most:,}"
        kind.fail(f"{count:,} is {bound}", param, ctx)
    return count


class Dollars(click.ParamType[float]):
    """An amount of money, more than none."""

    name = "dollars"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The amount."""
        text = str(value).strip().removeprefix("$")
        if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]*)?|\.[0-9]+", text) or not float(text):
            self.fail(f"{value!r} is no amount above 0: write 0.50 or 2", param, ctx)
        return float(text)


class Span(click.ParamType[float]):
    """A span of time such as 50m or 3h."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        found = _SPAN.match(str(value))
        if found is None:
            unit = ", which has no unit" if str(value).isdigit() else ""
            self.fail(f"{value!r} is no span of time{unit}: write 50m, 3h, 2d", param, ctx)
        return float(int(found[1]) * _SECONDS[found[2]])


class Name(click.Choice[str]):
    """One of several names; whoever writes another one is told which are near."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """As for every choice, and what may have been meant."""
        said = super().get_invalid_choice_message(value, ctx)
        from difflib import get_close_matches

        near = get_close_matches(str(value).casefold(), self.choices)
        return f"{said} Did you mean {' or '.join(near)}?" if near else said


class SessionName(click.ParamType[str]):
    """What a session is named by; Tab completes the ids of the newest, and paths where none begins so."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """The ids, with the titles that shells show beside them."""
        from cli import ui
        from core.errors import FoldmarkError
        from core.service.sessions import list_sessions

        item = click.shell_completion.CompletionItem
        with suppress(FoldmarkError):
            lines = list_sessions(process.settings().claude_dir, limit=_COMPLETED).sessions
            if found := [item(at.id, help=ui.title(at.title)) for at in lines if at.id.startswith(incomplete)]:
                return found
        return [item(incomplete, type="file")]


def json_option(function: F) -> F:
    """Add `--json`: the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def json_lines_option(function: F) -> F:
    """Add `--json` to a command that takes several sessions."""
    shown = "Print JSON: one document, or one line per session."
    return click.option("--json", "as_json", is_flag=True, help=shown)(function)


def pick_option(function: F) -> F:
    """Add `--pick`: the parameter `pick`."""
    shown = "Which conversation of a file that holds several: its id, title or number."
    return click.option("--pick", default="", metavar="NAME", help=shown)(function)


def out_option(shown: str) -> Callable[[F], F]:
    """Add `--out`: the parameter `out_dir`."""
    return click.option("--out", "out_dir", type=click.Path(path_type=Path, file_okay=False), help=shown)


def target_options(function: F) -> F:
    """Add `--out`, `--in-place` and `--dry-run`: the parameter `target`."""

    @out_option("Folder for what is new.")
    @click.option("--in-place", is_flag=True, help="Append to the transcript itself; its old rows stay.")
    @click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
    @wraps(function)
    def with_target(*args: Any, out_dir: Path | None, in_place: bool, dry_run: bool, **given: Any) -> Any:
        from core.service.operation import Target

        if in_place and out_dir:
            raise click.UsageError("--in-place and --out exclude each other", click.get_current_context())
        target = Target(process.lock_dir(), out_dir, in_place, dry_run, clock=time.time)
        return function(*args, target=target, **given)

    return cast("F", with_target)


def find(
    ctx: click.Context, name: str, claude_dir: Path, pick: str = "", *, writes_beside: bool = False
) -> SessionFile:
    """Find the one transcript that SESSION stands for; "-" is standard input, `pick` one conversation in it.

    `writes_beside`: the result goes to the folder of the transcript, which standard input has not.
    Raises SessionNotFound, UsageError.
    """
    from core.transcript.locate import locate

    if name == STDIN:
        return replace(locate(_spooled(ctx, writes_beside), claude_dir, Path.cwd()), piped=True, pick=pick)
    return replace(locate(name, claude_dir, Path.cwd()), pick=pick)


@contextmanager
def read_ahead(name: str) -> Iterator[Reading | None]:
    """Have SESSION, if it is a long file, read by a second process while the rest of the program loads."""
    from core.errors import InputError
    from core.transcript.reader import Reading

    try:
        reading = Reading(Path.cwd() / name)
    except (InputError, ValueError):  # no file: an id, a title, "-"
        yield None
        return
    with closing(reading):
        reading.begin()
        yield reading


def find_all(
    ctx: click.Context, names: Iterable[str], claude_dir: Path, pick: str = "", *, writes_beside: bool = False
) -> list[SessionFile]:
    """Find all transcripts that the arguments stand for: sessions, folders, patterns, "-"; with `pick` it must be one.

    `writes_beside` is as for `find`.  Raises SessionNotFound for an argument that stands for none, UsageError.
    """
    from core.transcript.locate import expand

    names = list(names)
    spooled = _spooled(ctx, writes_beside) if STDIN in names else ""
    files = expand([spooled if name == STDIN else name for name in names], claude_dir, Path.cwd())
    if pick and len(files) > 1:
        raise click.UsageError(f"--pick is for one file, and these are {len(files)}", ctx)
    return [replace(file, piped=str(file.path) == spooled, pick=pick) for file in files]


def sessions_argument(function: F) -> F:
    """Add SESSIONS and `--all`: the parameters `sessions` and `all_sessions`, which `chosen` takes."""
    shown = "All sessions of all projects."
    return click.argument("sessions", nargs=-1, type=SessionName())(
        click.option("--all", "all_sessions", is_flag=True, help=shown)(function)
    )


def chosen(
    ctx: click.Context,
    names: Sequence[str],
    all_sessions: bool,
    claude_dir: Path,
    pick: str = "",
    *,
    writes_beside: bool = False,
) -> list[SessionFile]:
    """Find what SESSIONS and `--all` stand for: one of them has to be given.  Raises as `find_all`."""
    from core.transcript.projects import session_files

    if all_sessions == bool(names):
        raise click.UsageError("name sessions, or take --all", ctx)
    if all_sessions and pick:
        raise click.UsageError("--pick is for one file: name it", ctx)
    return (
        session_files(claude_dir)
        if all_sessions
        else find_all(ctx, names, claude_dir, pick, writes_beside=writes_beside)
    )


def _spooled(ctx: click.Context, writes_beside: bool) -> str:
    """Keep standard input in a file of its own until the command ends: transcripts are read from both ends."""
    if writes_beside:
        raise click.UsageError("what comes from standard input has no folder of its own: name one with --out", ctx)
    if sys.stdin is None:
        raise click.UsageError("standard input is closed: pipe a transcript into it", ctx)
    if sys.stdin.isatty():
        raise click.UsageError("standard input is a terminal: pipe a transcript into it", ctx)
    import tempfile
    from shutil import copyfileobj

    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="foldmark-"))
    path = Path(folder) / "stdin.jsonl"
    with path.open("wb") as file:
        copyfileobj(sys.stdin.buffer, file)
    return str(path)
