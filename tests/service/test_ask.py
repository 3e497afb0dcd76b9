"""A question about an old session: what is sent, what is not, and what is written when that is asked for."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from core.compaction.full import Options
from core.defaults import KEEP_TOKENS
from core.errors import ApiError, InputError
from core.model import Block, block_text
from core.service.ask import MODEL, AskOptions, AskResult, Voice, ask
from core.service.job import Choices
from core.service.operation import Target
from core.service.session import opened
from core.summarizers.base import DEFAULT_BUDGET_CHARS
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.sessions import transcripts
from tests.turn.fake import Fake, too_long

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def asked(path: Path, fake: Fake, question: str = "What was fixed?", **fields: Any) -> AskResult:
    heard: list[str] = fields.pop("heard", [])
    voice = Voice(fake, lambda: NOW, lambda: 0.0, on_text=heard.append)
    keep_tokens, machine = fields.pop("keep_tokens", KEEP_TOKENS), fields.pop("machine", None)
    choices = Choices(Options(keep_tokens, DEFAULT_BUDGET_CHARS), Target(path.parent / "locks"))
    return ask(session_file(path), question, choices, voice, AskOptions(**fields), machine)


def story() -> Transcript:
    made = Transcript(model="claude-opus-4-5").prompt("Fix the parser. The password is hunter2hunter2.")
    made.use("Read", "1\tdef parse():", thinking="Where is it?", file_path="p.py")
    return made.use("Bash", "2 passed", command="make test").answer("Fixed.", thinking="Done.")


def sent(fake: Fake) -> str:
    return str(fake.bodies[-1])


def test_it_is_answered_from_the_session_and_nothing_is_written(tmp_path: Path) -> None:
    path = story().write(tmp_path / "s.jsonl")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    heard: list[str] = []

    result = asked(path, fake := Fake(), heard=heard)

    assert (result.answer, heard, result.requests) == ("Done.", ["Done."], 1)
    assert result.model == "claude-opus-4-5"
    assert result.usage.output_tokens > 0
    assert result.usd is not None
    assert result.usd > 0
    assert (result.output, result.output_id) == ("", "")
    assert fake.bodies[0]["messages"][-1]["content"][-1]["text"] == "What was fixed?"
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_tools_that_the_session_used_are_declared_and_may_not_be_called(tmp_path: Path) -> None:
    asked(story().write(tmp_path / "s.jsonl"), fake := Fake())

    assert [t["name"] for t in fake.bodies[0]["tools"]] == ["Read", "Bash"]
    assert all(t["input_schema"] == {"type": "object"} for t in fake.bodies[0]["tools"])
    assert fake.bodies[0]["tool_choice"] == {"type": "none"}


def test_a_session_without_tools_declares_none(tmp_path: Path) -> None:
    asked(Transcript().prompt("Hi.").answer("Hello.").write(tmp_path / "s.jsonl"), fake := Fake())

    assert {"tools", "tool_choice"}.isdisjoint(fake.bodies[0])


def test_no_secret_and_no_thinking_leaves_the_machine(tmp_path: Path) -> None:
    asked(story().write(tmp_path / "s.jsonl"), fake := Fake(), "Is token=ghp_0123456789abcdefABCDEF0123456789abcd ok?")

    assert "hunter2" not in sent(fake)
    assert "ghp_0123456789" not in sent(fake)
    assert "Where is it?" not in sent(fake)


@pytest.mark.parametrize(
    ("own", "chosen", "model"),
    [
        ("claude-opus-4-5-20251101", "", "claude-opus-4-5"),
        ("claude-opus-4-5", "claude-haiku-5-5", "claude-haiku-5-5"),
        ("some-other-model", "", MODEL),
    ],
)
def test_the_sessions_own_model_answers_unless_another_is_named(
    own: str, chosen: str, model: str, tmp_path: Path
) -> None:
    path = Transcript(model=own).prompt("Hi.").answer("Hello.").write(tmp_path / "s.jsonl")
    asked(path, fake := Fake(), model_id=chosen)

    assert fake.bodies[0]["model"] == model


def test_what_only_the_server_or_a_loaded_tool_could_read_is_left_out(tmp_path: Path) -> None:
    reference: list[Any] = [{"type": "tool_reference", "tool_name": "x"}, {"type": "text", "text": "found x"}]
    made = Transcript().prompt("Find.").use("Tool.Search", reference, query="x")
    blocks: list[Block] = [{"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}]
    made.respond(*blocks, {"type": "text", "text": "So."})
    asked(made.write(tmp_path / "s.jsonl"), fake := Fake())

    assert "tool_reference" not in sent(fake)
    assert "server_tool_use" not in sent(fake)
    assert "found x" in sent(fake)
    assert [t["name"] for t in fake.bodies[0]["tools"]] == ["Tool_Search"]


def test_another_clients_session_is_asked_with_its_own_system_prompt_and_tools(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(
        '{"system": "Be brief.", "tools": [{"name": "Run", "input_schema": {"type": "object", "properties": {}}}],'
        '"messages": [{"role": "user", "content": "Go."},'
        '{"role": "assistant", "content": [{"type": "tool_use", "id": "t.1", "name": "Run", "input": {}}]},'
        '{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t.1", "content": [{"type": "x"}]}]},'
        '{"role": "assistant", "content": "Ran."}]}'
    )
    result = asked(path, fake := Fake(), save=True)

    assert fake.bodies[0]["model"] == MODEL
    assert fake.bodies[0]["system"][0]["text"] == "Be brief."
    assert "properties" in fake.bodies[0]["tools"][0]["input_schema"]
    saved = Path(result.output).read_text()
    assert "What was fixed?" in saved
    assert "Done." in saved


def test_a_compaction_of_the_api_is_sent_as_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(
        '{"messages": [{"role": "assistant", "content": [{"type": "compaction", "content": "It was long."}]},'
        '{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Yes."}]}'
    )
    asked(path, fake := Fake())

    assert [m["role"] for m in fake.bodies[0]["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert fake.bodies[0]["messages"][1]["content"][0] == {"type": "text", "text": "It was long."}


def test_what_fits_is_sent_whole(tmp_path: Path) -> None:
    made = Transcript(model="claude-opus-4-5").prompt("Read all.")
    for number in range(20):
        made.use("Bash", f"line {number} " * 900, command=f"cat {number}")
    result = asked(made.answer("Read.").write(tmp_path / "s.jsonl"), fake := Fake())

    assert [s.stage for s in result.stages] == ["read-dedup"]
    assert all(f"line {number} line" in sent(fake) for number in range(20))


def long_story(turns: int = 60) -> Transcript:
    made = Transcript(model="claude-opus-4-5")
    for number in range(turns):
        made.prompt(f"Request {number}.").use("Grep", f"hit {number} in the code\n" * 900, pattern=f"x{number}")
        made.answer(f"Answer {number}.")
    return made


def test_what_does_not_fit_goes_through_all_stages_and_is_compacted(tmp_path: Path) -> None:
    result = asked(long_story().write(tmp_path / "s.jsonl"), fake := Fake())

    assert {"budget", "snip", "microcompact", "collapse"} <= {s.stage for s in result.stages}
    assert sum(s.tokens_freed for s in result.stages) > 50_000
    assert fake.refused == 0
    assert fake.count(fake.bodies[0]) < 167_000


def test_a_prompt_that_is_too_long_is_recovered_from_and_said(tmp_path: Path) -> None:
    path = story().prompt("More.").answer("Yes.").write(tmp_path / "s.jsonl")
    fake = Fake(failures=[too_long(210_000, 200_000)])

    result = asked(path, fake)

    assert result.answer == "Done."
    assert len(fake.bodies) == 2
    assert result.recovery[0].steps
    assert result.recovery[0].asked_tokens == 210_000


@pytest.mark.parametrize("question", ["", " \n"])
def test_without_a_question_there_is_nothing_to_ask(question: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no question"):
        asked(story().write(tmp_path / "s.jsonl"), Fake(), question)


def test_a_session_without_messages_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no messages"):
        asked(Transcript().beside("summary", summary="x").write(tmp_path / "s.jsonl"), Fake())


def view_of(path: str | Path) -> list[tuple[str, str]]:
    with opened(session_file(Path(path))) as session:
        return [(m.role, "".join(block_text(b) for b in m.content)) for m in session.messages]


def test_a_saved_session_holds_all_that_was_and_the_question_and_the_answer(tmp_path: Path) -> None:
    path = story().write(tmp_path / "s.jsonl")
    before = path.read_bytes()

    result = asked(path, Fake(), save=True)

    assert path.read_bytes() == before
    assert view_of(result.output) == [*view_of(path), ("user", "What was fixed?"), ("assistant", "Done.")]
    assert result.output_id == Path(result.output).stem
    with opened(session_file(Path(result.output))) as session:
        assert session.title == "ask: Fix the parser. The password is [REDACTED:password]."
        newest = session.messages[-1].usage
        assert newest is not None
        assert newest.prompt_tokens > 20_000  # as the client counts it: with its own system prompt


def test_a_saved_session_that_was_compacted_resumes_behind_its_summary(tmp_path: Path) -> None:
    made = Transcript(model="claude-opus-4-5").prompt("Read this: " + "word " * 150_000).answer("Read.")
    for number in range(20):
        made.prompt(f"Request {number}: " + "word " * 300).answer(f"Answer {number}.")
    path = made.write(tmp_path / "s.jsonl")

    result = asked(path, Fake(), save=True, keep_tokens=10_000)

    assert "full" in {s.stage for s in result.stages}
    view = view_of(result.output)
    assert view[0][1].startswith("# Summary")
    assert view[1:-2] == view_of(path)[-len(view[1:-2]) :]
    assert view[-2:] == [("user", "What was fixed?"), ("assistant", "Done.")]
    assert list((Path(result.output).with_suffix("") / "tool-results").glob("*.md"))


def test_a_saved_session_that_was_peeled_keeps_its_first_prompt(tmp_path: Path) -> None:
    made = story()
    for number in range(8):
        made.prompt(f"More {number}.").use("Grep", "x y z " * 400, pattern="x").answer("Yes.")
    path = made.write(tmp_path / "s.jsonl")

    result = asked(path, Fake(failures=[too_long(20_000, 10_000)]), save=True)

    view = view_of(result.output)
    assert any("Fix the parser." in text for _, text in view)
    assert any("peeled off" in text for _, text in view)
    assert view[-1] == ("assistant", "Done.")


def test_asked_again_on_what_was_saved_the_first_question_is_there(tmp_path: Path) -> None:
    first = asked(story().write(tmp_path / "s.jsonl"), Fake(), save=True)

    second = asked(Path(first.output), fake := Fake(), "And then?", save=True)

    assert "What was fixed?" in sent(fake)
    assert view_of(second.output)[-4:-2] == view_of(first.output)[-2:]


def test_an_error_of_the_api_leaves_nothing_behind(tmp_path: Path) -> None:
    path = long_story().write(tmp_path / "s.jsonl")
    fake = Fake(failures=[ApiError("overloaded", "later")])

    with pytest.raises(ApiError, match="later"):
        asked(path, fake, save=True)

    assert [p.name for p in tmp_path.iterdir() if p.name not in ("home", "locks")] == ["s.jsonl"]


@given(transcripts())
@settings(max_examples=25)
def test_whatever_a_session_holds_it_can_be_asked_and_saved(made: Transcript) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = made.write(Path(folder) / "s.jsonl")
        result = asked(path, Fake(), save=True)
        assert view_of(result.output)[-2:] == [("user", "What was fixed?"), ("assistant", "Done.")]
