"""Failures in a row, from one run of the program to the next."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from core.turn.breaker import Breaker


def test_three_failures_open_it_and_a_success_closes_it(tmp_path: Path) -> None:
    def breaker() -> Breaker:
        return Breaker(tmp_path / "state" / "breaker", "/work/s.jsonl")

    for count in range(3):
        assert not breaker().is_open
        breaker().failed(f"no text {count}")
    assert breaker().is_open
    assert breaker().reasons == ["no text 0", "no text 1", "no text 2"]
    breaker().reset()
    assert not breaker().is_open
    assert breaker().reasons == []
    breaker().reset()


def test_each_session_has_a_counter_of_its_own(tmp_path: Path) -> None:
    for _ in range(3):
        Breaker(tmp_path, "/work/a.jsonl").failed("x")

    assert not Breaker(tmp_path, "/work/b.jsonl").is_open


def test_it_is_its_owners_alone_and_holds_no_secret(tmp_path: Path) -> None:
    breaker = Breaker(tmp_path / "breaker", "s")
    breaker.failed("the key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 is wrong")

    assert stat.S_IMODE(os.stat(breaker.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(breaker.folder).st_mode) == 0o700
    assert "abcdefghij" not in breaker.path.read_text()


def test_what_cannot_be_written_or_read_counts_as_little_as_it_can(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    breaker = Breaker(tmp_path / "file", "s")

    breaker.failed("x")

    assert breaker.reasons == []
    torn = Breaker(tmp_path, "s")
    torn.path.write_bytes(b'{"reason":"a"}\n\xff\n{"rea')
    assert torn.reasons == ["a", "", ""]
