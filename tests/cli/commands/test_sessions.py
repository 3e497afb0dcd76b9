"""`foldmark sessions` and `foldmark` alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
import pytest

from cli.main import run


@pytest.fixture
def projects(scratch_home: Path) -> Path:
    """Forty sessions of /srv/app, the newest last by number."""
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    folder.mkdir(parents=True)
    for number in range(40):
        path = folder / f"{number:08}-1111-4111-8111-111111111111.jsonl"
        message = {"content": f"task {number}"}
        path.write_text(json.dumps({"type": "user", "cwd": "/srv/app", "message": message}), encoding="utf-8")
        os.utime(path, (number, number))
    return folder


def test_a_person_sees_the_newest_thirty(projects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions"]) == 0

    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert len(lines) == 31
    assert lines[1].endswith("ready  srv/app  task 39")
    assert captured.err == "the newest 30 of 40; --limit 0 shows all\n"
    assert run(["sessions", "/srv/app", "--limit", "2"]) == 0
    assert capsys.readouterr().err == "the newest 2 of 40; --limit 0 shows all\n"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_long_title_leaves_the_figures_whole(
    projects: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    rows = [
        {"type": "user", "cwd": "/srv/" + "deep" * 20, "message": {"content": "x" * 300}},
        {"type": "assistant", "message": {"usage": {"input_tokens": 181_234}}},
    ]
    text = "\n".join(map(json.dumps, rows))
    (projects / "99999999-1111-4111-8111-111111111111.jsonl").write_text(text, encoding="utf-8")
    assert run(["sessions", "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("  " + "x" * 79 + "…")

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["sessions", "--limit", "1"]) == 0
    header, line = click.unstyle(capsys.readouterr().out).splitlines()
    assert header.split() == ["ID", "AGE", "SIZE", "TOKENS", "STATE", "PROJECT", "TITLE"]
    assert line.startswith("99999999  ")
    assert "  181k  ready  …" in line
    assert line.endswith("x…")
    assert len(line) <= width


def test_of_what_another_client_wrote_it_is_said_which(projects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rollout = Path(__file__).parents[2] / "data" / "foreign" / "codex" / "sample.jsonl"
    (projects / "99999999-1111-4111-8111-111111111111.jsonl").write_bytes(rollout.read_bytes())

    assert run(["sessions", "--limit", "1"]) == 0
    line = capsys.readouterr().out.splitlines()[1].split()
    assert (line[0], line[-4:]) == ("99999999", ["-", "foreign", "-srv-app", "(codex)"])


def test_a_program_gets_all_of_them_with_stable_keys(projects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert len(found["sessions"]) == 40
    assert found["more"] is False
    assert found["sessions"][0] == {
        "id": "00000039-1111-4111-8111-111111111111",
        "path": str(projects / "00000039-1111-4111-8111-111111111111.jsonl"),
        "project": "/srv/app",
        "title": "task 39",
        "updated": "1970-01-01T00:00:39Z",
        "size_bytes": 70,
        "tokens": None,
        "version": "",
        "model": "",
        "state": "ready",
        "format": "claude-code",
    }


def test_a_limit_says_that_there_are_more(projects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "--json", "--limit", "40"]) == 0
    assert json.loads(capsys.readouterr().out)["more"] is False
    assert run(["sessions", "--json", "--limit", "39"]) == 0
    assert json.loads(capsys.readouterr().out)["more"] is True
    assert run(["sessions", "--limit", "0"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 41


def test_a_folder_need_not_exist_any_more(projects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "/srv/app", "--limit", "1"]) == 0
    assert "task 39" in capsys.readouterr().out
    assert run(["sessions", "/srv/other"]) == 2
    assert "there is no folder /srv/other, and no session was started in it" in capsys.readouterr().err


def test_of_a_folder_where_none_was_started_those_that_lie_there_are_listed(
    projects: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["context", str(projects)]) == 2
    assert f"foldmark sessions {projects} lists them" in capsys.readouterr().err
    (projects / "agent-a0.jsonl").write_bytes(b"{}")
    assert run(["sessions", str(projects), "--limit", "0"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 41

    monkeypatch.chdir(tmp_path)
    assert run(["sessions", "."]) == 0
    assert capsys.readouterr().out == (
        f"no session was started in {tmp_path}, and no transcript lies in it\nfoldmark sessions lists all sessions\n"
    )


def test_a_session_that_a_client_has_open_is_live(projects: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry = projects.parents[1] / "sessions" / "1.json"
    registry.parent.mkdir()
    registry.write_text(json.dumps({"pid": os.getppid(), "sessionId": f"{39:08}-1111-4111-8111-111111111111"}), "utf-8")

    assert run(["sessions", "--json"]) == 0
    states = [line["state"] for line in json.loads(capsys.readouterr().out)["sessions"]]
    assert states == ["live"] + ["ready"] * 39


def test_no_sessions_at_all_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions"]) == 0
    said = capsys.readouterr().out
    assert run([]) == 0
    assert capsys.readouterr().out.startswith(said)
    assert run(["context", "latest"]) == 2
    err = capsys.readouterr().err
    assert [line for line in said.splitlines() if line not in err] == []
