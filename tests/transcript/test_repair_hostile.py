"""Transcripts whose rows carry what no client wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.transcript.reader import open_log
from core.transcript.redacted import Copy
from core.transcript.repair import repair


def _row(uuid: str, parent: str | None, **more: object) -> bytes:
    row: dict[str, object] = {
        "type": "assistant",
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "message": {"content": []},
    }
    return json.dumps(row | more).encode() + b"\n"


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00"])
def test_a_time_at_the_end_of_the_calendar_is_no_time(tmp_path: Path, stamp: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        _row("a", None, timestamp=stamp) + _row("b", "a") + _row("c", "b", timestamp="2026-01-01T00:00:00Z")
    )

    with open_log(path) as log:
        rows = [json.loads(line) for line in repair(log)]

    assert [r["uuid"] for r in rows] == ["a", "b", "c"]
    assert rows[1]["timestamp"].startswith(("1970", "2025", "2026"))


@pytest.mark.parametrize("links", [[("a", "a")], [("a", "b"), ("b", "a")], [("a", "b"), ("b", "c"), ("c", "a")]])
def test_rows_without_content_that_are_their_own_ancestors_end(links: list[tuple[str, str]]) -> None:
    lines = [_row(uuid, parent) for uuid, parent in links] + [_row("z", "a", message={"content": "kept"})]

    rows = [json.loads(line) for line in Copy("s", "t").rows(lines)]

    assert [r["uuid"] for r in rows] == ["z"]
    assert rows[0]["parentUuid"] is None
