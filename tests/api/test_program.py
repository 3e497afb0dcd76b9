"""The `claude` program as an endpoint, with a script in its place that does what the real one was seen to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.api.patience import Patience
from core.api.program import ClaudeProgram, Program, small_environment
from core.errors import ApiError
from core.model import JSON
from tests.shared import CLIENTS, SHARED, needs_client

BODY: dict[str, JSON] = {
    "model": "haiku",
    "max_tokens": 9,
    "system": "You sum up.",
    "messages": [{"role": "user", "content": "THIS"}],
}
DONE: dict[str, JSON] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "all done",
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 42, "cache_read_input_tokens": 478, "iterations": []},
    "modelUsage": {"claude-haiku-5-5": {}},
}


def program(folder: Path, answer: JSON, before: str = "", code: int = 0) -> Program:
    """A script that notes how it was called, and prints an answer."""
    printed = answer if isinstance(answer, str) else json.dumps(answer)
    path = folder / "claude"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nargs, text = sys.argv[1:], sys.stdin.read()\n"
        f"with open({str(folder / 'calls')!r}, 'a') as f:\n"
        "    f.write(json.dumps([args, text, dict(os.environ), os.listdir()]) + '\\n')\n"
        f"{before}\nprint({printed!r})\nsys.exit({code})\n"
    )
    path.chmod(0o700)
    return Program(str(path), {"PATH": "/usr/bin:/bin"})


def calls(folder: Path) -> list[list[JSON]]:
    return [json.loads(line) for line in (folder / "calls").read_text("utf-8").splitlines()]


def endpoint(made: Program, **patience: float) -> ClaudeProgram:
    how = Patience(tries=2, deadline_s=patience.get("deadline_s", 60.0))
    return ClaudeProgram(made, clock=time.monotonic, sleep=lambda _: None, patience=how)


def test_the_prompt_goes_in_and_the_answer_comes_out(tmp_path: Path) -> None:
    pieces: list[str] = []
    reply = endpoint(program(tmp_path, DONE)).send(BODY, pieces.append)

    assert (reply.text, pieces, reply.model) == ("all done", ["all done"], "claude-haiku-5-5")
    assert (reply.usage.prompt_tokens, reply.usage.output_tokens) == (481, 42)
    [[args, text, env, files]] = calls(tmp_path)
    assert text == "THIS"
    assert files == []
    assert isinstance(args, list)
    assert args[args.index("--tools") + 1] == ""
    assert args[args.index("--system-prompt") + 1] == "You sum up."
    assert args[args.index("--model") + 1] == "haiku"
    assert "--no-session-persistence" in args
    assert isinstance(env, dict)
    assert "HOME" not in env


def test_an_older_version_is_asked_in_its_own_way(tmp_path: Path) -> None:
    refuse = "if '--tools' in args: sys.exit(\"error: unknown option '--tools'\")"
    reply = endpoint(program(tmp_path, DONE, refuse)).send(BODY)

    assert reply.text == "all done"
    args, text = calls(tmp_path)[1][:2]
    assert text == "You sum up.\n\nTHIS"
    assert isinstance(args, list)
    assert "--disallowedTools" in args


def test_a_list_of_events_ends_with_the_result(tmp_path: Path) -> None:
    assert endpoint(program(tmp_path, [{"type": "system"}, DONE, {"type": "late"}])).send(BODY).text == "all done"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({**DONE, "is_error": True, "result": "Prompt is too long"}, "too-long"),
        ({**DONE, "is_error": True, "result": "Not logged in. Please run /login"}, "auth"),
        ({**DONE, "is_error": True, "api_error_status": 429, "result": "API Error: spend limit reached"}, "spend"),
        ({**DONE, "subtype": "error_max_turns", "result": ""}, "request"),
        ("not JSON", "request"),
        ("[]", "request"),
    ],
)
def test_an_error_of_the_program_has_its_kind(tmp_path: Path, answer: JSON, kind: str) -> None:
    with pytest.raises(ApiError) as caught:
        endpoint(program(tmp_path, answer, code=1)).send(BODY)

    assert caught.value.kind == kind
    assert len(calls(tmp_path)) == 1


def test_an_overloaded_api_is_tried_again(tmp_path: Path) -> None:
    busy: JSON = {**DONE, "is_error": True, "api_error_status": 529, "result": "API Error: Overloaded"}
    with pytest.raises(ApiError) as caught:
        endpoint(program(tmp_path, busy, code=1)).send(BODY)

    assert caught.value.kind == "overloaded"
    assert len(calls(tmp_path)) == 2


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    child = "import subprocess, time\nsubprocess.Popen(['sleep', '60'])"
    slow = f"{child}\nopen({str(tmp_path / 'up')!r}, 'w').close()\ntime.sleep(60)"
    begin = time.monotonic()
    with pytest.raises(ApiError) as caught:
        endpoint(program(tmp_path, DONE, slow), deadline_s=1.5).send(BODY)

    assert caught.value.kind == "deadline"
    assert (tmp_path / "up").exists()
    assert time.monotonic() - begin < 30


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="nowhere"):
        endpoint(Program(str(tmp_path / "nowhere"), {})).send(BODY)


def test_a_conversation_is_not_taken_and_nothing_is_counted(tmp_path: Path) -> None:
    one = endpoint(program(tmp_path, DONE))
    conversations: list[list[JSON]] = [[], [{"role": "user", "content": [{"type": "text", "text": "a"}]}]]
    for messages in conversations:
        with pytest.raises(ApiError):
            one.send({**BODY, "messages": messages})
    with pytest.raises(ApiError):
        one.count(BODY)

    assert not (tmp_path / "calls").exists()


def test_the_environment_is_small() -> None:
    env = small_environment(
        {
            "PATH": "/bin",
            "HOME": "/h",
            "CLAUDECODE": "1",
            "CLAUDE_CODE_SSE_PORT": "1",
            "ANTHROPIC_BASE_URL": "u",
            "X": "1",
        }
    )

    assert {k for k in env if not k.isupper() or k in ("CLAUDECODE", "CLAUDE_CODE_SSE_PORT", "X")} == set()
    assert (env["PATH"], env["HOME"], env["ANTHROPIC_BASE_URL"]) == ("/bin", "/h", "u")


PROGRAMS = {
    "new": "new/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    "old": "old/node_modules/.bin/claude",
    "2.0.76": "2.0.76/node_modules/.bin/claude",
    "1.0.128": "1.0.128/node_modules/.bin/claude",
}
ASK = """
import json, sys, tempfile, time
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from fake_api import FakeAPI
from core.api.program import ClaudeProgram, Program, small_environment
api = FakeAPI(tempfile.mkdtemp(), 8765)
api.policy = lambda request: {"text": "from " + request.kind}
home = Path(tempfile.mkdtemp())
(home / ".claude").mkdir()
hook = {"hooks": [{"type": "command", "command": f"touch {home}/hooked"}]}
(home / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"SessionStart": [hook]}}))
env = small_environment({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "IS_SANDBOX": "1",
                         "CLAUDECODE": "1", "ANTHROPIC_API_KEY": "dummy",
                         "ANTHROPIC_BASE_URL": "http://127.0.0.1:8765"})
program = ClaudeProgram(Program(sys.argv[3], env), clock=time.monotonic, sleep=time.sleep)
body = {"model": "haiku", "system": "SYSTEM-LINE", "messages": [{"role": "user", "content": "PROMPT-LINE"}]}
reply = program.send(body)
asked = [r for r in api.log if "PROMPT-LINE" in json.dumps(r.body)]
print(json.dumps({"text": reply.text, "output": reply.usage.output_tokens,
                  "system": ["SYSTEM-LINE" in json.dumps(r.body) for r in asked], "tools": [r.tools for r in asked],
                  "hooked": (home / "hooked").exists(),
                  "sessions": [p.name for p in home.rglob("*.jsonl")]}))
"""


@pytest.mark.client
@pytest.mark.parametrize("version", PROGRAMS)
def test_the_real_program_answers(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_client(version, monkeypatch)
    path = CLIENTS / PROGRAMS[version]
    root = str(Path(__file__).parents[2])
    command: list[str | Path] = [SHARED / "client" / "ns.sh", sys.executable, "-c", ASK, root, SHARED / "client", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["text"].partition(" ")[0], said["hooked"]) == ("from", False)
    assert said["output"] > 0
    assert said["system"] == [True]
    if version == "1.0.128":  # which cannot be told to have no tools at all, and keeps its sessions
        assert not {"Bash", "Read", "Edit", "Write", "Task", "WebFetch"} & {*said["tools"][0]}
    else:
        assert (said["tools"], said["sessions"]) == ([[]], [])
