"""What Foldmark does not put back, because the client does."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from core.model import JSON
from tests.disk import compacted
from tests.shared import SHARED, needs_client

LISTS = {"new": {"deferred_tools_delta", "agent_listing_delta", "skill_listing"}, "old": {"agent_listing_delta"}}


def attachments(path: Path) -> list[dict[str, JSON]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [row["attachment"] for row in rows if row.get("type") == "attachment"]


@pytest.mark.client
@pytest.mark.parametrize("client", [*LISTS])
def test_tools_and_agents_are_announced_in_full_again(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_client(client, monkeypatch)
    (source,) = (SHARED / "corpus" / "subagents" / "projects" / "-srv-app").glob("f*.jsonl")
    path = tmp_path / "projects" / "-srv-app" / source.name
    path.parent.mkdir(parents=True)
    shutil.copy(source, path)
    before = next(a for a in attachments(path) if a["type"] == "agent_listing_delta")
    result = compacted(path)
    assert result.changed
    assert attachments(Path(result.output)) == []

    runner, kept = SHARED / "client", tmp_path / "kept"
    command = [f"{runner}/ns.sh", "python3", f"{runner}/resume.py", result.output, "--client", client]
    subprocess.run([*command, "--keep", str(kept)], check=True, capture_output=True)
    (resumed,) = kept.rglob(f"{result.output_id}.jsonl")
    announced = {str(a["type"]): a for a in attachments(resumed)}
    assert announced.keys() >= LISTS[client]
    assert announced["agent_listing_delta"]["addedTypes"] == before["addedTypes"]
