"""The tool that compacts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
from mcp_types import CallToolResult, CreateMessageResult, TextContent

from core.service.session import opened
from core.summarizers import make
from core.summarizers.base import Summary, SummaryRequest
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file
from mcp_server import work
from tests.mcp_server.desk import OTHER, Desk, calling, text_of
from tests.mcp_server.test_writing import Person, state_of

ASK = {"session": SESSION_ID, "keep_tokens": 10_000}
ONE_PLACE = (
    "partial takes one place. Name it with up_to, before which all is summarised, or with from_id, from which on all is"
)
SUMMARY = """## What was asked
Fix parsers 0 to 11, keep the words marmalade0 to marmalade11.

## State
`src/p0.py` to `src/p9.py` were read and are fixed. Next: say how full the context is.
"""


def result_of(answer: CallToolResult) -> dict[str, Any]:
    assert not answer.is_error, text_of(answer)
    assert isinstance(answer.structured_content, dict)
    return answer.structured_content


async def test_to_keep_more_than_there_is_anywhere_is_refused(desk: Desk) -> None:
    async with desk.client() as client:
        result = await client.call_tool("compact_session", {**ASK, "keep_tokens": 10**300})

    assert result.is_error
    assert "keep_tokens: Input should be less than or equal to 1000000000" in text_of(result)


async def test_the_calling_model_is_asked_for_a_summary_and_then_gives_it(desk: Desk, mode: str) -> None:
    before = state_of(desk.config.settings.claude_dir)
    async with desk.client(mode) as client:
        task = await client.call_tool("compact_session", {**ASK, "instructions": "Mind the marmalade."})
        assert state_of(desk.config.settings.claude_dir) == before
        done = await client.call_tool("compact_session", {**ASK, "summary": SUMMARY})

    assert task.structured_content is None
    assert "“Fix parser 0: keep the word marmalade0.”" in text_of(task)
    assert "Mind the marmalade." in text_of(task)
    assert "Then call compact_session again" in text_of(task)
    assert f"foldmark://session/{SESSION_ID}/view" in text_of(task)
    result = result_of(done)
    assert (result["how"], result["summarizer"], result["changed"]) == ("full", "host", True)
    assert result["tokens_after"] < result["tokens_before"]
    with opened(session_file(Path(result["output"]))) as session:
        assert "were read and are fixed" in str(session.messages[0].content)
    assert desk.session.read_bytes() == before[str(desk.session)]
    assert f"claude --resume {result['output_id']}" in text_of(done)


async def test_of_its_own_conversation_a_model_needs_no_text(desk: Desk) -> None:
    async with desk.client() as client:
        own = await client.call_tool("compact_session", {"keep_tokens": 0}, meta=calling(desk.call))

    assert "Write a summary" in text_of(own)
    assert "foldmark://" not in text_of(own)


async def test_a_summary_that_is_none_is_refused(desk: Desk, mode: str) -> None:
    before = state_of(desk.config.settings.claude_dir)
    async with desk.client(mode) as client:
        answer = await client.call_tool("compact_session", {**ASK, "summary": "I'm sorry, I cannot do that."})

    assert answer.is_error
    assert state_of(desk.config.settings.claude_dir) == before


async def test_another_summariser_needs_one_step(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        done = await client.call_tool("compact_session", {**ASK, "summarizer": "extractive"})
        again = await client.call_tool("compact_session", {**ASK, "summarizer": "extractive"})
        unknown = await client.call_tool("compact_session", {**ASK, "summarizer": "oracle"})

    assert result_of(done)["summarizer"] == "extractive"
    assert result_of(again)["changed"] is False
    assert unknown.is_error
    assert "extractive" in text_of(unknown)


async def test_a_dry_run_writes_nothing_and_needs_no_summary(desk: Desk, mode: str) -> None:
    before = state_of(desk.config.settings.claude_dir)
    async with desk.client(mode) as client:
        for summarizer in ("host", "sampling", "auto"):
            asked = {**ASK, "summarizer": summarizer, "dry_run": True, "in_place": True}
            result = result_of(await client.call_tool("compact_session", asked))
            assert result["reason"] == "dry run"

    assert state_of(desk.config.settings.claude_dir) == before


async def test_where_nothing_is_to_do_no_summary_is_asked_for(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        answer = await client.call_tool("compact_session", {"session": OTHER})

    assert result_of(answer)["how"] == "none"
    assert text_of(answer).startswith("nothing to do: ")


async def test_micro_writes_no_summary(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        answer = await client.call_tool("compact_session", {"session": SESSION_ID, "how": "micro"})
        refused = await client.call_tool("compact_session", {**ASK, "how": "micro"})

    assert result_of(answer)["how"] == "micro"
    assert result_of(answer)["changed"]
    assert refused.is_error
    assert text_of(refused).endswith("micro does not take all that was given. Leave out keep_tokens")


async def test_a_part_may_be_named(desk: Desk, mode: str) -> None:
    with opened(session_file(desk.session)) as session:
        prompts = [m.uuid for m in session.messages if m.kind == "prompt"]
    async with desk.client(mode) as client:
        asked = {"session": SESSION_ID, "how": "partial", "up_to": prompts[4]}
        task = await client.call_tool("compact_session", asked)
        done = await client.call_tool("compact_session", {**asked, "summary": SUMMARY})

    assert "“Fix parser 3: keep the word marmalade3.”" in text_of(task)
    assert result_of(done)["how"] == "partial"


async def test_results_are_stored_one_by_one(desk: Desk, mode: str) -> None:
    asked = {"session": SESSION_ID, "results": ["toolu_11111111_0003"]}
    async with desk.client(mode) as client:
        planned = result_of(await client.call_tool("compact_session", {**asked, "dry_run": True}))
        done = result_of(await client.call_tool("compact_session", asked))
        read = await client.call_tool(
            "read_persisted_output", {"session": done["output_id"], "id": asked["results"][0]}
        )
        wrong = await client.call_tool("compact_session", {**asked, "results": ["toolu_gone"]})

    assert (planned["how"], planned["reason"]) == ("micro", "dry run")
    assert (done["how"], done["changed"]) == ("micro", True)
    assert done["tokens_after"] == planned["tokens_after"] < done["tokens_before"]
    assert "def parse_2" in text_of(read)
    assert wrong.is_error


async def test_in_place_a_person_is_asked_once_when_the_summary_is_there(desk: Desk, mode: str) -> None:
    person, before = Person("accept", go_on=True), desk.session.read_bytes()
    desk.session.write_bytes(before[: before.rindex(b"\n", 0, -1) + 1])  # no call is open
    asked = {**ASK, "in_place": True}
    async with desk.client(mode, elicitation_callback=person) as client:
        task = await client.call_tool("compact_session", asked)
        assert person.asked == []
        done = await client.call_tool("compact_session", {**asked, "summary": SUMMARY})

    assert "Write a summary" in text_of(task)
    assert result_of(done)["output"] == str(desk.session)
    assert len(person.asked) == 1
    assert len(desk.session.read_bytes()) > len(before)


async def test_in_place_without_consent_nothing_is_done(desk: Desk, mode: str) -> None:
    before = state_of(desk.config.settings.claude_dir)
    asked = {**ASK, "in_place": True, "summary": SUMMARY, "confirmed": True}
    async with desk.client(mode, elicitation_callback=Person("cancel")) as client:
        answer = await client.call_tool("compact_session", asked)

    assert answer.is_error
    assert state_of(desk.config.settings.claude_dir) == before


async def test_the_model_of_the_host_writes_the_summary_where_it_lends_one(desk: Desk, mode: str) -> None:
    prompts = []

    async def lend(_context: Any, params: Any) -> CreateMessageResult:
        prompts.append(params.messages[0].content.text)
        content = TextContent(type="text", text=f"<summary>\n{SUMMARY}\n</summary>")
        return CreateMessageResult(role="assistant", content=content, model="lent")

    async with desk.client(mode, sampling_callback=lend) as client:
        done = await client.call_tool("compact_session", {**ASK, "summarizer": "sampling"})
        none = await client.call_tool("compact_session", {"session": OTHER, "summarizer": "sampling"})
    async with desk.client(mode) as client:
        refused = await client.call_tool("compact_session", {**ASK, "summarizer": "sampling", "keep_tokens": 5_000})

    (prompt,) = prompts
    assert "Write a summary" in prompt
    assert "Fixed parser 3 in src/p3.py." in prompt
    assert result_of(done)["changed"]
    assert result_of(none)["how"] == "none"
    assert refused.is_error
    assert "summarizer=host" in text_of(refused)


def talk() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in range(8):
        messages.append({"role": "user", "content": f"Question {turn} about the harbour. " + "It rained. " * 800})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Answer {turn}."}]})
    return messages


async def test_messages_come_in_and_fewer_go_out(desk: Desk, mode: str) -> None:
    asked = {"messages": talk(), "keep_tokens": 4_000}
    async with desk.client(mode) as client:
        task = await client.call_tool("compact_session", asked)
        done = await client.call_tool("compact_session", {**asked, "summary": "The harbour was discussed."})
        result = result_of(done)
        found = await client.call_tool("search_session", {"session": result["output"], "text": "Question 1 about"})
        undone = await client.call_tool("undo", {"session": result["output"], "confirmed": True})

    assert "Write a summary" in text_of(task)
    assert "foldmark://" not in text_of(task)
    assert "The harbour was discussed." in str(result["messages"][0])
    assert result["messages"][-1] == talk()[-1]
    assert len(result["messages"]) < 16
    assert Path(result["output"]).is_relative_to(desk.config.inline_dir)
    assert result_of(found)["hits"]
    assert not undone.is_error
    assert not Path(result["output"]).exists()


async def test_messages_are_checked(desk: Desk, mode: str) -> None:
    few = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    async with desk.client(mode) as client:
        same = await client.call_tool("compact_session", {"messages": few})
        wrong = await client.call_tool("compact_session", {"messages": [{"content": "x"}]})
        place = await client.call_tool("compact_session", {"messages": few, "in_place": True, "confirmed": True})

    assert result_of(same)["how"] == "none"
    assert [m["role"] for m in result_of(same)["messages"]] == ["user", "assistant"]
    for answer, text in ((wrong, "role"), (place, "leave out in_place")):
        assert answer.is_error
        assert text in text_of(answer)


async def test_files_that_messages_name_are_not_read(desk: Desk, tmp_path: Path) -> None:
    secret = tmp_path / "notes.txt"
    secret.write_text("the gate opens at nine", encoding="utf-8")
    messages = talk()
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": str(secret)}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "old text"}
    messages[2:2] = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    async with desk.client() as client:
        asked = {"messages": messages, "keep_tokens": 2_000, "summarizer": "extractive"}
        done = await client.call_tool("compact_session", asked)

    assert "gate opens" not in json.dumps(result_of(done))


class Slow:
    """A summariser that waits until it is told to go on, or that nobody waits for it."""

    name = "extractive"

    def __init__(self) -> None:
        self.begun, self.go_on = Event(), Event()
        self.cancelled: Callable[[], bool] = lambda: False

    def summarize(self, request: SummaryRequest) -> Summary:
        self.begun.set()
        any(self.go_on.wait(0.01) or self.cancelled() for _ in range(1_000))
        return make("extractive").summarize(request)


async def test_progress_is_reported_while_it_works(desk: Desk, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, beats = Slow(), list[str | None]()
    monkeypatch.setattr(work, "BEAT_S", 0.01)

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        beats.append(message)
        if len(beats) >= 3:
            slow.go_on.set()

    async with desk.with_(summarizer=lambda _name, _cancelled: slow).client(mode) as client:
        answer = await client.call_tool("compact_session", {**ASK, "summarizer": "auto"}, progress_callback=on_progress)

    assert result_of(answer)["changed"]
    assert beats[:3] == ["compacting"] * 3


async def test_what_is_cancelled_writes_nothing(desk: Desk, mode: str) -> None:
    slow = Slow()

    def summarizer(_name: str, cancelled: Callable[[], bool]) -> Slow:
        slow.cancelled = cancelled
        return slow

    before = state_of(desk.config.settings.claude_dir)
    async with desk.with_(summarizer=summarizer).client(mode) as client:
        async with anyio.create_task_group() as group:

            async def call() -> None:
                await client.call_tool("compact_session", {**ASK, "summarizer": "auto"})

            group.start_soon(call)
            await anyio.to_thread.run_sync(slow.begun.wait)
            group.cancel_scope.cancel()
        # The server answers on: what was cancelled holds nothing.
        status = await client.call_tool("context_status", {"session": SESSION_ID})

    assert not status.is_error
    assert slow.cancelled()
    assert state_of(desk.config.settings.claude_dir) == before


async def test_notes_stand_for_what_goes_only_where_that_is_asked_for(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        await client.call_tool("session_memory_update", {"session": SESSION_ID})
        before = state_of(desk.config.settings.claude_dir)
        task = await client.call_tool("compact_session", {"session": SESSION_ID})
        assert state_of(desk.config.settings.claude_dir) == before
        done = await client.call_tool("compact_session", {"session": SESSION_ID, "how": "memory"})

    assert "Write a summary" in text_of(task)
    assert "how=memory" in text_of(task)
    assert result_of(done)["how"] == "memory"
    assert result_of(done)["changed"]


async def test_where_no_summary_is_needed_that_is_said_before_anything_is_written(desk: Desk, mode: str) -> None:
    made = Transcript(SESSION_ID).prompt("Run it.").use("Bash", "out\n" * 30_000, command="make")
    made.answer("It ran.").write(desk.session)
    before = state_of(desk.config.settings.claude_dir)
    async with desk.client(mode) as client:
        said = await client.call_tool("compact_session", {"session": SESSION_ID, "keep_tokens": 20_000})
        assert state_of(desk.config.settings.claude_dir) == before
        done = await client.call_tool("compact_session", {"session": SESSION_ID, "how": "micro"})

    assert result_of(said)["reason"] == "no summary is needed: call again with how=micro"
    assert "how=micro" in text_of(said)
    assert result_of(done)["changed"]


async def test_a_part_without_a_place_is_refused_and_a_place_means_a_part(desk: Desk) -> None:
    with opened(session_file(desk.session)) as session:
        prompts = [m.uuid for m in session.messages if m.kind == "prompt"]
    async with desk.client() as client:
        refused = [
            await client.call_tool("compact_session", {"session": SESSION_ID, **asked})
            for asked in ({"how": "partial"}, {"how": "full", "up_to": prompts[4]}, {"up_to": "a", "from_id": "b"})
        ]
        part = await client.call_tool(
            "compact_session", {"session": SESSION_ID, "up_to": prompts[4], "summary": SUMMARY}
        )

    assert [answer.is_error for answer in refused] == [True, True, True]
    assert [text_of(answer).partition(": ")[2] for answer in refused] == [
        ONE_PLACE,
        "full does not take all that was given. Leave out up_to",
        ONE_PLACE,
    ]
    assert result_of(part)["how"] == "partial"


async def test_a_thin_summary_is_remarked_on_and_a_better_one_makes_another_session(desk: Desk) -> None:
    async with desk.client() as client:
        thin = await client.call_tool("compact_session", {**ASK, "summary": "Parsers were fixed."})
        better = await client.call_tool("compact_session", {**ASK, "summary": SUMMARY * 6})
        again = await client.call_tool("compact_session", {**ASK, "summary": SUMMARY * 6})

    assert "a summary of 19 characters stands for" in text_of(thin)
    assert "a summary of" not in text_of(better)
    assert result_of(better)["changed"]
    assert result_of(better)["output_id"] != result_of(thin)["output_id"]
    assert result_of(again)["output_id"] == result_of(better)["output_id"]
    assert not result_of(again)["changed"]


async def test_who_took_over_is_said_each_time_and_writes_no_second_copy(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        plain = result_of(await client.call_tool("compact_session", {**ASK, "summarizer": "extractive"}))
        lacking = await client.call_tool("compact_session", {**ASK, "summarizer": "anthropic"})

    assert "there is no key for the model API" in text_of(lacking)
    assert result_of(lacking)["output_id"] == plain["output_id"]
    assert not result_of(lacking)["changed"]
