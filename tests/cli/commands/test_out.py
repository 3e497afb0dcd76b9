"""Where the commands that write put their results."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cli.main import run
from core.testing import SESSION_ID, Transcript

Capture = pytest.CaptureFixture[str]
WRITING = {
    "compact": ("--keep", "0"),
    "compact-micro": ("--how", "micro"),
    "check": ("--repair",),
    "redact": (),
    "snip": ("11111111-0000-4000-8000-000000000002", "11111111-0000-4000-8000-000000000004"),
}


@pytest.fixture
def data() -> bytes:
    """A session in which each of the commands finds something to do: a range, a secret, an empty result, damage."""
    made = Transcript().prompt("Look").use("Bash", "line of a file\n" * 400, command="cat a").answer("Long. " * 200)
    for n in range(10):
        made.prompt(f"And {n}?").answer("No.")
    made.prompt("the token is ghp_" + "a1B2" * 9).use("Bash", "", command="true")
    return made.data() + b'{"type":"user","uuid":"x"\n'


@pytest.mark.parametrize("command", WRITING)
def test_a_folder_that_is_not_there_is_made(command: str, data: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / f"{SESSION_ID}.jsonl"
    path.write_bytes(data)
    out = tmp_path / "new" / "folder"

    assert run([command.partition("-")[0], str(path), *WRITING[command], "--out", str(out)]) == 0, capsys.readouterr()
    assert len([*out.glob("*.jsonl")]) == 1


@pytest.mark.parametrize("command", WRITING)
def test_a_result_of_standard_input_needs_a_folder(
    command: str, data: bytes, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*more: str) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return run([command.partition("-")[0], "-", *WRITING[command], *more])

    assert call() == 2
    assert "name one with --out" in capsys.readouterr().err
    assert call("--out", str(tmp_path / "out")) == 0, capsys.readouterr()
    assert len([*(tmp_path / "out").glob("*.jsonl")]) == 1


@pytest.mark.parametrize("words", [("check",), ("redact", "--check"), ("snip", "--suggest"), ("compact", "--dry-run")])
def test_what_writes_nothing_needs_none(
    words: tuple[str, ...], data: bytes, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert run([words[0], "-", *words[1:]]) < 2, capsys.readouterr()
