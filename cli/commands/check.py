"""`foldmark check`: damage, and a copy without it."""

from __future__ import annotations

from pathlib import Path

import click

from cli import options, process, ui
from cli.errors import report_one
from core.service.check import CheckResult, check
from core.service.session import opened
from core.transcript.projects import SessionFile


@click.command()
@click.argument("sessions", nargs=-1, required=True, type=options.SessionName())
@click.option("--repair", is_flag=True, help="Write a repaired copy of each damaged one, as a new session.")
@options.out_option("Folder for the copies.")
@options.pick_option
@options.json_lines_option
@click.pass_context
def command(
    ctx: click.Context, sessions: tuple[str, ...], repair: bool, out_dir: Path | None, pick: str, as_json: bool
) -> int:
    """Check SESSIONS (names, files, folders, patterns) for damage: what, on which line, and how it is read.

    Exit code 1 when one of them is damaged (0 once a copy without damage was written) or cannot be read.
    """
    if out_dir and not repair:
        raise click.UsageError("--out is where --repair writes: give both", ctx)
    files = options.find_all(ctx, sessions, process.settings().claude_dir, pick, writes_beside=repair and not out_dir)
    failed = 0
    with ui.progress("checking", len(files)) as step:
        for file in files:
            step(file.path.name)
            failed += not _checked(file, repair, out_dir, as_json, len(files) > 1)
    return 1 if failed else 0


def _checked(file: SessionFile, repair: bool, out_dir: Path | None, as_json: bool, many: bool) -> bool:
    try:
        with opened(file, whole=True) as session:
            result = check(session, (out_dir or file.path.parent) if repair else None)
    except Exception as error:  # what is wrong with one session must not end the others
        if not many:
            raise
        report_one(file.path, error, as_json)
        return False
    if as_json:
        ui.emit(result, one_line=many)
    else:
        _print(result, repair)
    return result.ok or (bool(result.output) and not result.left)


def _print(result: CheckResult, repair: bool) -> None:
    damage = sum(f.damage for f in result.findings)
    name = f" {ui.quoted(result.session.title)}" if result.session.title else ""
    ui.echo(f"{result.session.path}{name}: {'no damage' if result.ok else ui.count(damage, 'finding')}")
    for finding in result.findings:
        place = f"line {finding.line}" if finding.line else "file"
        repaired = f" (repair: {finding.repaired})" if finding.repaired else ""
        note = "" if finding.damage else " (no damage)"
        ui.echo(f"  {place}: {finding.kind}: {ui.plain(finding.message)}{repaired}{note}")
    if result.output:
        ui.echo(f"repaired copy{', already there' if result.already_there else ''}: {result.output}")
    if repair and result.left:
        ui.echo(f"no repair for {ui.count(result.left, 'finding')}: what foldmark compact writes is without them")
