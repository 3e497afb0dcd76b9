"""Is everything in place."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.hosts.base import Launch, Machine
from core.service.doctor import Check, DoctorReport, doctor
from core.settings import load
from core.testing import SESSION_ID, Transcript

SERVER = Launch(sys.executable, ("-c", 'for line in open(0): print(\'{"id": 2, "result": {}}\', flush=True)'))


@pytest.fixture
def claude_dir(tmp_path: Path) -> Path:
    Transcript().prompt("Hello").write(tmp_path / "claude" / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    return tmp_path / "claude"


def examined(tmp_path: Path, **overrides: str | int) -> DoctorReport:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    settings = load(env, home=tmp_path, project_dir=tmp_path, user_dir=tmp_path, overrides=overrides)
    return doctor(settings, [tmp_path / "state" / "foldmark"], Machine("linux", tmp_path / "home"), SERVER)


def named(report: DoctorReport, name: str) -> Check:
    return next(check for check in report.checks if check.name == name)


def test_all_is_well(tmp_path: Path, claude_dir: Path) -> None:
    report = examined(tmp_path)

    assert report.ok
    assert named(report, "transcripts").message == f"1 session in {claude_dir}"
    assert named(report, "open sessions").message == "0 open in a client now"
    assert named(report, "model table").message == "the built-in one"
    assert named(report, "own folder").state == "ok"
    assert not (tmp_path / "state").exists()  # looking makes nothing


def test_each_setting_says_where_it_comes_from(tmp_path: Path, claude_dir: Path) -> None:
    lines = {line.name: (line.value, line.origin) for line in examined(tmp_path, keep_tokens=5).settings}

    assert lines["claude_dir"] == (str(claude_dir), "CLAUDE_CONFIG_DIR")
    assert lines["keep_tokens"] == ("5", "command line")
    assert lines["restore_files"] == ("5", "default")


def test_no_sessions_are_no_problem(tmp_path: Path) -> None:
    report = examined(tmp_path)
    assert report.ok
    assert named(report, "transcripts").state == "note"
    assert "CLAUDE_CONFIG_DIR" in named(report, "transcripts").advice


def test_open_sessions_are_counted(tmp_path: Path, claude_dir: Path) -> None:
    (claude_dir / "sessions").mkdir()
    (claude_dir / "sessions" / "1.json").write_text(f'{{"pid": {os.getppid()}, "sessionId": "x"}}', encoding="utf-8")
    assert named(examined(tmp_path), "open sessions").message == "1 open in a client now"


def test_a_broken_model_table_is_a_problem(tmp_path: Path, claude_dir: Path) -> None:
    table = tmp_path / "models.json"
    table.write_text("{", encoding="utf-8")
    report = examined(tmp_path, models_file=str(table))
    assert not report.ok
    assert named(report, "model table").state == "problem"
    assert str(table) in named(report, "model table").message

    table.write_text("{}", encoding="utf-8")
    assert named(examined(tmp_path, models_file=str(table)), "model table").message == str(table)


def test_a_folder_that_cannot_be_written_is_a_problem(
    tmp_path: Path, claude_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path)
    report = examined(tmp_path)
    assert not report.ok
    assert "XDG_STATE_HOME" in named(report, "own folder").advice


def test_hosts_are_named_and_one_that_cannot_read_its_settings_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "home" / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text("{,}")
    report = examined(tmp_path)

    assert [h.host for h in report.hosts if h.found] == ["cursor"]
    assert not report.ok
    assert next(c for c in report.checks if c.name == "Cursor").state == "problem"


def test_the_server_is_asked(tmp_path: Path) -> None:
    assert named(examined(tmp_path), "server").message == "answers, with 0 tools"


def test_a_server_that_does_not_start_is_a_problem(tmp_path: Path) -> None:
    settings = load({}, home=tmp_path, project_dir=tmp_path, user_dir=tmp_path)
    report = doctor(settings, [tmp_path], Machine("linux", tmp_path), Launch("/nowhere", ("serve",)))

    assert not report.ok
    assert named(report, "server").advice.endswith("/nowhere serve")


def test_settings_that_are_wrong_are_problems_and_the_rest_is_shown(tmp_path: Path) -> None:
    project, user = tmp_path / "home" / "project", tmp_path / "user"
    for folder, text in ((project, "keep_token = 5\nkeep_tokens = 7\nrestore_files = -1"), (user, "restore_files = 3")):
        folder.mkdir(parents=True)
        (folder / "foldmark.toml").write_text(text)
    faults: list[SettingsError] = []
    env = {"FOLDMARK_KEEP_TOKENS": "many"}
    settings = load(env, home=tmp_path / "home", project_dir=project, user_dir=user, faults=faults)

    report = doctor(settings, [tmp_path], Machine("linux", tmp_path), SERVER, faults)

    said = {check.message.rpartition(": ")[2]: check.advice for check in report.checks if check.name == "settings"}
    assert said == {
        "keep_tokens cannot be 'many'": "allowed: a whole number from 0 to 1,000,000,000, in digits alone, like 60000",
        "restore_files cannot be -1": "allowed: a whole number from 0 to 1,000,000,000",
        "there is no setting 'keep_token'": "did you mean keep_tokens?",
    }
    assert not report.ok
    values = {line.name: (line.value, Path(line.origin).parent) for line in report.settings}
    assert (values["keep_tokens"], values["restore_files"]) == (("7", project), ("3", user)), "the next layer's"


def test_a_variable_that_means_nothing_is_noted_with_the_one_that_was_meant(tmp_path: Path) -> None:
    env = {
        "FOLDMARK_KEEP_TOKEN": "60",
        "FOLDMARK_KEEP_TOKENS": "60",
        "FOLDMARK_OF_ANOTHER_PROGRAM_X": "1",
        "FOLDMARK_TOKEN": "s",
        "FOLDING": "1",
    }
    settings = load(env, home=tmp_path, project_dir=tmp_path, user_dir=tmp_path)

    report = doctor(settings, [tmp_path], Machine("linux", tmp_path, env), SERVER)

    first, second = (check for check in report.checks if check.name == "settings")
    assert (first.message, first.advice) == (
        "there is no variable FOLDMARK_KEEP_TOKEN",
        "did you mean FOLDMARK_KEEP_TOKENS?",
    )
    assert second.message == "there is no variable FOLDMARK_OF_ANOTHER_PROGRAM_X"
    assert second.advice.startswith("known: FOLDMARK_TOKEN, FOLDMARK_CLAUDE_DIR, ")
    assert (first.state, second.state) == ("note", "note")


@pytest.mark.parametrize("text", ["[", "summarizer = 'claude'"])
def test_a_file_of_settings_that_is_wrong_as_a_whole_is_a_problem(tmp_path: Path, text: str) -> None:
    (tmp_path / "foldmark.toml").write_text(text)
    faults: list[SettingsError] = []
    load({}, home=tmp_path.parent, project_dir=tmp_path, user_dir=tmp_path.parent, faults=faults)

    assert [str(tmp_path / "foldmark.toml") in str(fault) for fault in faults] == [True]
