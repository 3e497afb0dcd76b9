"""The server in the real client, where one is at hand; and that the script can tell right from wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.check_host import CALLS, SESSION, SUMMARY, check, check_compacted
from tests.shared import SHARED, needs_client


def client_that(shared: Path, answer: str, requests: str = "") -> Path:
    """A client that prints this answer, and has sent this request."""
    client = shared / "client"
    client.mkdir(parents=True)
    (client / "request.json").write_text(requests, encoding="utf-8")
    keep = (
        'while [ $# -gt 0 ] && [ "$1" != --keep ]; do shift; done\n[ $# -gt 0 ] && mkdir -p "$2/requests" "$2/project"'
    )
    copy = f'[ $# -gt 0 ] && cp "{client}/request.json" "$2/requests/001-main.json"'
    (client / "ns.sh").write_text(f"#!/bin/sh\n{keep}\n{copy}\necho '{answer}'\n", encoding="utf-8")
    (client / "ns.sh").chmod(0o755)
    return shared


def test_a_host_that_does_not_call_is_found_out(tmp_path: Path) -> None:
    request = json.dumps({"body": {"messages": [{"content": "hello"}]}})
    shared = client_that(tmp_path / "shared", '{"ok": false, "output": "it broke", "calls": []}', request)

    faults = [*check(shared, "new", tmp_path)]

    assert faults[0] == "the client did not get to the end: it broke"
    assert len(faults) == len(CALLS) + 2
    assert faults[-1] == "0 sessions were made"


def test_what_a_model_sees_is_told_from_what_it_should_see(tmp_path: Path) -> None:
    call = CALLS[0]
    (step,) = call.step["tools"]
    use = {"type": "tool_use", "id": "t1", **step}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": call.sees}]}
    request = json.dumps({"body": {"messages": [{"content": [use]}, {"content": [result]}]}})
    shared = client_that(tmp_path / "shared", '{"ok": true, "calls": []}', request)

    assert len([*check(shared, "new", tmp_path)]) == len(CALLS)


def test_a_session_that_is_compacted_again_is_found_out(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in (SESSION, "made"):
        (project / f"{name}.jsonl").write_bytes(b"")
    sent = json.dumps({"ok": True, "calls": ["compact", "main"], "messages": [SUMMARY, "marmalade11"]})
    shared = client_that(tmp_path / "shared", sent)

    lost, again = check_compacted(shared, "new", project)

    assert "'NEXT-PROMPT'" in lost
    assert "compacted again" in again


@pytest.mark.client
@pytest.mark.parametrize("client", ["new", "old"])
def test_the_real_client(client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_client(client, monkeypatch)

    assert [*check(SHARED, client, tmp_path)] == []
