"""The scripted API itself: what tests lean on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from core.api.anthropic import Access, AnthropicEndpoint
from core.api.endpoint import Reply
from core.errors import ApiError
from core.model import JSON
from core.testing import Request, ScriptedApi, WindowedModel, answers
from core.testing.api import OVER


def endpoint(api: ScriptedApi) -> AnthropicEndpoint:
    return AnthropicEndpoint(Access("key", base_url=api.url), clock=time.monotonic, sleep=time.sleep)


def body(*texts: str, mark: bool = True, **more: JSON) -> dict[str, JSON]:
    blocks: list[dict[str, JSON]] = [{"type": "text", "text": text} for text in texts]
    if mark:
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    content: list[JSON] = [*blocks]
    return {"model": "claude-haiku-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": content}], **more}


def test_a_script_is_followed_to_its_end() -> None:
    def echo(request: Request) -> answers.Answer:
        return answers.text(f"{len(request.body)} keys")

    with ScriptedApi([answers.text("one"), echo]) as api:
        assert [endpoint(api).send(body("a")).text for _ in range(2)] == ["one", "4 keys"]
        with pytest.raises(ApiError, match=OVER.message):
            endpoint(api).send(body("a"))

    assert len(api.bodies) == 3


def test_an_empty_text_a_call_a_refusal_and_a_cut_are_answers() -> None:
    script = [
        answers.text(""),
        answers.tool_call("Read", {"file_path": "/x"}),
        answers.refusal("no"),
        answers.cut_off("an"),
    ]
    with ScriptedApi(script) as api:
        replies: list[Reply] = [endpoint(api).send(body("a")) for _ in script]

    assert [r.stop_reason for r in replies] == ["end_turn", "tool_use", "refusal", "max_tokens"]
    assert [len(r.content) for r in replies] == [0, 1, 1, 1]


def test_a_message_that_is_not_streamed_comes_in_one_piece() -> None:
    with ScriptedApi([answers.text("whole")]) as api:
        message = endpoint(api).call("POST", "/v1/messages", body("a"))

    assert isinstance(message, dict)
    assert message["content"] == [{"type": "text", "text": "whole"}]


def test_a_window_refuses_what_is_over_it_and_says_by_how_much() -> None:
    model = WindowedModel(1_000, lambda _: answers.text("ok"), tokens_per_estimate=2.0)
    with ScriptedApi(model) as api:
        endpoint(api).send(body("short"))
        with pytest.raises(ApiError) as caught:
            endpoint(api).send(body("long " * 4_000))

    assert caught.value.kind == "too-long"
    assert caught.value.limit_tokens == 1_000
    assert caught.value.asked_tokens == model.prompts_tokens[-1] > 1_000


def test_a_window_may_keep_its_figures_to_itself() -> None:
    model = WindowedModel(10, lambda _: answers.text("ok"), states_figures=False)
    with ScriptedApi(model) as api, pytest.raises(ApiError) as caught:
        endpoint(api).send(body("long " * 400))

    assert (caught.value.kind, caught.value.asked_tokens) == ("too-long", None)


def test_a_prefix_that_was_marked_is_read_from_the_cache() -> None:
    tools: JSON = [{"name": "Read", "input_schema": {}, "cache_control": {"type": "ephemeral"}}]
    with ScriptedApi(WindowedModel(100_000, lambda _: answers.text("ok"))) as api:
        first = endpoint(api).send(body("one " * 500, tools=tools)).usage
        longer = endpoint(api).send(body("one " * 500, "two " * 500, tools=tools)).usage
        changed = endpoint(api).send(body("new " * 500, "two " * 500, tools=tools)).usage
        unmarked = endpoint(api).send(body("one " * 500, mark=False)).usage

    assert (first.cache_read_tokens, first.input_tokens) == (0, 0)
    assert longer.cache_read_tokens == first.cache_creation_tokens > 500
    assert longer.prompt_tokens == longer.cache_read_tokens + longer.cache_creation_tokens
    assert 0 < changed.cache_read_tokens < 100  # the tools are the same
    assert unmarked.input_tokens == unmarked.prompt_tokens > 400


def test_a_whole_answer_of_the_script_keeps_its_own_usage_and_failures_pass_through() -> None:
    script: Iterator[answers.Answer | answers.Failure] = iter(
        [answers.Answer((), usage={"input_tokens": 3, "output_tokens": 4}), answers.Failure(400, "", "bad")]
    )
    with ScriptedApi(WindowedModel(100_000, lambda _: next(script))) as api:
        assert endpoint(api).send(body("a")).usage.total_tokens == 7
        with pytest.raises(ApiError, match="bad"):
            endpoint(api).send(body("a"))
