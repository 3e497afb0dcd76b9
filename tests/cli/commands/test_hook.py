"""`foldmark hook`: whatever happens, the host goes on."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cli import hook
from cli.main import run
from core.model import JSON
from core.testing import Transcript

ROOT = Path(__file__).parents[3]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return Transcript().prompt("Never push to main.").answer("ok").write(tmp_path / "session.jsonl")


def given(transcript: Path, **fields: JSON) -> bytes:
    return msgspec.json.encode({"transcript_path": str(transcript), **fields})


Start = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def start(scratch_home: Path) -> Start:
    """Runs the program as a host does."""

    def started(*args: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, **more}
        command = [sys.executable, str(ROOT / "foldmark.py"), *args]
        return subprocess.run(command, input=stdin, capture_output=True, env=env, check=False)

    return started


def use(transcript: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Answer for a result of the shell, in this process."""
    raw = given(transcript, tool_name="Bash", tool_use_id="toolu_1", tool_response={"stdout": text})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    return hook.run("PostToolUse")


def logged(home: Path) -> str:
    return "".join(path.read_text() for path in home.rglob(hook.LOG))


def test_an_answer_is_all_that_is_printed(start: Start, transcript: Path) -> None:
    done = start("hook", "PreCompact", stdin=given(transcript))

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"(constraint) [11111111] Never push to main." in done.stdout


def test_a_host_does_not_wait_for_what_only_commands_need() -> None:
    code = "import sys, foldmark; from cli.hook import run; run('PostToolUse'); print('click' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], input=b"{}", capture_output=True, cwd=ROOT, check=True)

    assert done.stdout == b"False\n"


@pytest.mark.parametrize("args", [("hook", "PreCompact", "--json", "extra"), ("hook", "PreCompact", "-x")])
def test_options_that_nobody_knows_are_no_veto(start: Start, transcript: Path, args: tuple[str, ...]) -> None:
    done = start(*args, stdin=given(transcript))

    assert done.returncode == 0
    assert b"Never push to main." in done.stdout


@pytest.mark.parametrize("event", ["PostToolUse", "PreCompact", "SubagentStop", "SessionStart", "Stop", "Unheard", ""])
@pytest.mark.parametrize(
    "stdin",
    [
        b"",
        b"null",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"transcript_path": 7}',
        b'{"transcript_path": "/none\\u0000"}',
    ],
)
def test_no_input_stops_a_host(
    event: str, stdin: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    monkeypatch.setenv("FOLDMARK_RESULT_CHARS", "1")

    assert hook.run(event) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("event", ["PostToolUse", "PreCompact", "SubagentStop", "SessionStart", "Stop"])
@pytest.mark.parametrize("source", ["compact", "resume"])
def test_a_pipe_in_the_place_of_a_transcript_gets_no_answer_at_once(event: str, source: str, tmp_path: Path) -> None:
    pipes = (tmp_path / "s.jsonl", tmp_path / "s" / "subagents" / "agent-a.jsonl", tmp_path / "s" / "compaction.txt")
    pipes[1].parent.mkdir(parents=True)
    for pipe in pipes:
        os.mkfifo(pipe)
    answered: JSON = {"stdout": "x" * 20_000}  # not too much by itself: its transcript is looked at
    stdin = given(
        pipes[0], source=source, agent_id="a", tool_name="Bash", tool_use_id="toolu_1", tool_response=answered
    )
    command = [sys.executable, str(ROOT / "foldmark.py"), "hook", event]

    done = subprocess.run(command, input=stdin, capture_output=True, timeout=20, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_fault_leaves_one_private_line_without_secrets(
    transcript: Path, monkeypatch: pytest.MonkeyPatch, scratch_home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = "AKIA" + "Q7XWZP3M5N8R2T4V"

    def broken(*_: object) -> str:
        raise OSError(f"no\nroom for {key}")

    monkeypatch.setattr("core.service.hooks.answer", broken)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given(transcript))))

    assert hook.run("PreCompact") == 0
    assert capfd.readouterr() == ("", "")
    [line] = logged(scratch_home).splitlines()
    assert " PreCompact OSError: no room for " in line
    assert key not in line
    [path] = scratch_home.rglob(hook.LOG)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_begins_anew_when_it_is_long(monkeypatch: pytest.MonkeyPatch, scratch_home: Path) -> None:
    monkeypatch.setattr(hook, "LOG_BYTES", 200)
    monkeypatch.setattr(sys, "stdin", None)
    for _ in range(20):
        assert hook.run("PreCompact") == 0

    assert 0 < len(logged(scratch_home)) < 500


def test_a_log_that_cannot_be_written_is_no_fault_either(monkeypatch: pytest.MonkeyPatch, scratch_home: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(scratch_home / "file"))
    (scratch_home / "file").write_text("in the way")
    monkeypatch.setattr(sys, "stdin", None)

    assert hook.run("PreCompact") == 0


def test_a_broken_store_lets_the_host_go_on(start: Start, transcript: Path, scratch_home: Path) -> None:
    transcript.with_suffix("").write_text("in the way")
    response: JSON = {"stdout": "x" * 90_000}

    done = start(
        "hook",
        "PostToolUse",
        stdin=given(transcript, tool_name="Bash", tool_use_id="toolu_1", tool_response=response),
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert " PostToolUse " in logged(scratch_home)


def test_a_host_that_does_not_listen_is_no_fault(start: Start, transcript: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(ROOT / "foldmark.py"), "hook", "PreCompact"]
    done = subprocess.run(command, input=given(transcript), stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("text", "variable", "chars", "said"),
    [
        ("result_chars = 3000", "", 3_001, []),
        ("result_chars = 3000", "5000", 5_001, []),
        ("result_chars = 3000", "many", 3_001, ["FOLDMARK_RESULT_CHARS: result_chars cannot be 'many'"]),
        ("result_chars = 3000\nsummary_tokens = 1\ncolour = 1", "", 3_001, []),
        (
            "result_chars = -1\npreview_bytes = 'x'",
            "",
            50_001,
            ["result_chars cannot be -1", "preview_bytes cannot be"],
        ),
        ("= broken", "", 50_001, ["foldmark.toml: "]),
        ("result_chars = 3000\nclaude_dir = '/'", "", 3_001, []),
    ],
)
def test_settings_that_are_wrong_are_left_out_and_those_of_a_hook_logged(
    text: str,
    variable: str,
    chars: int,
    said: list[str],
    transcript: Path,
    scratch_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (scratch_home / "project").mkdir()
    (scratch_home / "project" / "foldmark.toml").write_text(text)
    monkeypatch.chdir(scratch_home / "project")
    monkeypatch.setenv("FOLDMARK_RESULT_CHARS", variable)

    assert use(transcript, "x" * (chars - 1), monkeypatch) == 0
    assert capfd.readouterr() == ("", "")
    lines = logged(scratch_home).splitlines()
    assert len(lines) == len(said)
    for line, words in zip(lines, said, strict=True):
        assert " PostToolUse SettingsError: " in line
        assert words in line
    assert use(transcript, "x" * chars, monkeypatch) == 0
    assert "<persisted-output>" in capfd.readouterr().out


def test_a_log_that_cannot_be_written_leaves_settings_out_too(
    transcript: Path, scratch_home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (scratch_home / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(scratch_home / "file"))
    monkeypatch.setenv("FOLDMARK_RESULT_CHARS", "many")

    assert use(transcript, "x" * 50_001, monkeypatch) == 0
    assert "<persisted-output>" in capfd.readouterr().out


def test_after_a_turn_the_notes_are_kept_by_a_process_that_nobody_waits_for(start: Start, tmp_path: Path) -> None:
    talk = Transcript()
    for n in range(60):
        talk.prompt(f"Never touch module_{n}.py before its tests are there.").answer(f"I leave module {n} alone. " * 60)
    transcript = talk.write(tmp_path / "long.jsonl")

    done = start("hook", "Stop", stdin=given(transcript))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    notes = transcript.with_suffix("") / "session-memory" / "notes.md"
    for _ in range(300):
        if notes.exists():
            break
        time.sleep(0.1)
    assert "Never touch module_59.py" in notes.read_text()


@pytest.mark.parametrize("path", ["--all", "relative.jsonl", "/none.jsonl"])
def test_what_is_no_transcript_gets_no_notes(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("--all", "relative.jsonl"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: pytest.fail(f"started {command}"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given(Path(path)))))

    assert hook.run("Stop") == 0


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["hook", "Unheard"], "known events: PostToolUse, PreCompact"),
        (["hook"], "known events"),
        (["hook", "PreCompact"], "its input comes from a host"),
    ],
)
def test_a_person_on_a_terminal_hears_what_is_wrong(
    args: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", _Terminal(io.BytesIO()))

    assert run(args) == 2
    assert said in capsys.readouterr().err


def test_the_command_line_without_the_short_cut_answers_the_same(
    transcript: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given(transcript))))

    assert run(["hook", "PreCompact"]) == 0
    assert "Never push to main." in capfd.readouterr().out
