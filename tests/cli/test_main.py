"""The command line's frame: the table of commands, errors, exit codes, output that survives."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from cli import main
from cli.errors import describe
from core.errors import Damaged, IdNotFound, SessionNotFound

ROOT = Path(__file__).parents[2]


def foldmark(*args: str, env: dict[str, str] | None = None, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a process of its own, the way an installed command starts."""
    command = [sys.executable, str(ROOT / "foldmark.py"), *args]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **(env or {})}, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A command `faulty` that raises what is put in the list."""
    errors: list[BaseException] = []

    @click.command()
    @click.option("--json", "as_json", is_flag=True)
    def command(as_json: bool) -> None:
        raise errors[0]

    original = main.LazyGroup.get_command

    def get_command(self: main.LazyGroup, ctx: click.Context, name: str) -> click.Command | None:
        return command if name == "faulty" else original(self, ctx, name)

    monkeypatch.setattr(main.LazyGroup, "get_command", get_command)
    return errors


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_of_the_list_is_there_and_says_what_it_does(name: str) -> None:
    command = import_module(main.COMMANDS[name][0]).command

    assert command.name in ("command", name)
    assert command.help


@pytest.mark.parametrize("name", sorted({*main.COMMANDS} - {"serve", "hook"}))  # those speak the protocol of a host
def test_every_command_prints_json_on_request(name: str) -> None:
    command: click.Command = import_module(main.COMMANDS[name][0]).command
    commands = command.commands.values() if isinstance(command, click.Group) else [command]

    assert all(any("--json" in parameter.opts for parameter in one.params) for one in commands)


def test_listing_the_commands_loads_none(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import sys, foldmark, cli.main; cli.main.run(['--help']); print([m for m in sys.modules if 'pydantic' in m])"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT, text=True)

    assert all(name in result.stdout for name in main.COMMANDS)
    assert result.stdout.endswith("[]\n")


def test_help_and_completion_know_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["-h"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in main.COMMANDS)
    assert main.foldmark.list_commands(click.Context(main.foldmark)) == list(main.COMMANDS)


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    from core import __version__

    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"foldmark {__version__}\n"


def test_a_near_name_is_suggested_and_wrong_usage_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["session"]) == 2
    assert "sessions" in capsys.readouterr().err


def test_an_unknown_option_before_the_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--none"]) == 2
    assert "hint: foldmark --help" in capsys.readouterr().err


def test_wrong_usage_with_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["sessions", "--json", "--limit", "x"]) == 2

    captured = capsys.readouterr()
    assert set(json.loads(captured.out)["error"]) == {"kind", "message", "hint"}
    assert captured.err == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [(SessionNotFound("none", "look"), 2), (IdNotFound("none", "look"), 2), (Damaged("torn", "look"), 1)],
)
def test_our_own_errors_say_what_and_what_next(
    faulty: list[BaseException], capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    faulty.append(error)

    assert main.run(["faulty"]) == code
    assert capsys.readouterr().err == f"error: {error}\nhint: look\n"


def test_an_option_of_the_program_is_not_passed_over_before_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--json", "sessions"]) == 2

    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["message"]) == ("UsageError", "--json goes behind sessions")


def test_a_fault_leaves_a_private_log_and_no_traceback(
    faulty: list[BaseException], capsys: pytest.CaptureFixture[str], scratch_home: Path
) -> None:
    faulty.append(KeyError("lost"))

    assert main.run(["faulty"]) == 1

    error = capsys.readouterr().err
    assert "Traceback" not in error
    log = Path(error.rpartition("the traceback is in ")[2].strip())
    assert log.is_relative_to(scratch_home)
    assert "KeyError: 'lost'" in log.read_text(encoding="utf-8")
    assert log.stat().st_mode & 0o777 == 0o600
    made = [folder for folder in log.parents if folder.is_relative_to(scratch_home) and folder != scratch_home]
    assert {folder.stat().st_mode & 0o777 for folder in made} == {0o700}


def test_a_fault_whose_log_cannot_be_written_is_still_a_message(
    faulty: list[BaseException], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    faulty.append(KeyError("lost"))

    assert main.run(["faulty", "--json"]) == 1
    assert "could not be kept" in json.loads(capsys.readouterr().out)["error"]["hint"]


def test_an_interruption_is_no_fault(faulty: list[BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    faulty.append(KeyboardInterrupt())

    assert main.run(["faulty"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "/srv/x"), "Permission denied: /srv/x"),
        (OSError("odd"), "odd"),
        (click.ClickException("no"), "no"),
        (click.UsageError("no"), "no"),
    ],
)
def test_what_the_system_says_is_passed_on(error: Exception, message: str) -> None:
    assert describe(error)[1] == message


def test_an_error_without_a_hint_has_one_line(faulty: list[BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    faulty.append(OSError("odd"))

    assert main.run(["faulty"]) == 1
    assert capsys.readouterr().err == "error: odd\n"


def test_a_commands_own_exit_code_is_kept(faulty: list[BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    faulty.append(click.exceptions.Exit(1))

    assert main.run(["faulty"]) == 1


@pytest.mark.parametrize("args", [["sessions"], ["sessions", "--json", "--none"]])
def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path, args: list[str]) -> None:
    project = tmp_path / "home" / ".claude" / "projects" / "-srv-app"
    project.mkdir(parents=True)
    for number in range(3):
        (project / f"{number}.jsonl").write_text("{}", encoding="utf-8")
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, str(ROOT / "foldmark.py"), *args]

    result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)

    os.close(write_end)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("rest", "code", "said"),
    [
        ("sessions >&-", 0, ""),
        ("sessions 2>&-", 0, ""),
        ("sessions --none 2>&-", 2, ""),
        ("sessions --json >/dev/full", 1, "No space left on device"),
        ("sessions --json --none >/dev/full", 1, "No space left on device"),
        ("sessions --json >/dev/full 2>/dev/full", 1, ""),
        ("view - <&-", 2, "standard input is closed"),
    ],
)
def test_outputs_and_inputs_that_are_closed_or_full_end_without_a_traceback(rest: str, code: int, said: str) -> None:
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'foldmark.py'))} {rest}"

    result = subprocess.run(["sh", "-c", command], capture_output=True, check=False, text=True)

    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["sessions", "--limit", "9" * 20],
        ["search", "x", "y", "--limit", "9" * 20],
        ["compact", "x", "--idle", "9" * 400 + "d"],
        ["compact", "x", "--idle", "9" * 5_000],
        ["view", "x", "--client", "2.1." + "9" * 5_000],
        ["output", "x", "y", "--lines", "9" * 5_000],
        ["output", "x", "y", "--lines", ":" + "9" * 5_000],
        ["check", "a**b"],
        ["check", "/a**b"],
    ],
)
def test_numbers_and_patterns_that_nothing_can_be_are_wrong_usage(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(args) == 2
    assert "fault in Foldmark" not in capsys.readouterr().err


def test_any_text_is_printed_whatever_the_locale(tmp_path: Path) -> None:
    project = tmp_path / "home" / ".claude" / "projects" / "-srv-app"
    project.mkdir(parents=True)
    row = {"type": "custom-title", "customTitle": "größe \N{ROCKET}"}
    (project / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")

    result = foldmark("sessions", env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})

    assert result.returncode == 0
    assert "größe \N{ROCKET}" in result.stdout.decode()


def test_packages_of_the_same_names_elsewhere_are_not_run(tmp_path: Path) -> None:
    for name in ("core", "cli", "mcp_server"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package')", encoding="utf-8")

    for command in ([str(ROOT / "foldmark.py")], ["-c", "import foldmark; foldmark.main()"], ["-m", "foldmark"]):
        env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
        run = [sys.executable, *command, "--version"]
        result = subprocess.run(run, capture_output=True, check=False, env=env, cwd=tmp_path, text=True)
        assert (result.returncode, result.stderr) == (0, "")


def test_an_interrupt_while_the_program_loads_ends_it_without_a_traceback() -> None:
    program = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name not in ("foldmark", "__future__"):
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupts())
import foldmark
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False)

    assert (result.returncode, result.stderr) == (-signal.SIGINT, b"")


def test_colours_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")

    with main.foldmark.make_context("foldmark", ["sessions", "--help"]) as ctx, pytest.raises(click.exceptions.Exit):
        main.foldmark.invoke(ctx)

    assert ctx.color is False
