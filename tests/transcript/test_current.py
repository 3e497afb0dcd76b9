"""Finding the session that a tool call is made from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.testing import Transcript
from core.transcript.current import session_of_call
from core.transcript.projects import session_files

OTHER = "22222222-1111-4111-8111-111111111111"


def put(claude: Path, made: Transcript, when: int, name: str = "") -> Path:
    path = made.write(claude / "projects" / "-srv-app" / f"{name or made.session_id}.jsonl")
    os.utime(path, (when, when))
    return path


def test_the_session_whose_call_it_is(tmp_path: Path) -> None:
    mine = put(tmp_path, Transcript().prompt("Who am I?").call("whoami"), 1)
    other = Transcript(OTHER).prompt("And I?").call("whoami")
    put(tmp_path, other, 2)

    found = session_of_call("toolu_11111111_0001", tmp_path)

    assert found is not None
    assert found.path == mine


def test_a_session_that_speaks_of_the_call_or_answers_it_is_not_meant(tmp_path: Path) -> None:
    mine = Transcript().prompt("Who am I?").call("whoami")
    path = put(tmp_path, mine, 1)
    call = mine.calls[0]
    put(tmp_path, Transcript(OTHER).prompt(f"What is {call}?").use("Read", f'"id":"{call}"').result("x", call), 2)

    found = session_of_call(call, tmp_path)

    assert found is not None
    assert found.path == path


def test_a_call_of_a_subagent_leads_to_the_subagent(tmp_path: Path) -> None:
    put(tmp_path, Transcript().prompt("Do it").call("Agent"), 2)
    agent = Transcript(OTHER, agent_id="a1").prompt("Part").call("whoami")
    path = put(tmp_path, agent, 1, "11111111-1111-4111-8111-111111111111/subagents/agent-1234567")

    found = session_of_call(agent.calls[0], tmp_path)

    assert found is not None
    assert (found.path, found.parent) == (path, "11111111-1111-4111-8111-111111111111")


def test_a_call_that_no_client_wrote_is_not_found(tmp_path: Path) -> None:
    path = put(tmp_path, Transcript().prompt("Who am I?").call("whoami"), 1)
    with path.open("ab") as file:
        file.write(b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_torn"')
    put(tmp_path, Transcript(OTHER), 2)
    (path.parent / "pipe.jsonl").symlink_to(tmp_path / "nowhere")

    for call in ("", "toolu_unknown", "toolu_torn", "\udcff"):
        assert session_of_call(call, tmp_path) is None
    assert session_of_call("toolu_unknown", tmp_path / "no-client") is None


def test_a_file_that_is_gone_meanwhile_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, Transcript().prompt("Who am I?").call("whoami"), 1)
    listed = session_files(tmp_path)
    path.unlink()
    monkeypatch.setattr("core.transcript.current.session_files", lambda _claude_dir: listed)

    assert session_of_call("toolu_11111111_0001", tmp_path) is None
