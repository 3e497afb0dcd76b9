"""`foldmark context`: what the API counts, and what each stage would free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import run
from core.testing import ScriptedApi, Transcript

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def session(tmp_path: Path) -> str:
    made = Transcript().prompt(f"Use {SECRET}.").use("Read", "1\tdef parse():", file_path="p.py").answer("Done.")
    return str(made.write(tmp_path / "work" / "s.jsonl"))


def test_the_api_counts_what_is_asked_for_without_its_secrets(
    session: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    with ScriptedApi([]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["context", session, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["counted_tokens"] is None
        assert scripted.requests == []
        assert run(["context", session, "--count", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert run(["context", session, "--count"]) == 0
        body: Any = scripted.requests[0].body

    assert report["counted_tokens"] > 0
    assert "the API counts" in capsys.readouterr().out
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user", "assistant"]
    assert [t["name"] for t in body["tools"]] == ["Read"]
    assert SECRET not in json.dumps(body)


def test_without_a_key_it_says_so(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["context", session, "--count"]) == 1
    assert capsys.readouterr().err.endswith("hint: set ANTHROPIC_API_KEY\n")


def test_what_each_stage_would_free_is_said_on_request(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["context", session, "--stages"]) == 0
    assert "What could be freed, each by itself" in capsys.readouterr().out
    assert run(["context", session, "--stages", "--json"]) == 0
    assert [each["stage"] for each in json.loads(capsys.readouterr().out)["stages"]][-1] == "full"
    assert run(["context", session, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"] is None
