"""What a hostile transcript gets onto a terminal: its words, and nothing that steers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.main import run

EVIL = "\x1b[2J\x9b\u202e"
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A session with control bytes in its name and in all that names something in it."""

    def row(uuid: str, parent: str | None, role: str, content: object, **message: object) -> str:
        holder = {"role": role, "content": content, **message}
        known = {"sessionId": EVIL, "cwd": f"/srv/{EVIL}", "timestamp": "2026-01-01T00:00:00Z", "version": EVIL}
        return json.dumps({"type": role, "uuid": uuid, "parentUuid": parent, "message": holder, **known})

    call = {"type": "tool_use", "id": f"t{EVIL}", "name": f"Bash{EVIL}", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{EVIL}", "content": f"found{EVIL}"}
    rows = [
        row(f"u1{EVIL}", None, "user", f"prompt{EVIL}"),
        row("a1", f"u1{EVIL}", "assistant", [call, {"type": f"odd{EVIL}"}], id=f"m{EVIL}", model=f"model{EVIL}"),
        row("u2", "a1", "user", [result]),
        '{"type": "user", "uuid": "torn',
    ]
    path = tmp_path / f"evil{EVIL}.jsonl"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("json_too", [[], ["--json"]])
@pytest.mark.parametrize(
    "args",
    [
        ["context"], ["view"], ["output"], ["output", "", "t"], ["search", "", "found"], ["check"],
        ["redact", "--check"],
        ["check", "", "--repair"], ["snip", "", "a1", "u2", "--dry-run"], ["compact", "--dry-run"],
        ["simulate"], ["compact", "", "--how", "micro", "--force"], ["report"], ["undo"], ["output", "", EVIL],
    ],
)  # fmt: skip
def test_no_command_passes_control_characters_on(
    hostile: Path, capsys: pytest.CaptureFixture[str], args: list[str], json_too: list[str]
) -> None:
    command, *rest = args

    assert run([command, str(hostile), *filter(None, rest), *json_too]) in (0, 1, 2)

    shown = "".join(capsys.readouterr())
    assert shown
    assert not STEERS.search(shown)
    assert "fault in Foldmark" not in shown
