"""The hooks in the real client, where one is at hand; and that the script can tell right from wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import check_hooks
from scripts.check_hooks import CHECKS, LINES, Referee, check_broken_store, check_shell, inputs, times
from tests.shared import SHARED, needs_client


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of the shape that the script takes, whose client shows the whole output to the model."""
    row = {
        "type": "user",
        "toolUseResult": {},
        "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": LINES}]},
    }
    client = tmp_path / "shared" / "client"
    client.mkdir(parents=True)
    (client / "row.json").write_text(json.dumps(row) + "\n")
    (client / "ns.sh").write_text(
        '#!/bin/sh\nwhile [ "$1" != --keep ]; do shift; done\nmkdir "$2/project"\n'
        'cp "$(dirname "$0")/row.json" "$2/project/s.jsonl"\necho \'{"session": "s", "calls": ["main"]}\'\n'
    )
    (client / "ns.sh").chmod(0o755)
    return tmp_path / "shared"


def test_a_client_without_hooks_is_found_out(shared: Path, tmp_path: Path) -> None:
    referee = Referee(shared, "new", tmp_path / "work")

    assert any("the model got" in fault for fault in check_shell(referee))
    assert any("did not go on" in fault for fault in check_broken_store(referee))


def test_every_hook_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_hooks, "PAUSE_S", 0)
    assert times(tmp_path, 1).keys() == inputs(tmp_path).keys()


@pytest.mark.client
@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("client", ["new"])
def test_the_real_client(client: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_client(client, monkeypatch)

    assert [*CHECKS[name](Referee(SHARED, client, tmp_path))] == []
