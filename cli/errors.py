"""What a person, or a program, gets to see of an error."""

from __future__ import annotations

from pathlib import Path

import click

from cli import ui
from core.errors import (
    FoldmarkError,
    IdNotFound,
    SessionNotFound,
    SettingsError,
    StorageError,
    WrongPattern,
    WrongUsage,
)
from core.model import JSON

WORDS = {
    "sessions": "foldmark sessions",
    "search": "foldmark search SESSION",
    "output": "foldmark output SESSION",
    "outputs": "foldmark output SESSION",
    "context": "foldmark context SESSION",
    "proposals": "foldmark snip SESSION --suggest",
    "compact": "foldmark compact SESSION",
    "undo": "foldmark undo SESSION",
    "notes": "foldmark memory update SESSION",
    "strip": "foldmark strip SESSION --bad",
    "media": "foldmark strip SESSION",
    "report": "foldmark report BEFORE AFTER",
    "secrets": "foldmark redact SESSION --check",
    "ask": "foldmark ask SESSION QUESTION",
    "keep": "--keep",
    "up_to": "--up-to",
    "from": "--from",
    "instructions": "--instructions",
    "summary": "the summary",
    "model": "--model",
    "no_fallback": "--no-fallback",
    "force": "--force",
    "in_place": "--in-place",
    "summarizer": "--summarizer",
    "full": "--how full",
    "markdown": "--markdown",
    "pick": "--pick",
}
"""What the command line calls the ways that hints name."""
WRONG_USAGE = (SessionNotFound, SettingsError, IdNotFound, WrongPattern, WrongUsage)
"""What the caller can put right by calling differently: exit code 2, as for a wrong option."""


def report(error: Exception, as_json: bool) -> int:
    """Print an error and return the exit code: to stderr, or with `as_json` as one document to stdout."""
    kind, message, hint, code = describe(error)
    if as_json:
        ui.print_json({"error": {"kind": kind, "message": message, "hint": hint}})
    else:
        ui.echo(f"error: {message}", err=True)
        if hint:
            ui.echo(f"hint: {hint}", err=True)
    return code


def tell(found: FoldmarkError) -> None:
    """Print what is no failure here: what and why, and what to do next."""
    ui.echo(f"{found}\n{found.hint_in(WORDS)}")


def report_one(path: Path, error: Exception, as_json: bool) -> None:
    """Print what is wrong with one of several files, on one line; the others go on."""
    kind, message, hint, _ = describe(error)
    if as_json:
        shown: JSON = {"kind": kind, "message": message, "hint": hint}
        ui.print_json({"session": {"path": str(path)}, "error": shown}, one_line=True)
    else:
        ui.echo(f"{path}: error: {ui.plain(message)}{ui.plain(f'; hint: {hint}') if hint else ''}", err=True)


def describe(error: Exception) -> tuple[str, str, str, int]:
    """Say what an error is: its kind, what and why, what to do next, and the exit code; without secrets."""
    from core.redact.text import redact  # its rules take longer to load than a list of sessions

    kind, message, hint, code = _described(error)
    return kind, redact(message), redact(hint), code


def _described(error: Exception) -> tuple[str, str, str, int]:
    kind = type(error).__name__
    match error:
        case FoldmarkError():
            return kind, str(error), error.hint_in(WORDS), 2 if isinstance(error, WRONG_USAGE) else 1
        case click.ClickException():
            command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "foldmark"
            return kind, error.format_message(), f"{command} --help shows what there is", error.exit_code
        case OSError():
            place = f": {error.filename}" if error.filename else ""
            return kind, f"{error.strerror or error}{place}", "", 1
    return kind, f"a fault in Foldmark: {kind}: {error}", _logged(error), 1


def _logged(error: Exception) -> str:
    """Keep the traceback of the last fault where a report can be made from it; only its owner may read it."""
    import traceback

    from cli.logs import write_log
    from core.redact.text import redact

    try:
        path = write_log("fault.log", redact("".join(traceback.format_exception(error))))
    except (OSError, StorageError) as failure:
        return f"the traceback could not be kept ({failure})"
    return f"the traceback is in {path}"
