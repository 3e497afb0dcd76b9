"""`foldmark redact`."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from cli.main import run
from core.testing import Transcript

CASE = Path(__file__).parents[2] / "data" / "cases" / "secret-1.jsonl"
SECRETS = ("ghp_EXAMPLE", "sk-ant-EXAMPLE", "p4ssw0rd", "AKIAEXAMPLE", "hunter2", "MIIEXAMPLE")


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl"
    shutil.copy(CASE, path)
    return path


def test_check_lists_secrets_masked_and_fails(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["redact", str(case), "--check"]) == 1

    out = capsys.readouterr().out
    assert "3 url-password, 2 aws-key, 2 private-key, 1 github-token, 1 anthropic-key" in out
    assert "ghp_… (41 characters)" in out
    assert not [s for s in SECRETS if s in out]
    assert "nothing written" not in out


def test_a_copy_is_written_and_named(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["redact", str(case), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["changed"]
    assert Path(result["output"]).is_file()
    assert len(result["findings"]) == 9

    assert run(["redact", str(case)]) == 0
    assert "nothing written: the same was written before" in capsys.readouterr().out
    assert run(["undo", result["output"]]) == 0
    capsys.readouterr()
    assert run(["redact", str(case)]) == 0
    out = capsys.readouterr().out
    assert f"written: {result['output']}" in out
    assert run(shlex.split(out.partition("take back with:  foldmark ")[2])) == 0
    assert not Path(result["output"]).exists()


def test_a_session_without_secrets_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Transcript().prompt("hello").answer("hi").write(tmp_path / "clean.jsonl")

    assert run(["redact", str(path), "--check"]) == 0
    assert capsys.readouterr().out == "hello: no secrets found\n"


def test_many_places_are_cut_to_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Transcript().prompt("PASSWORD=hunter2\n" * 50).answer("hi").write(tmp_path / "many.jsonl")

    assert run(["redact", str(path), "--check"]) == 1
    assert "and 10 more; --json lists all" in capsys.readouterr().out


def test_the_help_says_what_becomes_of_the_session_and_of_what_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["redact", "--help"]) == 0

    out = " ".join(capsys.readouterr().out.split())
    assert "remove it yourself" in out
    assert "replace it where it came from" in out


def test_errors_hold_no_secrets(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["output", str(case), "ghp_EXAMPLEexampleEXAMPLEexample000000000"]) == 2
    assert "no text has the id '[REDACTED:github-token]'" in capsys.readouterr().err


def test_the_log_of_a_fault_holds_no_secrets(monkeypatch: pytest.MonkeyPatch, scratch_home: Path) -> None:
    from cli.errors import describe

    try:
        raise RuntimeError("PASSWORD=hunter2")
    except RuntimeError as error:
        _, message, hint, _ = describe(error)

    assert message == "a fault in Foldmark: RuntimeError: PASSWORD=[REDACTED:password]"
    log = Path(hint.removeprefix("the traceback is in "))
    assert "PASSWORD=[REDACTED:password]" in log.read_text()
    assert "hunter2" not in log.read_text().replace('raise RuntimeError("PASSWORD=hunter2")', "")
