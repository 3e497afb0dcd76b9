"""Commands of the user: what they are told, what they may say, and what becomes of one that fails."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from core.compaction import hooks
from core.compaction.hooks import MOST_CHARS, NO_HOOKS, About, Answer, CommandHooks

ABOUT = About("the-id", "/w/a.jsonl", "/w")
AUTO = About("the-id", "/w/a.jsonl", "/w", "auto")


def telling(path: Path) -> str:
    """A command that writes what it is given into a file."""
    return f"cat > {shlex.quote(str(path))}"


def told(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_each_event_is_told_in_the_clients_words(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    hooks = CommandHooks([telling(files[0])], [telling(files[1])], [telling(files[2])])
    common = {"session_id": "the-id", "transcript_path": "/w/a.jsonl", "cwd": "/w"}

    assert hooks.pre_compact(ABOUT, "Mind the tests") == Answer()
    assert hooks.session_start(ABOUT) == Answer()
    assert hooks.post_compact(ABOUT, "So far.") == Answer()

    assert told(files[0]) == common | {
        "hook_event_name": "PreCompact",
        "trigger": "manual",
        "custom_instructions": "Mind the tests",
    }
    assert told(files[1]) == common | {"hook_event_name": "SessionStart", "source": "compact"}
    assert told(files[2]) == common | {
        "hook_event_name": "PostCompact",
        "trigger": "manual",
        "compact_summary": "So far.",
    }


def test_nobody_gave_instructions_for_what_nobody_asked_for(tmp_path: Path) -> None:
    CommandHooks([telling(tmp_path / "a")]).pre_compact(AUTO, "")
    assert told(tmp_path / "a")["custom_instructions"] is None
    assert told(tmp_path / "a")["trigger"] == "auto"


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("Keep the port.\n", "Keep the port."),
        ("", ""),
        ("[1, 2]", "[1, 2]"),
        ("{broken", "{broken"),
        ('{"hookSpecificOutput": {"additionalContext": "Port 8080"}}', "Port 8080"),
        ('{"hookSpecificOutput": {"additionalContext": 3}}', ""),
        ('{"systemMessage": "for the screen"}', ""),
        ("x" * (MOST_CHARS + 1), "x" * MOST_CHARS),
    ],
)
def test_what_is_printed_is_added(tmp_path: Path, printed: str, text: str) -> None:
    (tmp_path / "out").write_text(printed, encoding="utf-8")
    assert CommandHooks([f"cat {tmp_path / 'out'}"]).pre_compact(ABOUT, "") == Answer(text)


def test_several_commands_run_in_order() -> None:
    assert CommandHooks(["echo one", "true", "echo two"]).pre_compact(ABOUT, "") == Answer("one\n\ntwo")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo 'Not now.' >&2; exit 2", "Not now."),
        ("exit 2", "gave no reason"),
        ("""echo '{"decision": "block", "reason": "Tests run."}'""", "Tests run."),
        ("""echo '{"decision": "block"}'""", "gave no reason"),
    ],
)
def test_a_command_may_forbid_it(command: str, reason: str) -> None:
    answer = CommandHooks([command, "echo more"]).pre_compact(ABOUT, "")
    assert reason in answer.blocked
    assert answer.remarks == ()


@pytest.mark.parametrize(
    ("command", "remark"),
    [
        ("echo broken >&2; exit 1", "ended with status 1: broken"),
        ("exit 3", "ended with status 3: it printed nothing"),
        ("/nonexistent/program", "ended with status 127"),
    ],
)
def test_a_fault_is_a_remark_and_no_more(command: str, remark: str) -> None:
    answer = CommandHooks([command, "echo fine"]).pre_compact(ABOUT, "")

    assert (answer.text, answer.blocked) == ("fine", "")
    assert len(answer.remarks) == 1
    assert remark in answer.remarks[0]
    assert "PreCompact" in answer.remarks[0]


def test_a_command_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    answer = CommandHooks([f"(echo up; sleep 60; echo alive) > {pipe} & wait"], timeout_s=1).pre_compact(ABOUT, "")

    assert "did not end within 1 seconds" in answer.remarks[0]
    os.set_blocking(end, True)
    with open(end, "rb") as held:
        assert held.read() == b"up\n"  # the end: nobody holds the other side any more


def test_what_a_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")

    assert CommandHooks([f"echo kept; setsid cat {pipe} &"]).pre_compact(ABOUT, "") == Answer("kept")
    pipe.write_bytes(b"")  # it is still there: it reads this, and ends


def test_of_a_huge_output_the_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "_MOST_BYTES", 1_000)
    command = f"{shlex.quote(sys.executable)} -c \"print('x' * 5_000_000)\""

    assert CommandHooks([command]).pre_compact(ABOUT, "").text == "x" * 1_000


def test_a_command_need_not_read_what_it_is_given() -> None:
    assert CommandHooks(after=["exec 0<&-; sleep 0.1"]).post_compact(ABOUT, "x" * 1_000_000) == Answer()


def test_a_shell_that_cannot_be_started_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("core.compaction.hooks.subprocess.Popen", refuse)
    assert "Cannot allocate memory" in CommandHooks(started=["true"]).session_start(ABOUT).remarks[0]


def test_without_hooks_nothing_is_said() -> None:
    assert NO_HOOKS.pre_compact(ABOUT, "") == NO_HOOKS.session_start(ABOUT) == NO_HOOKS.post_compact(ABOUT, "")
