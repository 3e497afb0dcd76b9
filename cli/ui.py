"""How things look: figures for people, tables, the context bar, progress.

What is piped is plain text, one record a line; what is on a terminal fits its width, and is in colour.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from core.context.tokens import words
from core.report import words as report_words

if TYPE_CHECKING:
    from core.model import JSON
    from core.results import Result

_UNSEEN = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_CONTROL = re.compile(rf"[\x00-\x1f{_UNSEEN}]+")
_LEFT_BY_JSON = re.compile(f"[{_UNSEEN}]")
TITLE_CHARS = 80
"""Of a title in a line, of which a terminal shows 80 to 200."""
LEAST_COLUMNS = 12
"""Of a column that gives way: less of a title or of a name tells nothing."""
_GAP = "  "
_BESIDE_LABEL = 19
"""Columns of a line of the legend: the shade, the tokens, the share."""
_LOOKS = {
    "results": ("█", "cyan"),
    "system": ("▓", "green"),
    "tool_use": ("▒", "magenta"),
    "text": ("░", "yellow"),
    "thinking": ("▚", "blue"),
    "summary": ("▞", "red"),
    "prompt": ("▄", "bright_magenta"),
    "meta": ("▖", "bright_yellow"),
    "command": ("▘", "bright_blue"),
    "attachment": ("▌", "bright_green"),
}
"""Of each kind, so that it looks the same in each bar."""
_OTHER = ("▪", "white")

tokens, count = words.tokens, report_words.count


def plain(text: str) -> str:
    """Take out what could steer a terminal: transcripts hold what any program or page once printed."""
    return _CONTROL.sub(" ", text)


def printable(text: str) -> str:
    """As `plain`, but the lines and tabs of the text stay."""
    return "\n".join(plain(line.replace("\t", "    ")) for line in text.split("\n"))


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines that may hold what a transcript said; in what has colours of ours, `plain` the foreign parts."""
    click.echo(printable(text), err=err)


def print_found(place: str, text: str) -> None:
    """Print where a text stands, and the text: piped on one line, on a terminal below each other, within its width."""
    place, text = plain(place), plain(text)
    if not sys.stdout.isatty():
        click.echo(f"{place}  {text}")
        return
    from rich.console import Console
    from rich.text import Text

    width = get_terminal_size().columns
    console = Console(width=width)
    for line in Text(place).wrap(console, width):
        click.secho(line.plain.rstrip(), bold=True)
    for line in Text(text.strip()).wrap(console, max(1, width - len(_GAP))):
        click.echo(f"{_GAP}{line.plain}".rstrip())


def size(count_bytes: int) -> str:
    """Write a number of bytes: 950 B, 1.4 MB."""
    value, power = float(count_bytes), 0
    while value >= 999.5 and power < 4:
        value, power = value / 1_000, power + 1
    unit = ("B", "kB", "MB", "GB", "TB")[power]
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.1f} {unit}"


def age(seconds: float) -> str:
    """Write a span of time in one unit: 5 s, 12 min, 3 h, 4 d, 7 mo, 2 y."""
    for unit, length in (("y", 31_557_600), ("mo", 2_629_800), ("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


def print_json(value: JSON, one_line: bool = False) -> None:
    """Print one JSON document: on one line for a program, or when it is one of many; indented for a person."""
    indent = 2 if sys.stdout.isatty() and not one_line else None
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    click.echo(_LEFT_BY_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def emit(result: Result, one_line: bool = False) -> None:
    """Print a result as JSON."""
    print_json(result.to_json(), one_line)


def title(text: str) -> str:
    """Write a title so that it can stand in a line: on one line, and not longer than that."""
    text = plain(text)
    return text if len(text) <= TITLE_CHARS else text[: TITLE_CHARS - 1] + "…"


def quoted(text: str) -> str:
    """As `title`, where something of ours follows."""
    return f"“{title(text)}”"


def columns(most: int, beside: int = 0) -> int:
    """How many columns something may take that has `beside` others in its line: `most`, less on a narrow terminal."""
    return max(1, min(most, get_terminal_size().columns - beside)) if sys.stdout.isatty() else most


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str] = (),
    shrinks: str = "",
    drops: Sequence[str] = (),
    least: int = LEAST_COLUMNS,
) -> None:
    """Print rows under headers; the columns named in `right` hold figures.

    On a terminal that is too narrow one column gives way, `shrinks` (the last by default), and no other: figures
    and ids are whole or of no use.  Where it would have fewer than `least` columns, and so tell nothing, those named in
    `drops` are left out, as many as needed, in that order.
    """
    from rich.cells import cell_len, set_cell_size

    shrinks = shrinks or headers[-1]
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = {header: max(cell_len(row[i]) for row in (headers, *rows)) for i, header in enumerate(headers)}
    enough = min(widths[shrinks], least)
    left = [*drops]
    while left and columns(enough, beside=_beside(widths, shrinks)) < enough:
        del widths[left.pop(0)]
    shown = [i for i, header in enumerate(headers) if header in widths]
    widths[shrinks] = max(columns(widths[shrinks], beside=_beside(widths, shrinks)), cell_len(shrinks))
    for row in (headers, *rows):
        cells = []
        for header, cell in ((headers[i], row[i]) for i in shown):
            width = widths[header]
            cut = cell if cell_len(cell) <= width else set_cell_size(cell, width - 1) + "…"
            blanks = " " * (width - cell_len(cut))
            cells.append(blanks + cut if header in right else cut + blanks)
        line = _GAP.join(cells).rstrip()
        click.echo(click.style(line, bold=True) if row is headers else line)


def _beside(widths: Mapping[str, int], header: str) -> int:
    """How many columns all others take, with the gaps."""
    return sum(widths.values()) - widths[header] + len(_GAP) * (len(widths) - 1)


def context_bar(by_kind: Mapping[str, int], window_tokens: int, mark_tokens: int = 0, most: int = 60) -> str:
    """Draw what fills a window: a bar of at most `most` cells, and a line for each kind, with its share of all.

    `by_kind` are tokens, `mark_tokens` is the place of a threshold.  All together is to scale, and what is less than a
    cell may have none; a kind of nothing has no line; what does not fit the window is cut, the legend says it all.
    """
    from core.context.tokens.ledger import shared

    width = columns(most)
    there = {kind: amount for kind, amount in by_kind.items() if amount}
    looks = {kind: _LOOKS.get(kind, _OTHER) for kind in there}
    scale, used = max(window_tokens, 1), sum(there.values())
    cells = shared([*there.values()], _cells(used, scale, width))
    bar = "".join(looks[kind][0] * n for kind, n in zip(there, cells, strict=True)).ljust(width, "·")
    if mark_tokens:
        at = min(round(min(mark_tokens, scale) / scale * width), width - 1)
        bar = f"{bar[:at]}│{bar[at + 1 :]}"
    colours = dict(looks.values())
    lines = ["".join(_coloured(cell, colours.get(cell)) for cell in bar)]
    labels = {kind: plain(report_words.KINDS.get(kind, kind)) for kind in there}
    label_width = columns(max(map(len, labels.values()), default=0), beside=_BESIDE_LABEL)
    for kind, amount in there.items():
        shade, colour = looks[kind]
        label = labels[kind] if len(labels[kind]) <= label_width else f"{labels[kind][: label_width - 1]}…"
        lines.append(
            f"{_coloured(shade * 2, colour)} {label:{label_width}}  {tokens(amount):>6}  {amount / used:>6.1%}"
        )
    return "\n".join(lines)


def _cells(part: int, whole: int, width: int) -> int:
    """How many of `width` cells a share of a whole has: of something at least one."""
    return max(round(min(part, whole) / whole * width), min(part, 1))


def _coloured(text: str, colour: str | None) -> str:
    return click.style(text, fg=colour) if colour else text


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show on stderr, on a terminal only, how many of `total` are done; the callable counts one and names it."""
    if not sys.stderr.isatty() or total < 2:
        yield lambda _name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    shown = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda name: bar.update(task, advance=1, description=f"{label} {plain(name)}")


def meter(part: int, whole: int, beside: int, most: int = 50) -> str:
    """Draw a share of a whole as a bar of at most `most` cells, which has `beside` columns of text in its line."""
    width = columns(most, beside)
    filled = _cells(part, max(1, whole), width)
    return "█" * filled + "·" * (width - filled)
