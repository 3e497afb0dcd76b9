"""What commands share: sessions by name, standard input."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from cli import options
from cli.main import foldmark, run
from core.errors import SessionNotFound
from core.testing import Transcript


class Input:
    """Standard input with bytes behind it."""

    def __init__(self, content: bytes, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(content)
        self.isatty = lambda: terminal


def test_standard_input_is_kept_until_the_command_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"{}\n"))

    with click.Context(click.Command("x")) as ctx:
        found = options.find(ctx, "-", tmp_path)
        assert found.path.read_bytes() == b"{}\n"
        assert found.piped

    assert not found.path.exists()


def test_of_several_files_it_is_known_which_was_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Input(b"{}\n"))

    with click.Context(click.Command("x")) as ctx:
        found = options.find_all(ctx, ["a.jsonl", "-"], tmp_path)
        assert [(file.id, file.piped) for file in found] == [("a", False), ("stdin", True)]


def test_a_terminal_is_no_transcript(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"", terminal=True))

    with click.Context(click.Command("x")) as ctx, pytest.raises(click.UsageError):
        options.find_all(ctx, ["-"], tmp_path)


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("20000", 20_000), ("20,000", 20_000), ("20k", 20_000), ("1.5M", 1_500_000)]
)
def test_numbers_of_tokens_are_written_as_people_do(text: str, count: int) -> None:
    assert options.TokenCount().convert(text, None, None) == count


@pytest.mark.parametrize("text", ["", "-1", "k", "20kk", "many", "39k", "1001M", "999999999999M"])
def test_what_is_no_number_of_tokens_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        options.TokenCount(40_000).convert(text, None, None)


def test_names_are_found_from_the_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    monkeypatch.chdir(tmp_path)

    with click.Context(click.Command("x")) as ctx:
        assert options.find(ctx, "a.jsonl", tmp_path).path == tmp_path / "a.jsonl"
        assert [file.id for file in options.find_all(ctx, ["*.jsonl"], tmp_path)] == ["a"]
        with pytest.raises(SessionNotFound):
            options.find(ctx, "b.jsonl", tmp_path)


def test_what_comes_from_standard_input_cannot_be_taken_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"{}\n"))

    assert run(["undo", "-"]) == 2
    assert "name the session" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("50m", 3_000), ("3 h", 10_800), ("2d", 172_800)])
def test_spans_of_time_have_a_unit(text: str, seconds: float) -> None:
    assert options.Span().convert(text, None, None) == seconds


@pytest.mark.parametrize(("text", "said"), [("5", "which has no unit"), ("soon", "no span of time: write 50m")])
def test_what_is_no_span_of_time_is_refused(text: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=said):
        options.Span().convert(text, None, None)


@pytest.mark.parametrize(("text", "count"), [("1", 1), (" 20 ", 20), ("+7", 7)])
def test_a_count_is_a_whole_number(text: str, count: int) -> None:
    assert options.Count(1, 20).convert(text, None, None) == count


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x", "'x' is no whole number"),
        ("1.5", "'1.5' is no whole number"),
        ("9" * 5_000, "is no whole number"),
        ("0", "0 is less than 1"),
        ("-3", "-3 is less than 1"),
        ("2000000000", "2,000,000,000 is more than 1,000,000,000"),
    ],
)
def test_a_wrong_count_is_refused_with_its_bound(text: str, wrong: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(wrong)):
        options.Count(1).convert(text, None, None)


@pytest.mark.parametrize(("text", "dollars"), [("2", 2.0), ("0.50", 0.5), (".5", 0.5), ("$3.", 3.0)])
def test_money_is_written_as_people_do(text: str, dollars: float) -> None:
    assert options.Dollars().convert(text, None, None) == dollars


@pytest.mark.parametrize("text", ["x", "nan", "inf", "0", "0.00", "-1", "1e9", ""])
def test_no_money_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no amount above 0"):
        options.Dollars().convert(text, None, None)


def completed(*words: str) -> list[tuple[str, str, str | None]]:
    *args, incomplete = words
    known = ShellComplete(foldmark, {}, "foldmark", "_FOLDMARK_COMPLETE").get_completions(args, incomplete)
    return [(item.value, item.type, item.help) for item in known]


@pytest.mark.parametrize("command", ["context", "compact", "report"])
def test_tab_completes_the_ids_of_sessions_and_else_paths(command: str, scratch_home: Path) -> None:
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    for digit in "12":
        session = f"{digit}1111111-1111-4111-8111-111111111111"
        Transcript(session).prompt(f"Task\n{digit}").answer("x").write(folder / f"{session}.jsonl")

    assert completed(command, "2") == [("21111111-1111-4111-8111-111111111111", "plain", "Task 2")]
    assert len(completed(command, "")) == 2
    assert completed(command, "./a") == [("./a", "file", None)]


def test_tab_is_silent_where_a_setting_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDMARK_KEEP_TOKENS", "many")

    assert completed("context", "1") == [("1", "file", None)]
