"""How figures, tables and the bar look."""

from __future__ import annotations

import json
import sys

import click
import pytest
from rich.cells import cell_len

from cli import ui
from core.report import words as report_words


def uncoloured(text: str) -> list[str]:
    return click.unstyle(text).splitlines()


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (0, "0"), (999, "999"), (1_000, "1.0k"), (99_949, "99.9k"), (181_234, "181k"), (999_500, "1.0M")],
)
def test_tokens_are_short(count: int | None, text: str) -> None:
    assert ui.tokens(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (2_076_883, "2.1 MB"),
        (180_000_000, "180 MB"),
        (10**16, "10000 TB"),
    ],
)
def test_sizes_are_short(count: int, text: str) -> None:
    assert ui.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (7_200, "2 h"), (86_400, "1 d"), (5_000_000, "1 mo"), (1e8, "3 y")],
)
def test_ages_have_one_unit(seconds: float, text: str) -> None:
    assert ui.age(seconds) == text


def test_nothing_in_a_transcript_steers_the_terminal() -> None:
    assert ui.plain("a\x1b]0;title\x07b\r\n\u202ec\x9b") == "a ]0;title b c "


def test_what_is_printed_is_clean_line_by_line_and_json_says_it_in_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    ui.echo("written: /srv/a\x1b]0;t\x07\n\tb\u2028\u061cc\x9b")
    ui.echo("error: \x1b[8m", err=True)
    assert capsys.readouterr() == ("written: /srv/a ]0;t \n    b c \n", "error:  [8m\n")

    ui.print_json({"a\x1b": "\x9b2J\x7f\u202e\u2029ä"})
    out = capsys.readouterr().out
    assert out == '{"a\\u001b": "\\u009b2J\\u007f\\u202e\\u2029ä"}\n'
    assert json.loads(out) == {"a\x1b": "\x9b2J\x7f\u202e\u2029ä"}


def test_a_piped_table_is_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    ui.print_table(("NAME", "N"), [("a\nb", "1"), ("c", "200")], {"N"})

    assert capsys.readouterr().out == "NAME    N\na b     1\nc     200\n"


def test_a_terminals_table_shows_markup_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")

    ui.print_table(("NAME", "N"), [("[red]x[/red]", "1"), ("y" * 100, "2")], {"N"}, shrinks="NAME")

    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "…" in out
    assert all(len(line) <= 40 for line in uncoloured(out))


@pytest.mark.parametrize("width", [20, 40, 80, 140])
def test_on_a_terminal_only_one_column_gives_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))

    ui.print_table(("ID", "TOKENS", "TITLE"), [("0123456789ab", "181k", "長い" * 60), ("b", "2", "t")], {"TOKENS"})

    header, first, last = uncoloured(capsys.readouterr().out)
    assert header.split() == ["ID", "TOKENS", "TITLE"]
    assert first.startswith("0123456789ab    181k  ")
    assert first.endswith("…")
    assert last == "b                  2  t"
    assert cell_len(first) <= max(width, 27)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, ["ID", "SIZE", "AGE", "TITLE"]),
        (38, ["ID", "SIZE", "AGE", "TITLE"]),
        (37, ["ID", "AGE", "TITLE"]),
        (29, ["ID", "TITLE"]),
        (10, ["ID", "TITLE"]),
    ],
)
def test_on_a_narrow_terminal_columns_are_left_out_before_names_tell_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, shown: list[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))

    ui.print_table(("ID", "SIZE", "AGE", "TITLE"), [("12345678", "1.2 MB", "10 min", "t" * 30)], drops=("SIZE", "AGE"))
    header, line = uncoloured(capsys.readouterr().out)
    assert header.split() == shown
    assert len(line) <= max(width, 15)

    ui.print_table(("ID", "SIZE", "AGE", "TITLE"), [("12345678", "1.2 MB", "10 min", "short")], drops=("SIZE", "AGE"))
    assert len(uncoloured(capsys.readouterr().out)[0].split()) >= len(shown), "a short name needs no more room"


def test_a_title_has_one_line_and_at_most_80_characters() -> None:
    assert ui.title("a\nb") == "a b"
    assert ui.title("x" * 81) == "x" * 79 + "…"


def test_bars_are_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")

    assert uncoloured(ui.context_bar({"results": 50}, 100))[0] == "█" * 10 + "·" * 10
    assert ui.meter(50, 100, beside=10) == "█" * 5 + "·" * 5
    monkeypatch.setenv("COLUMNS", "5")
    assert ui.meter(50, 100, beside=10) == "█"


def test_a_text_that_was_found_is_within_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, text = "toolu_1:3 (Bash result, stored)", f"  {'日本' * 20} and a [b]needle\x1b[1m " + "x" * 30
    ui.print_found(place, text)
    assert capsys.readouterr().out == f"{place}  {text.replace(chr(27), ' ')}\n"

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    ui.print_found(place, text)

    lines = uncoloured(capsys.readouterr().out)
    assert max(cell_len(line) for line in lines) <= 30
    assert lines[:2] == ["toolu_1:3 (Bash result,", "stored)"]
    assert all(line.startswith("  ") for line in lines[2:])
    assert "".join("".join(lines[2:]).split()) == "日本" * 20 + "anda[b]needle[1m" + "x" * 30


def test_the_legend_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    _, system, results = uncoloured(ui.context_bar({"system": 18_000, "results": 142_000}, 200_000))

    assert system == "▓▓ system prompt, tools…   18.0k   11.2%"
    assert results == "██ tool results             142k   88.8%"
    assert len(system) == len(results) == 40


def test_json_is_one_line_for_a_program_and_indented_for_a_person(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ui.print_json({"ä": 1})
    assert capsys.readouterr().out == '{"ä": 1}\n'

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    ui.print_json({"ä": 1})
    assert capsys.readouterr().out == '{\n  "ä": 1\n}\n'


def test_the_bar_has_a_cell_for_each_share_and_a_line_for_each_kind() -> None:
    lines = uncoloured(ui.context_bar({"results": 50_000, "text": 10_000}, 100_000, mark_tokens=80_000, most=10))

    assert lines == ["█████░··│·", "██ tool results   50.0k   83.3%", "░░ answers        10.0k   16.7%"]


def test_the_bar_is_to_scale_whatever_it_is_made_of() -> None:
    kinds = {"system": 15_300, "results": 100, "tool_use": 90, "text": 80, "prompt": 30}

    bar, *legend = uncoloured(ui.context_bar(kinds, 200_000))

    assert bar == "▓▓▓▓▓" + "·" * 55, "8% of 60 cells"
    assert len(legend) == len(kinds)


def test_something_has_a_cell_however_little_it_is() -> None:
    assert uncoloured(ui.context_bar({"results": 1}, 10**6, most=4))[0] == "█···"


def test_a_kind_looks_the_same_in_each_bar() -> None:
    kinds = [*report_words.KINDS]
    one = dict.fromkeys(kinds, 100)
    other = dict.fromkeys(reversed(kinds), 100)
    looks = [{*ui.context_bar(by_kind, 1_000).splitlines()[1:]} for by_kind in (one, other)]

    assert looks[0] == looks[1]
    assert len({line[:7] for line in looks[0]}) == len({click.unstyle(line)[:2] for line in looks[0]}) == len(kinds)
    assert uncoloured(ui.context_bar({"new kind": 1}, 1, most=1)) == ["▪", "▪▪ new kind       1  100.0%"]


def test_the_bar_never_grows_over_its_width() -> None:
    assert uncoloured(ui.context_bar({"results": 300, "text": 0}, 100, mark_tokens=500, most=5))[0] == "████│"
    assert uncoloured(ui.context_bar({}, 0, most=3)) == ["···"]
    assert uncoloured(ui.context_bar({"results": 10**300}, 100, mark_tokens=10**300, most=5))[0] == "████│"
    assert ui.meter(10**320, 100, beside=0, most=5) == "█" * 5


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with ui.progress("compacting", 3) as step:
        step("a")

    assert capsys.readouterr() == ("", "")


def test_progress_shows_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    with ui.progress("compacting", 3) as step:
        step("a[b]")

    captured = capsys.readouterr()
    assert "compacting" in captured.err
    assert captured.out == ""
