"""`foldmark output`: what a session holds or ever held, by id."""

from __future__ import annotations

import re

import click

from cli import options, process, ui
from core.report.words import WHERE, part_name
from core.service.history import TextList, output, outputs
from core.service.session import opened

_LINES = re.compile(r"(\d{0,12}):(\d{0,12})\Z|(\d{1,12})\Z")
_END = 1 << 62


class Lines(click.ParamType[tuple[int, int]]):
    """A range of lines: 10:20, 10:, :20; one line: 10."""

    name = "lines"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """From and to, both counted from 1 and included."""
        found = _LINES.match(str(value))
        if found is None:
            self.fail(f"{value!r} is no range: write 10:20, 10:, :20 or 10", param, ctx)
        return int(found[3] or found[1] or 1), int(found[3] or found[2] or _END)


@click.command()
@click.argument("session", type=options.SessionName())
@click.argument("ident", metavar="[ID]", default="")
@click.option("--lines", type=Lines(), metavar="A:B", help="Only these lines.")
@click.option("--grep", default="", metavar="RE", help="Only lines that match this regular expression.")
@options.pick_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context, session: str, ident: str, lines: tuple[int, int] | None, grep: str, pick: str, as_json: bool
) -> None:
    """Print the text of ID (a tool result's or a message's, or the start of one); without ID, list them all in order.

    Also what is no longer in the context: compacted, stored, or in the transcript that this one was made of.
    """
    if not ident and (lines or grep):
        raise click.UsageError("--lines and --grep are for the text of one ID; foldmark search looks in all", ctx)
    with opened(options.find(ctx, session, process.settings().claude_dir, pick), whole=True) as found:
        if not ident:
            listed = outputs(found)
            if as_json:
                ui.emit(listed)
            else:
                _print_list(listed)
            return
        result = output(found, ident, lines, grep)
    if as_json:
        ui.emit(result)
    elif lines and lines[0] > result.total_lines:
        ui.echo(f"{result.id} has {ui.count(result.total_lines, 'line')}", err=True)
    elif grep and not result.text:
        ui.echo("no line matches", err=True)
    else:
        ui.echo(result.text)


def _print_list(listed: TextList) -> None:
    rows = [(o.id, part_name(o.kind, o.name), o.where, ui.tokens(o.chars), o.begin) for o in listed.outputs]
    ui.print_table(("ID", "WHAT", "WHERE", "CHARS", "BEGINS WITH"), rows, {"CHARS"}, drops=("WHERE", "CHARS"))
    places = [f"{where}, {WHERE[where]}" for where in WHERE if any(o.where == where for o in listed.outputs)]
    ui.echo(f"WHERE: {'; '.join(places)}", err=True)
