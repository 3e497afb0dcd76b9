"""The sample session: it is what its script writes, and what a client could have written."""

from __future__ import annotations

import json
from pathlib import Path

from core.model import JSON
from scripts.make_example import Session

EXAMPLE = Path(__file__).parents[2] / "examples" / "session.jsonl"


def test_the_bundled_file_is_what_the_script_writes() -> None:
    session = Session()
    session.write()

    rows: list[JSON] = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()]
    assert rows == session.rows
    assert 170_000 < session.sent_tokens < 190_000


def test_every_call_has_its_result_and_time_only_goes_on() -> None:
    session = Session()
    session.write()

    calls, results, times = [], [], []
    for row in session.rows:
        times += [str(row["timestamp"])] if "timestamp" in row else []
        message = row.get("message")
        content = message["content"] if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            assert isinstance(block, dict)
            calls += [block["id"]] if block["type"] == "tool_use" else []
            results += [block["tool_use_id"]] if block["type"] == "tool_result" else []
    assert sorted(map(str, calls)) == sorted(map(str, results))
    assert times == sorted(set(times))
