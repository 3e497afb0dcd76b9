"""`foldmark simulate`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from cli.main import run
from core.testing import Transcript

CASE = Path(__file__).parents[2] / "data" / "cases" / "cache-1.jsonl"


def test_a_person_sees_a_table_and_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    shutil.copyfile(CASE, path)
    before = path.read_bytes()

    assert run(["simulate", str(path), "--model", "claude-opus-4-6", "--repeat", "2", "--ttl", "1h"]) == 0

    out = capsys.readouterr().out
    assert "2 times over  claude-opus-4-6, cache for 1h" in out
    assert "With 20.0k tokens read again after a compaction" in out
    assert out.count("microcompact-pinned") == 2
    assert out.splitlines()[-1] == "no policy costs at least 1% less than none"
    assert "█" in out
    assert "+0.0%" in out
    assert path.read_bytes() == before


def test_the_cheapest_policy_is_named_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Transcript()
    for turn in range(20):
        made.prompt(f"Step {turn}").use("Bash", f"line {turn}\n" * 1_500, command=f"make {turn}").answer("Fine.")

    assert run(["simulate", str(made.write(tmp_path / "a.jsonl"))]) == 0

    *_, line, last = capsys.readouterr().out.splitlines()
    found = re.fullmatch(r"(\S+) costs least, (\d+\.\d)% less than none: (.+)", line)
    assert found
    assert "the same" not in found[3], "it says what it is by itself"
    assert re.fullmatch(r"what the client did was charged still less: -\d\d\.\d%", last)
    assert run(["simulate", str(tmp_path / "a.jsonl"), "--json"]) == 0
    results = [r for r in json.loads(capsys.readouterr().out)["results"] if r["policy"] != "client"]
    best = min(results, key=lambda r: r["input_equivalents"])
    assert (found[1], found[2]) == (best["policy"], f"{-best['change'] * 100:.1f}")


@pytest.mark.parametrize(
    ("model", "hint"), [("claude-opus-45", "did you mean claude-opus-4-5?"), ("nope", "the setting models_file names")]
)
def test_a_model_of_which_nothing_is_known_is_refused(
    model: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(CASE), "--model", model]) == 2

    assert (
        f"error: nothing is known of a model {model}, no prices and no window\nhint: {hint}" in capsys.readouterr().err
    )


def test_policies_have_their_whole_names_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")

    assert run(["simulate", str(CASE)]) == 0

    out = capsys.readouterr().out
    assert out.count("microcompact-pinned") == out.count("microcompact-public") == 2


def test_the_help_explains_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--help"]) == 0
    shown = capsys.readouterr().out.split("Policies:\n")[1]
    assert run(["simulate", str(CASE), "--json"]) == 0
    policies = {r["policy"] for r in json.loads(capsys.readouterr().out)["results"]}
    assert policies == {line.split()[0] for line in shown.splitlines()}


def test_a_title_is_shown_and_an_unknown_price_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    title = '{"type":"custom-title","customTitle":"The \\u001b[1m title"}\n'
    path.write_bytes(title.encode() + CASE.read_bytes())

    assert run(["simulate", str(path)]) == 0

    out = capsys.readouterr().out
    assert "title" in out.splitlines()[0]
    assert "\x1b" not in out
    assert "$" not in out
    assert "(prices unknown), cache for" in out
    assert "times over" not in out


def test_a_program_gets_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(CASE), "--json", "--reread", "0", "--reread", "5000"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert [*found] == [
        "session", "model", "cache_life", "auto_threshold_tokens", "overhead_tokens", "repeats", "requests", "results",
    ]  # fmt: skip
    assert {r["reread_tokens"] for r in found["results"]} == {0, 5_000}
    assert {r["policy"] for r in found["results"]} >= {"none", "all", "keep-3", "microcompact", "client"}


def test_what_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(CASE), "--ttl", "2h"]) == 2
    assert run(["simulate", str(CASE), "--reread", "-1"]) == 2
    assert run(["simulate", "/nowhere.jsonl"]) == 2


def test_a_session_without_a_title_has_no_line_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"assistant","uuid":"a","message":{"role":"assistant","content":"ho"}}\n', encoding="utf-8")

    assert run(["simulate", str(path)]) == 0

    assert capsys.readouterr().out.splitlines()[0].startswith("a  1 requests")
