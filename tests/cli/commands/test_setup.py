"""`foldmark setup`: shown, asked, made, taken back."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.main import foldmark, run
from core.hosts.known import HOSTS


@pytest.fixture
def config(scratch_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "")
    path = scratch_home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}}')
    return path


def test_the_change_is_shown_and_made_when_a_person_agrees(config: Path) -> None:
    result = CliRunner().invoke(foldmark, ["setup", "cursor"], input="y\n")

    assert result.exit_code == 0
    assert '+    "foldmark": {' in result.stdout
    assert "Make this change?" in result.stderr
    assert f"written to {config}" in result.stdout
    assert "foldmark setup cursor --remove" in result.stdout
    entry = json.loads(config.read_text())["mcpServers"]["foldmark"]
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["args"][0]).is_file()
    assert entry["args"][1] == "serve"


def test_the_server_is_told_where_sessions_are(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CliRunner().invoke(foldmark, ["setup", "cursor", "--yes"])
    assert "env" not in json.loads(config.read_text())["mcpServers"]["foldmark"]

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/data/claude")
    CliRunner().invoke(foldmark, ["setup", "cursor", "--yes"])

    entry = json.loads(config.read_text())["mcpServers"]["foldmark"]
    assert entry["env"] == {"CLAUDE_CONFIG_DIR": "/data/claude"}


def test_nothing_is_done_when_a_person_does_not(config: Path) -> None:
    result = CliRunner().invoke(foldmark, ["setup", "cursor"], input="n\n")

    assert "nothing was changed" in result.stdout
    assert config.read_text() == '{"mcpServers": {}}'


def test_it_is_taken_out_again(config: Path) -> None:
    CliRunner().invoke(foldmark, ["setup", "cursor", "--yes"])
    result = CliRunner().invoke(foldmark, ["setup", "cursor", "--remove", "--yes"])

    assert f"taken out of {config}" in result.stdout
    assert "now start Cursor anew: the server is gone then" in result.stdout
    assert config.read_text() == '{"mcpServers": {}}'
    assert "is not registered" in CliRunner().invoke(foldmark, ["setup", "cursor", "--remove"]).stdout


def test_a_second_time_there_is_nothing_to_do(config: Path) -> None:
    CliRunner().invoke(foldmark, ["setup", "cursor", "--yes"])

    assert "is registered already" in CliRunner().invoke(foldmark, ["setup", "cursor"]).stdout
    assert json.loads(CliRunner().invoke(foldmark, ["setup", "cursor", "--json"]).stdout)["changed"] is False


def test_a_dry_run_writes_nothing(config: Path) -> None:
    result = CliRunner().invoke(foldmark, ["setup", "cursor", "--dry-run", "--json"])

    assert json.loads(result.stdout)["changed"] is False
    assert "foldmark" in json.loads(result.stdout)["diff"]
    assert config.read_text() == '{"mcpServers": {}}'


def test_a_dry_run_says_what_it_would_write(config: Path) -> None:
    result = CliRunner().invoke(foldmark, ["setup", "cursor", "--dry-run"])

    assert result.stdout.endswith(f"\n\ndry run: would write {config}\n")


def test_where_nobody_is_there_the_error_has_a_line_of_its_own(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())

    assert run(["setup", "cursor"]) == 2
    assert "[y/N]: \nerror: nobody is there" in capsys.readouterr().err


def test_the_help_lists_the_hosts(config: Path) -> None:
    shown = CliRunner().invoke(foldmark, ["setup", "--help"]).stdout

    assert shown.startswith("Usage: foldmark setup [OPTIONS] HOST\n")
    assert [line.split()[0] for line in shown.partition("Hosts:\n")[2].splitlines()] == [*HOSTS]


def test_json_does_not_ask(config: Path) -> None:
    assert CliRunner().invoke(foldmark, ["setup", "cursor", "--json"]).exit_code == 2
    assert json.loads(CliRunner().invoke(foldmark, ["setup", "cursor", "--json", "--yes"]).stdout)["changed"] is True


def test_a_hosts_own_program_is_run(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/said\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}")
    result = CliRunner().invoke(foldmark, ["setup", "codex", "--yes"])

    assert "by Codex's own command" in result.stdout
    assert (tmp_path / "said").read_text().startswith("mcp add foldmark -- ")


def test_a_program_that_cannot_be_run_does_no_harm(
    config: Path, scratch_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/nowhere/at/all\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}")
    CliRunner().invoke(foldmark, ["setup", "codex", "--yes"])

    assert "[mcp_servers.foldmark]" in (scratch_home / ".codex" / "config.toml").read_text()


def test_whoever_cannot_be_asked_is_told_what_to_add(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(foldmark, ["setup", "cursor"], input="")

    assert result.exit_code == 2
    assert "add --yes" in result.stderr
    with monkeypatch.context() as closed:
        closed.setattr("sys.stdin", None)
        with pytest.raises(click.UsageError, match="add --yes"):
            foldmark.main(["setup", "cursor"], standalone_mode=False)
    assert config.read_text() == '{"mcpServers": {}}'


def test_a_near_name_is_suggested() -> None:
    assert "Did you mean cursor?" in CliRunner().invoke(foldmark, ["setup", "curser"]).stderr
    assert "Did you mean" not in CliRunner().invoke(foldmark, ["setup", "emacs"]).stderr


def test_interrupted_at_a_terminal_is_interrupted(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.commands.setup._has_terminal", lambda: True)

    assert CliRunner().invoke(foldmark, ["setup", "cursor"], input="").exit_code == 1
    assert config.read_text() == '{"mcpServers": {}}'
