"""The API's own compaction as a summariser."""

from __future__ import annotations

import time

import pytest

from core.api.anthropic import Access, AnthropicEndpoint
from core.errors import ApiError, SummaryRejected
from core.model import JSON, Message
from core.summarizers.api_compaction import ApiCompaction
from core.summarizers.base import SummaryRequest
from core.testing import ScriptedApi, answers
from tests.summarizers.build import answer, call, result, said

MESSAGES = [
    said("Never push."),
    answer("", {"type": "thinking", "thinking": "hm", "signature": "s"}, call("t1", "Read", file_path="/w/a.py")),
    result("t1", "def f(): ..."),
    said("the date is", kind="meta"),
    answer("", call("t2", "Bash", command="ls")),
]


def compaction(api: ScriptedApi) -> ApiCompaction:
    endpoint = AnthropicEndpoint(Access("key", base_url=api.url), clock=time.monotonic, sleep=lambda _: None)
    return ApiCompaction(endpoint, "claude-haiku-5-5")


def test_the_text_of_the_block_is_the_summary() -> None:
    with ScriptedApi([answers.compaction("Read a.py, all is well.")]) as api:
        summary = compaction(api).summarize(SummaryRequest(MESSAGES, instructions="Mention files.", previous="earlier"))

    assert summary.summarizer == "api"
    assert "Read a.py, all is well." in summary.text
    assert "Never push." in summary.text
    assert (summary.usage.input_tokens, summary.usage.output_tokens) == (1_000, 200)


def test_the_conversation_is_sent_whole_with_pairs_closed_and_without_thinking() -> None:
    with ScriptedApi([answers.compaction("x")]) as api:
        compaction(api).summarize(SummaryRequest(MESSAGES, instructions=" Mention files. ", previous="earlier"))

    [request] = api.requests
    assert request.betas == ["compact-2026-09-04"]
    assert request.body["compaction"] == {"type": "summarize", "instructions": "Mention files."}
    messages = request.body["messages"]
    assert isinstance(messages, list)
    kinds = [
        [b["type"] for b in m["content"] if isinstance(b, dict)]
        for m in messages
        if isinstance(m, dict) and isinstance(m["content"], list)
    ]
    assert kinds == [["text", "text"], ["tool_use"], ["tool_result"], ["tool_use"], ["tool_result"]]
    tools = request.body["tools"]
    assert isinstance(tools, list)
    assert [t["name"] for t in tools if isinstance(t, dict)] == ["Read", "Bash"]


def test_a_fork_is_sent_as_it_is_without_what_cannot_go_along() -> None:
    fork: dict[str, JSON] = {
        "model": "claude-opus-4-8",
        "max_tokens": 5,
        "system": "s",
        "messages": [{"role": "user", "content": "hi"}],
        "context_management": {"edits": []},
    }
    with ScriptedApi([answers.compaction("x")]) as api:
        compaction(api).summarize(SummaryRequest(MESSAGES, fork=fork))

    [body] = api.bodies
    assert (body["model"], body["system"], body["messages"]) == (fork["model"], fork["system"], fork["messages"])
    assert "context_management" not in body
    assert body["compaction"] == {"type": "summarize"}


@pytest.mark.parametrize(
    "bad",
    [answers.compaction(""), answers.text(""), answers.refusal(), answers.text("<summary>no block</summary>")],
    ids=["empty block", "nothing", "refusal", "a text"],
)
def test_no_block_is_no_summary(bad: answers.Answer) -> None:
    with ScriptedApi([bad]) as api, pytest.raises(SummaryRejected):
        compaction(api).summarize(SummaryRequest(MESSAGES))


def test_an_error_of_the_api_is_passed_on() -> None:
    codes = answers.Failure(400, "invalid_request_error", "compaction_incomplete_turn")
    with ScriptedApi([codes]) as api, pytest.raises(ApiError) as caught:
        compaction(api).summarize(SummaryRequest(list[Message](MESSAGES)))

    assert caught.value.kind == "request"
