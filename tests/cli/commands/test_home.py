"""`foldmark` alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.main import run
from core.transcript.projects import SessionFile, project_slug, session_file

HEAD = {"uuid": "u", "parentUuid": None, "timestamp": "2026-01-05T09:00:00.000Z", "sessionId": "s"}


@pytest.fixture
def here(scratch_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which seven sessions were started; the project folder of the client."""
    working = tmp_path / "shop"
    working.mkdir()
    monkeypatch.chdir(working)
    folder = scratch_home / ".claude" / "projects" / project_slug(str(working))
    folder.mkdir(parents=True)
    for number in range(7):
        write(folder / f"{number}.jsonl", f"task {number}", number)
    return folder


def write(path: Path, text: str, when: int) -> None:
    row = {"type": "user", "cwd": str(Path.cwd()), "message": {"role": "user", "content": text}, **HEAD}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    os.utime(path, (when, when))


def test_it_shows_the_newest_of_this_folder_what_fills_it_and_what_to_do(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([]) == 0

    out = capsys.readouterr().out
    assert f"of {Path.cwd()}" in out
    assert [f"task {number}" in out for number in range(7)] == [False, False, True, True, True, True, True]
    assert "prompts" in out
    assert "foldmark compact 6 --dry-run" in out
    assert "the newest 5 of 7; foldmark sessions shows more" in out


def test_without_sessions_of_this_folder_it_shows_those_of_all(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert len(found["sessions"]) == 5
    assert found["newest"]["session"]["id"] == "6"
    assert found["folder"] == ""
    assert run([]) == 0
    assert "of all folders" in capsys.readouterr().out


def test_a_session_without_a_conversation_is_listed_but_not_measured(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "8.jsonl").write_bytes(b"")

    assert run(["--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["sessions"][0]["id"], found["newest"]["session"]["id"]) == ("8", "6")


def test_a_session_that_goes_away_meanwhile_is_passed_over(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: Path) -> SessionFile:
        if path.name == "6.jsonl":
            raise FileNotFoundError(2, "gone", str(path))
        return session_file(path)

    monkeypatch.setattr("core.service.home.session_file", gone)

    assert run(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["newest"]["session"]["id"] == "5"


def test_without_any_session_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("there is no session in ")
    assert "examples/session.jsonl" in out
    assert run(["--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "sessions": [],
        "more": False,
        "total": 0,
        "folder": "",
        "newest": None,
    }
