"""`foldmark memory`: what it prints, the caps through the real SDK, and the commands of its page."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.main import run
from core.testing import ScriptedApi, Transcript, answers
from core.testing.api import Reaction

Capture = pytest.CaptureFixture[str]
PAGE = Path(__file__).parents[3] / "docs" / "memory.md"
NOTED = answers.text(
    json.dumps(
        {
            "operations": [
                {"op": "add", "section": "decisions", "text": "Headers first", "sources": ["m1"]},
                {"op": "add", "section": "constraints", "text": "Never said by anybody"},
            ]
        }
    )
)


def session(number: int, turns: int = 6) -> Transcript:
    made = Transcript(f"{number:08x}-0000-4000-8000-000000000000")
    for turn in range(turns):
        made.prompt(f"Step {turn} of {number}").use("Read", f"line {turn}\n" * 2_000, file_path=f"/m{turn}.py")
        made.answer(f"Module {turn} is fine.")
    return made


@pytest.fixture
def projects(scratch_home: Path) -> Path:
    """A client's folder with three sessions that nobody works in."""
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    for number in range(3):
        path = session(number).write(folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl")
        os.utime(path, (time.time() - 7_200 - number, time.time() - 7_200 - number))
    return folder


@pytest.fixture
def one(projects: Path) -> Path:
    return projects / "00000000-0000-4000-8000-000000000000.jsonl"


def asked(monkeypatch: pytest.MonkeyPatch, script: Sequence[Reaction], *args: str, code: int = 0) -> ScriptedApi:
    with ScriptedApi(script) as api:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        assert run(["memory", *args]) == code
    return api


def test_notes_are_shown_and_updated(one: Path, capsys: Capture) -> None:
    assert run(["memory", "show", str(one)]) == 0
    assert capsys.readouterr().out.startswith("“Step 0 of 0”: no notes yet\nnot noted yet: 24 messages (")
    assert run(["memory", "update", str(one)]) == 0
    assert re.match(r"“Step 0 of 0”: noted 24 messages \(\S+ tokens\) in \d+ changes: /", capsys.readouterr().out)
    assert run(["memory", "update", str(one)]) == 0
    assert capsys.readouterr().out == "“Step 0 of 0”: nothing is new\n"
    assert run(["memory", "show", str(one)]) == 0
    out = capsys.readouterr().out
    assert "## Goal\n- [g1-1] (first) Step 0 of 0" in out
    assert out.splitlines()[-1].startswith("up to date: /")


def test_the_same_as_json(one: Path, capsys: Capture) -> None:
    assert run(["memory", "update", str(one), "--json"]) == 0
    assert run(["memory", "show", str(one), "--json"]) == 0
    done, view = map(json.loads, capsys.readouterr().out.splitlines())

    assert (done["changed"], done["messages"], done["calls"], done["refused"]) == (True, 24, 0, [])
    assert (view["exists"], view["updates"], view["unseen_messages"]) == (True, 1, 0)
    assert view["session"]["id"] == one.stem


def test_a_timer_hears_of_what_was_done_and_nothing_else(projects: Path, capsys: Capture) -> None:
    assert run(["memory", "refresh", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert run(["memory", "refresh", "--all", "--json"]) == 0
    assert capsys.readouterr() == ("", "")


def test_only_idle_sessions_of_the_last_days_are_refreshed(projects: Path, capsys: Capture) -> None:
    (new, *_), now = sorted(projects.glob("*.jsonl")), time.time()
    os.utime(new, (now, now))
    assert run(["memory", "refresh", "--all", "--idle", "50m", "--since", "1h"]) == 0
    assert capsys.readouterr().out == ""
    assert run(["memory", "refresh", "--all", "--idle", "50m", "--since", "2d", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(["memory", "refresh", str(new), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"]["path"] == str(new)


@pytest.mark.parametrize("args", [[], ["--all", "x"]])
def test_sessions_are_named_or_all_are_meant(projects: Path, args: list[str], capsys: Capture) -> None:
    assert run(["memory", "refresh", *args]) == 2
    assert "name sessions, or take --all" in capsys.readouterr().err


def test_a_model_is_asked_only_on_request_and_what_it_makes_up_is_refused(
    one: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert asked(monkeypatch, [NOTED], "update", str(one)).requests == []
    capsys.readouterr()
    session(0, turns=12).write(one)
    api = asked(monkeypatch, [NOTED], "update", str(one), "--summarizer", "anthropic", "--model", "claude-haiku-4-5")

    assert ", 1 refused, 1 call of a model: " in capsys.readouterr().out
    assert api.requests[0].body["model"] == "claude-haiku-4-5"
    sent = str(api.requests[0].body["messages"])
    assert "Step 6 of 0" in sent
    assert "line 0" not in sent.partition("The new part of the session")[2]
    assert "Headers first" in (one.with_suffix("") / "session-memory" / "notes.md").read_text("utf-8")


def test_a_cap_on_tokens_ends_the_run_and_the_next_one_goes_on(
    projects: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    args = ("refresh", "--all", "--summarizer", "anthropic", "--json")
    first = asked(monkeypatch, [NOTED] * 9, *args, "--max-tokens", "12k")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    second = asked(monkeypatch, [NOTED] * 9, *args)
    third = asked(monkeypatch, [NOTED] * 9, *args)

    assert len(first.requests) == 1
    assert ["error" in line for line in lines] == [False, True]
    assert "cap of 12,000 tokens" in lines[1]["error"]["message"]
    assert len(second.requests) == 2
    assert third.requests == []


def test_a_cap_on_money_holds_before_the_first_call(
    projects: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    api = asked(monkeypatch, [NOTED], "refresh", "--all", "--summarizer", "anthropic", "--max-usd", "0.0001")

    assert api.requests == []
    assert "cap of $0.0001" in capsys.readouterr().err


def test_a_cap_on_time_ends_the_run(projects: Path, capsys: Capture) -> None:
    assert run(["memory", "refresh", "--all", "--max-time", "0s"]) == 0
    assert capsys.readouterr().out == ""


def test_without_a_key_it_says_so_and_fails(projects: Path, capsys: Capture) -> None:
    assert run(["memory", "refresh", "--all", "--summarizer", "anthropic"]) == 1
    err = capsys.readouterr().err
    assert "there is no key for the model API" in err
    assert "name another summariser: claude, extractive" in err


def test_one_broken_session_is_named_and_the_others_are_done(projects: Path, capsys: Capture) -> None:
    broken = sorted(projects.glob("*.jsonl"))[1].with_suffix("")
    broken.mkdir()
    (broken / "session-memory").symlink_to("/", target_is_directory=True)

    assert run(["memory", "refresh", "--all"]) == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err.startswith(f"{broken}.jsonl: error: ")
    assert run(["memory", "refresh", "--all", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "Damaged"


def test_a_file_that_is_no_session_is_an_error_only_where_it_is_named(projects: Path, capsys: Capture) -> None:
    (projects / "other.jsonl").write_text("nothing of that kind\n" * 2_000, encoding="utf-8")

    assert run(["memory", "refresh", str(projects / "other.jsonl")]) == 1
    capsys.readouterr()
    assert run(["memory", "refresh", "--all"]) == 0
    assert capsys.readouterr().err == ""


def test_the_cadence_can_be_set(projects: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FOLDMARK_MEMORY_FIRST_TOKENS", "500000")
    assert run(["memory", "refresh", "--all"]) == 0
    assert capsys.readouterr().out == ""


def test_the_commands_of_the_page_do_what_it_says(
    projects: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:crontab|ini)?\n(.*?)```", text, re.DOTALL)
    commands = re.findall(r"foldmark (.+)", "\n".join(blocks))
    monkeypatch.chdir(projects)

    assert len(commands) == 7
    with ScriptedApi([NOTED] * 9) as api:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        for command in commands:
            assert run(shlex.split(command)) == 0, command
    assert "Step 0 of 0" in capsys.readouterr().out


def test_alone_it_shows_its_commands_whole(capsys: Capture) -> None:
    assert run(["memory"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Usage: foldmark memory")
    assert re.search(r"^  refresh  Update the notes of many sessions: for a timer\.$", captured.out, re.MULTILINE)
    assert "..." not in captured.out.split("Commands:")[1]
    assert captured.err == ""
