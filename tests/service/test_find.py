"""Which session a program means."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import SessionNotFound
from core.service.find import Caller, another, calling, current, named
from core.testing import SESSION_ID, Transcript

OTHER = "22222222-1111-4111-8111-111111111111"


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    """Two sessions; the first ends with a call."""
    folder = tmp_path / "projects" / "-srv-app"
    Transcript().prompt("Who am I?").call("whoami").write(folder / f"{SESSION_ID}.jsonl")
    Transcript(OTHER).prompt("Hello").answer("Hi").write(folder / f"{OTHER}.jsonl")
    return Caller(tmp_path, tmp_path / "elsewhere")


def test_the_session_of_a_call(caller: Caller) -> None:
    found = calling("toolu_11111111_0001", caller)

    assert found is not None
    assert found.id == SESSION_ID
    assert calling("toolu_none", caller) is None


def test_a_call_in_a_transcript_that_a_link_leads_to_is_not_followed(caller: Caller, tmp_path: Path) -> None:
    made = Transcript("33333333-1111-4111-8111-111111111111").prompt("x").call("whoami")
    target = made.write(tmp_path / "private.jsonl")
    (tmp_path / "projects" / "-srv-app" / "33333333-1111-4111-8111-111111111111.jsonl").symlink_to(target)

    with pytest.raises(SessionNotFound, match="outside"):
        calling(made.calls[0], caller)


def test_what_the_client_has_open_counts_more_than_what_it_said_at_the_start(caller: Caller, tmp_path: Path) -> None:
    pid = os.getppid()
    registry = tmp_path / "sessions" / f"{pid}.json"
    registry.parent.mkdir()
    registry.write_text(json.dumps({"pid": pid, "sessionId": OTHER}), encoding="utf-8")
    started = replace(caller, session_id=SESSION_ID)

    assert current(started).id == SESSION_ID
    assert current(replace(started, client_pid=pid)).id == OTHER


def test_where_nothing_tells_the_hint_says_what_to_do(caller: Caller) -> None:
    with pytest.raises(SessionNotFound) as caught:
        current(caller)

    assert "name one" in caught.value.hint


def test_a_name_is_looked_up_within_the_roots(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"")

    assert named(OTHER[:4], caller).id == OTHER
    with pytest.raises(SessionNotFound, match="outside"):
        named(str(tmp_path / "x.jsonl"), caller)


def test_another_session_is_never_the_own_one(caller: Caller, tmp_path: Path) -> None:
    own = replace(caller, session_id=OTHER.upper())
    os.utime(tmp_path / "projects" / "-srv-app" / f"{OTHER}.jsonl", (2_000_000_000, 2_000_000_000))

    assert another("latest", caller).id == OTHER
    assert another("latest", own).id == SESSION_ID
    assert another(SESSION_ID, own).id == SESSION_ID
    with pytest.raises(SessionNotFound):
        another(OTHER, own)
    (tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl").unlink()
    with pytest.raises(SessionNotFound, match="no other session"):
        another("latest", own)
