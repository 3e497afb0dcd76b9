"""`foldmark ask` against a scripted API: the answer on stdout as it comes, all else on stderr."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cli.main import run
from core.model import JSON
from core.testing import ScriptedApi, Transcript
from core.testing.answers import cut_off, prompt_too_long, text

EXAMPLE = Path(__file__).parents[3] / "examples" / "session.jsonl"


@pytest.fixture
def session(tmp_path: Path) -> str:
    made = Transcript().prompt("Fix the parser.").use("Read", "1\tdef parse():", file_path="p.py").answer("Fixed.")
    return str(made.write(tmp_path / "work" / "s.jsonl"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")


def test_a_real_session_is_answered_with_one_refusal_in_between(
    api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([prompt_too_long(210_000, 200_000), text("The coupon code.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", str(EXAMPLE), "What was broken?"]) == 0

    printed = capsys.readouterr()
    assert printed.out == "The coupon code.\n"
    assert printed.err.startswith("asked again: ")
    assert "210000 tokens > 200000" in printed.err
    assert len(scripted.bodies) == 2
    assert scripted.bodies[0]["stream"] is True
    first, second = (len(json.dumps(b)) for b in scripted.bodies)
    assert second < 0.98 * first


def test_json_holds_the_answer_its_price_and_what_was_done(
    session: str, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([prompt_too_long(210_000, 200_000), text("The parser.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", session, "What was fixed?", "--json", "--model", "claude-haiku-5-5"]) == 0

    result = json.loads(capsys.readouterr().out)
    assert (result["answer"], result["requests"]) == ("The parser.", 1)
    assert result["usd"] > 0
    assert result["recovery"][0]["steps"][0] == "peel"
    assert scripted.bodies[0]["model"] == "claude-haiku-5-5"


def test_save_says_how_to_go_on(
    session: str, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([text("The parser.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", session, "What was fixed?", "--save"]) == 0

    printed = capsys.readouterr()
    assert printed.out.startswith("The parser.\nwritten: ")
    output = printed.out.splitlines()[1].removeprefix("written: ")
    assert run(["view", output]) == 0
    assert "What was fixed?" in capsys.readouterr().out
    assert run(["undo", output]) == 0
    assert not Path(output).exists()


def test_an_answer_that_was_cut_is_said_to_be(
    session: str, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([cut_off("The par")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", session, "What was fixed?"]) == 0

    assert "the answer was cut" in capsys.readouterr().err


def test_half_an_answer_at_the_end_of_the_window_gets_a_line_of_its_own(
    session: str, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([text("The par", "model_context_window_exceeded"), text("The parser.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", session, "What was fixed?"]) == 0

    printed = capsys.readouterr()
    assert printed.out == "The par\nThe parser.\n"
    assert printed.err.startswith("asked again: the window is full")


def test_what_an_answer_holds_does_not_steer_the_terminal(
    session: str, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([text("one\x1b[2Jtwo\nthree")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        run(["ask", session, "What was fixed?"])

    assert "\x1b" not in capsys.readouterr().out


def test_without_a_key_it_says_what_is_missing(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", session, "What?"]) == 1

    assert "hint: set ANTHROPIC_API_KEY" in capsys.readouterr().err


def test_out_without_save_is_wrong_usage(session: str, api: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", session, "What?", "--out", "x"]) == 2


def test_the_warnings_of_the_turn_are_shown(
    tmp_path: Path, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Transcript(model="claude-opus-4-5").prompt("Begin.").answer("Yes.")
    path = made.write(tmp_path / "s.jsonl")
    monkeypatch.setenv("FOLDMARK_WINDOW_TOKENS", "60000")
    with ScriptedApi([text("Long.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", str(path), "Read this: " + "word " * 25_000]) == 0

    assert "warning: compacting makes too little room" in capsys.readouterr().err


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with rules, in which a session has read a file that is another one now."""
    made = tmp_path / "app"
    made.mkdir()
    (made / "CLAUDE.md").write_text("Use tabs.")
    (made / "p.py").write_text("def parse():\n    return 2\n")
    subprocess.run(["git", "init", "-q", "-b", "feature-x", made], check=True)
    talk = Transcript(cwd=str(made)).prompt("Fix the parser.").use("Read", "1\tdef parse():", file_path=f"{made}/p.py")
    file: dict[str, JSON] = {
        "filePath": f"{made}/p.py",
        "content": "def parse():\n    return 1\n",
        "numLines": 3,
        "startLine": 1,
    }
    talk.rows[-1]["toolUseResult"] = {"type": "text", "file": {**file, "totalLines": 3}}
    talk.answer("Fixed.").write(made / "s.jsonl")
    return made


def test_the_answer_knows_what_has_changed_since(
    project: Path, scratch_home: Path, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (scratch_home / ".claude").mkdir()
    (scratch_home / ".claude" / "CLAUDE.md").write_text("Be brief.")
    with ScriptedApi([text("It returns 2 now."), text("The same.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", str(project / "s.jsonl"), "What does it return?"]) == 0
        assert "told of date_change, changed_files" in capsys.readouterr().err
        assert run(["ask", str(project / "s.jsonl"), "What does it return?", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["attachments"] == ["date_change", "changed_files"]
    sent = json.dumps(scripted.bodies[0])
    assert "Branch: feature-x" in sent
    assert sent.index("Be brief.") < sent.index("Use tabs.") < sent.index("Fix the parser.")
    assert sent.index("What does it return?") < sent.index("-    return 1\\n+    return 2")


def test_bare_sends_nothing_but_the_session(
    project: Path, api: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedApi([text("One.")]) as scripted:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", scripted.url)
        assert run(["ask", str(project / "s.jsonl"), "What does it return?", "--bare", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["attachments"] == []
    sent = json.dumps(scripted.bodies[0])
    assert [word for word in ("feature-x", "Use tabs.", "return 2") if word in sent] == []
