"""`foldmark report`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.main import run
from core.testing import Transcript


@pytest.fixture
def both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """A session, and what a compaction made of it."""
    made = Transcript().beside("custom-title", customTitle="A <b>title</b>\x1b[2J")
    for n in range(8):
        made.prompt(f"Never touch config{n}.toml").use("Read", "line\n" * 600, file_path=f"src/mod{n}.py")
        made.answer(f"I changed src/mod{n}.py. " * 5)
    path = made.write(tmp_path / "11111111-1111-4111-8111-111111111111.jsonl")
    assert run(["compact", str(path), "--keep", "1000", "--json"]) == 0
    return str(path), json.loads(capsys.readouterr().out)["output"]


def test_both_bars_and_what_went_where_are_printed(both: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", *both]) == 0

    out = capsys.readouterr().out
    assert "A <b>title</b> [2J" in out
    assert "before  11111111-1111-4111-8111-111111111111  32 messages" in out
    assert "next request, warm cache: $" in out
    assert "What you asked for: 8 of 8 word for word (100%)" in out
    assert "What goes on to hold: 8 of 8 word for word (100%)" in out
    assert "still named: " in out
    assert "0 gone" in out
    legends = [line.split("  ")[0] for line in out.splitlines() if line[:2] in ("██", "▓▓", "▒▒") and "·" not in line]
    assert len(legends) > len(set(legends)), "a kind has one shade in both bars"
    assert len({line[3:] for line in legends}) == 3
    assert not re.search(r" 0 +0\.0%$|^gone +0", out, re.MULTILINE)


def test_the_result_alone_names_its_source(both: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", both[1], "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert run(["report", *both, "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == alone
    assert set(alone) == {
        "before", "after", "places", "largest", "requests", "constraints", "names", "reachable", "gone",
        "fidelity",
        "warnings",
    }  # fmt: skip


def test_what_the_summary_is_worth_is_said(
    both: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", *both]) == 0
    assert "The summary: 100% of its names, figures and quotations hold, 100% of what must be known is said" in (
        capsys.readouterr().out
    )
    bad = tmp_path / "bad.jsonl"
    text = "It is in src/made_up.py. All tests pass. " + " ".join(f"`made_up_{n}`" for n in range(20))
    Transcript("44444444-4444-4444-8444-444444444444").prompt("x").boundary(text).prompt("Go on.").write(bad)

    assert run(["report", both[0], str(bad)]) == 0

    out = capsys.readouterr().out
    assert "The summary: 0% of its names" in out
    assert "not so         tests: All tests pass." in out
    assert "found nowhere  path: src/made_up.py" in out
    assert "more (--json lists them)" in out


def test_names_that_were_lost_are_listed(
    both: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Transcript("33333333-3333-4333-8333-333333333333").prompt("x").answer("y").write(tmp_path / "other.jsonl")

    assert run(["report", both[0], str(other)]) == 0
    assert "not named any more: src/mod7.py" in capsys.readouterr().out


def test_a_page_is_written(both: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"

    assert run(["report", both[1], "--html", str(page)]) == 0
    assert f"written: {page}" in capsys.readouterr().out
    assert "<h1>A &lt;b&gt;title&lt;/b&gt;" in page.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_an_error(
    both: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", both[1], "--html", str(tmp_path / "none" / "report.html")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_no_file_is_written_over(both: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(both[0]).read_bytes()

    assert run(["report", *both, "--html", both[0]]) == 1
    err = capsys.readouterr().err
    assert "File exists" in err
    assert "take another name" in err
    assert Path(both[0]).read_bytes() == before


def test_one_conversation_of_several_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(Path(__file__).parents[2] / "data" / "foreign" / "claude-ai-export" / "conversations.json")
    after = tmp_path / "chat.json"
    after.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}))
    assert run(["report", path, str(after), "--pick", "1"]) == 0
    assert "What you asked for" in capsys.readouterr().out
    assert run(["report", path, str(after)]) == 2


def test_a_session_compared_with_itself_has_lost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": [{"role": "assistant", "content": "hi"}]}))

    assert run(["report", str(path), str(path)]) == 0
    out = capsys.readouterr().out
    assert "warning: both hold the same messages" in out
    assert "all tokens are counted as in before" in out
    assert "next request" not in out
    assert "What you asked for" not in out
    assert "not named any more" not in out


def test_nothing_to_show_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "22222222-2222-4222-8222-222222222222.jsonl"
    path.write_text('{"type":"user","uuid":"u","message":{"role":"user","content":[]}}\n')

    assert run(["report", str(path), str(path)]) == 0
    assert "The largest parts" not in capsys.readouterr().out
