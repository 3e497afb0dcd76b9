"""Signals: every command ends alike, whatever it is doing when one comes, and leaves nothing half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from cli import main
from cli.signals import leave_to_others

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def not_ignored() -> Iterator[None]:
    """What runs in the background of a shell begins with Ctrl-C ignored, and so would the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Finalized:
    """Sends a signal at a moment at which nothing can be raised."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def send(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)


def turned_into_another_error() -> None:
    try:
        send(signal.SIGINT)
    except KeyboardInterrupt:
        raise ValueError("no schema") from None


def lost_in_a_finalizer() -> None:
    finalized = Finalized()
    del finalized
    for _ in range(500):  # it comes again between two steps of the program, not in the middle of a long one
        time.sleep(0.01)


@pytest.mark.parametrize(
    "interrupted",
    [
        lambda: send(signal.SIGINT),
        lambda: send(signal.SIGTERM),
        turned_into_another_error,
        lost_in_a_finalizer,
    ],
    ids=["ctrl-c", "sigterm", "another error", "finalizer"],
)
def test_a_signal_ends_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupted: Callable[[], None]
) -> None:
    monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: click.Command("any", callback=interrupted))
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    assert main.run(["any"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_other_errors_that_nobody_can_catch_are_still_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Faulty:
        def __del__(self) -> None:
            raise ValueError("odd")

    def callback() -> None:
        Faulty()

    monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: click.Command("any", callback=callback))

    assert main.run(["any"]) == 0
    assert "odd" in capsys.readouterr().err


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        callback: Callable[[], None] = lambda: send(signal.SIGINT)  # noqa: E731
        monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: click.Command("any", callback=callback))

        assert main.run(["any"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_server_has_its_own_way_to_end() -> None:
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        leave_to_others()

        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_standard_input_that_was_kept_is_removed(tmp_path: Path, number: int) -> None:
    command = [sys.executable, str(ROOT / "foldmark.py"), "context", "-"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        end = time.monotonic() + 30
        while not list(tmp_path.glob("foldmark-*/stdin.jsonl")) and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        assert process.returncode == 130
        assert process.stderr
        assert process.stderr.read().strip() == b"interrupted"
    assert not list(tmp_path.glob("foldmark-*"))
