"""Results that are too large are stored and get a stand-in of their tool's own shape; all others stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from core.errors import FoldmarkError
from core.model import JSON
from core.service.hooks import HEEDED, answer
from core.service.hooks.siblings import answered_chars
from core.settings import Settings
from core.testing import Transcript
from core.transcript.store import Store
from tests.service.hooks.build import USUAL, ask, limited, specific

LINES = "\n".join(f"line {n:06}" for n in range(20_000))
SMALL = limited(result_chars=1_000, preview_bytes=100)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return Transcript().prompt("go").write(tmp_path / "session.jsonl")


def use(transcript: Path, tool: str, response: JSON, settings: Settings = USUAL, ident: str = "toolu_1") -> str:
    return ask("PostToolUse", transcript, settings, tool_name=tool, tool_use_id=ident, tool_response=response)


def stored(transcript: Path, ident: str = "toolu_1") -> str:
    store = Store.beside(transcript)
    return next(store.read(body).decode() for body in store.bodies() if body.id == ident)


def test_the_settings_that_an_answer_depends_on_are_those_that_are_named(transcript: Path) -> None:
    heeded = set[str]()

    class Seen:
        def __getattr__(self, name: str) -> object:
            heeded.add(name)
            return getattr(USUAL, name)

    for text in (LINES, "x" * 20_000):
        use(transcript, "Bash", {"stdout": text}, cast("Settings", Seen()))

    assert heeded == {*HEEDED}


def test_an_output_of_the_shell_goes_whole_into_the_store(transcript: Path) -> None:
    response: dict[str, JSON] = {"stdout": LINES, "stderr": "warning", "interrupted": False, "isImage": False}

    said = specific(use(transcript, "Bash", response))

    new = said["updatedToolOutput"]
    assert said["hookEventName"] == "PostToolUse"
    assert isinstance(new, dict)
    assert {**new, "stdout": ""} == {**response, "stdout": ""}
    shown = str(new["stdout"])
    assert shown.startswith("<persisted-output>\nBash gave 239,999 characters")
    assert f"path: {transcript.with_suffix('')}/tool-results/toolu_1.txt" in shown
    assert "line 000150\n" in shown
    assert len(shown) < 2_500
    assert stored(transcript) == LINES


@pytest.mark.parametrize(
    ("tool", "response", "shape"),
    [
        ("mcp__db__query", LINES, str),
        ("mcp__db__query", [{"type": "text", "text": LINES}, {"type": "text", "text": "end"}], list),
        ("Agent", {"status": "completed", "content": [{"type": "text", "text": LINES}]}, list),
        ("WebFetch", {"code": 200, "result": LINES}, str),
        ("Grep", {"mode": "content", "content": LINES, "numFiles": 3}, str),
    ],
)
def test_the_stand_in_has_the_shape_of_the_tool(transcript: Path, tool: str, response: JSON, shape: type) -> None:
    new = specific(use(transcript, tool, response))["updatedToolOutput"]

    content = next(new[k] for k in ("content", "result") if k in new) if isinstance(new, dict) else new
    assert isinstance(content, shape)
    assert "<persisted-output>" in str(content)
    assert LINES in stored(transcript)


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {"stdout": "short"}),
        ("Bash", {"stdout": LINES, "isImage": True}),
        ("Bash", {"stdout": LINES, "persistedOutputPath": "/x/y.txt"}),
        ("Bash", {"stdout": 5, "stderr": LINES}),
        ("Bash", f"Error: {LINES}"),
        ("Read", {"type": "text", "file": {"content": LINES}}),
        ("Edit", {"originalFile": LINES}),
        ("mcp__memory__search", LINES),
        ("mcp__plugin_foldmark_foldmark__read_persisted_output", LINES),
        ("mcp__shots__take", [{"type": "text", "text": LINES}, {"type": "image", "source": {}}]),
        ("mcp__odd__one", {"structured": LINES}),
    ],
)
def test_what_stays_as_it_is(transcript: Path, tool: str, response: JSON) -> None:
    assert use(transcript, tool, response) == ""
    assert not transcript.with_suffix("").exists()


def test_without_a_call_nobody_could_read_it_back(transcript: Path) -> None:
    assert use(transcript, "Bash", {"stdout": LINES}, ident="") == ""


def test_of_a_session_that_is_not_kept_nothing_is_stored(tmp_path: Path) -> None:
    assert use(tmp_path / "session.jsonl", "Bash", {"stdout": LINES}) == ""
    assert use(tmp_path, "Bash", {"stdout": LINES}) == ""
    assert not (tmp_path / "session").exists()
    assert not tmp_path.with_suffix("").joinpath("tool-results").exists()


def test_a_short_input_is_not_even_looked_at() -> None:
    assert answer("PostToolUse", b"no JSON", lambda: USUAL) == ""


def test_limits_count(transcript: Path) -> None:
    assert "<persisted-output>" in use(transcript, "Bash", {"stdout": "x" * 1_001}, SMALL)
    assert use(transcript, "Bash", {"stdout": "x" * 999, "more": "y" * 999}, SMALL) == ""


def test_what_is_shorter_than_its_stand_in_stays(transcript: Path) -> None:
    assert use(transcript, "Bash", {"stdout": "x" * 120}, limited(result_chars=100, preview_bytes=100)) == ""


def test_secrets_are_neither_stored_nor_shown(transcript: Path) -> None:
    key = "AKIA" + "Q7XWZP3M5N8R2T4V"

    said = use(transcript, "Bash", {"stdout": f"key {key}\n{LINES}"})

    assert key not in said
    assert key not in stored(transcript)


def test_the_store_of_the_session_serves_its_subagents_too(transcript: Path) -> None:
    ask(
        "PostToolUse",
        transcript,
        agent_id="a1",
        agent_type="Explore",
        tool_name="Bash",
        tool_use_id="toolu_sub",
        tool_response={"stdout": LINES},
    )

    assert stored(transcript, "toolu_sub") == LINES


def test_without_a_store_the_result_stays(tmp_path: Path) -> None:
    transcript = Transcript().prompt("go").write(tmp_path / "session.jsonl")
    (tmp_path / "session").write_text("in the way")

    with pytest.raises((FoldmarkError, OSError)):
        use(transcript, "Bash", {"stdout": LINES})


class TestTogether:
    """The results of one response, of which some are there already."""

    LIMITS = limited(results_chars=100_000)

    def talk(self, agent_id: str = "") -> Transcript:
        talk = Transcript(agent_id=agent_id).prompt("go").use("Bash", "z" * 90_000, command="before")
        talk.call("Bash", "Read", "Bash", command="x")
        return talk.result("a" * 45_000, talk.calls[-3]).result("b" * 20_000, talk.calls[-2])

    def test_the_one_that_is_too_much_goes(self, tmp_path: Path) -> None:
        talk = self.talk()
        path = talk.write(tmp_path / "s.jsonl")

        assert use(path, "Bash", {"stdout": "c" * 35_000}, self.LIMITS, talk.calls[-1]) == ""
        assert "<persisted-output>" in use(path, "Bash", {"stdout": "c" * 35_001}, self.LIMITS, talk.calls[-1])

    def test_small_ones_stay_whatever_came_before(self, tmp_path: Path) -> None:
        talk = self.talk()
        path = talk.write(tmp_path / "s.jsonl")

        assert (
            use(path, "Bash", {"stdout": "c" * 9_999, "x": "y" * 9_999}, limited(results_chars=1), talk.calls[-1]) == ""
        )

    def test_those_of_a_subagent_are_in_its_own_file(self, tmp_path: Path) -> None:
        talk = self.talk("a1")
        talk.write(tmp_path / "s" / "subagents" / "agent-a1.jsonl")
        transcript = Transcript().prompt("go").write(tmp_path / "s.jsonl")

        said = ask(
            "PostToolUse",
            transcript,
            self.LIMITS,
            agent_id="a1",
            tool_name="Bash",
            tool_use_id=talk.calls[-1],
            tool_response={"stdout": "c" * 40_000},
        )

        assert "<persisted-output>" in said

    def test_a_call_that_is_not_written_yet_is_alone(self, tmp_path: Path) -> None:
        path = self.talk().write(tmp_path / "s.jsonl")

        assert use(path, "Bash", {"stdout": "c" * 49_000}, limited(results_chars=48_000), "toolu_other") != ""
        assert use(path, "Bash", {"stdout": "c" * 40_000}, self.LIMITS, "toolu_other") == ""
        assert use(tmp_path / "none.jsonl", "Bash", {"stdout": "c" * 40_000}, self.LIMITS) == ""

    def test_only_the_end_of_a_long_transcript_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        talk = self.talk()
        path = talk.write(tmp_path / "s.jsonl")
        monkeypatch.setattr("core.service.hooks.siblings.TAIL_BYTES", path.stat().st_size - 100)
        assert answered_chars(path, talk.calls[-1]) == 65_000
        monkeypatch.setattr("core.service.hooks.siblings.TAIL_BYTES", 50_000)
        assert answered_chars(path, talk.calls[-1]) == 0
