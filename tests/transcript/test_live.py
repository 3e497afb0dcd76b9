from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import InputError
from core.transcript.live import FileState, open_in

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its standard input is closed."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process


def register(claude_dir: Path, pid: object, session: str = SESSION, name: str = "client") -> None:
    folder = claude_dir / "sessions"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(f'{{"pid": {pid}, "sessionId": "{session}", "status": "idle"}}', "utf-8")


def test_a_session_of_a_running_client_is_open(tmp_path: Path, client: subprocess.Popen[bytes]) -> None:
    register(tmp_path, client.pid)
    assert open_in(tmp_path, SESSION) == client.pid


def test_letter_case_does_not_count_in_session_ids(tmp_path: Path, client: subprocess.Popen[bytes]) -> None:
    session = "aaaaaaaa-1111-4111-8111-111111111111"
    register(tmp_path, client.pid, session.upper())
    assert open_in(tmp_path, session) == client.pid


def test_a_session_that_the_client_left_is_not_open(tmp_path: Path, client: subprocess.Popen[bytes]) -> None:
    register(tmp_path, client.pid, "22222222-2222-4222-8222-222222222222")
    assert open_in(tmp_path, SESSION) is None


def test_the_entry_of_a_dead_client_counts_as_none(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    register(tmp_path, process.pid)
    assert open_in(tmp_path, SESSION) is None


def test_a_process_of_another_user_is_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    register(tmp_path, 4242)
    assert open_in(tmp_path, SESSION) == 4242


@pytest.mark.parametrize("pid", [0, -1, pytest.param(os.getpid(), id="this one"), 10**30, '"12"', 1.5, "null"])
def test_ids_that_are_no_other_process_are_passed_over(tmp_path: Path, pid: object) -> None:
    register(tmp_path, pid)
    assert open_in(tmp_path, SESSION) is None


def test_unreadable_entries_hide_no_others(tmp_path: Path, client: subprocess.Popen[bytes]) -> None:
    register(tmp_path, client.pid, name="z")
    (tmp_path / "sessions" / "a.json").write_bytes(b'{"pid": 1')
    (tmp_path / "sessions" / "b.json").write_bytes(b'{"pid": 1, "sessionId": "\xff"}')
    (tmp_path / "sessions" / "c.json").mkdir()
    assert open_in(tmp_path, SESSION) == client.pid


def test_without_a_registry_nothing_is_open(tmp_path: Path) -> None:
    assert open_in(tmp_path, SESSION) is None


def test_the_state_differs_after_a_write_and_after_a_replacement(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n")
    before = FileState.of(path)
    assert FileState.of(path) == before
    with path.open("ab") as file:
        file.write(b"2\n")
    grown = FileState.of(path)
    assert grown.size == 4
    assert grown != before
    other = tmp_path / "b.jsonl"
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(grown.mtime_ns, grown.mtime_ns))
    other.replace(path)
    assert FileState.of(path) != grown


def test_an_open_file_has_the_state_of_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n")
    with path.open("rb") as file:
        assert FileState.of(file.fileno()) == FileState.of(path)


@pytest.mark.parametrize("name", ["missing", "nul\0byte"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        FileState.of(tmp_path / name)


def test_a_pipe_or_a_folder_in_the_place_of_an_entry_is_none(tmp_path: Path, client: subprocess.Popen[bytes]) -> None:
    register(tmp_path, client.pid)
    os.mkfifo(tmp_path / "sessions" / "1.json")  # opening it would wait for ever
    (tmp_path / "sessions" / "2.json").mkdir()

    assert open_in(tmp_path, SESSION) == client.pid
