"""The endpoint, through the real SDK, against an API that follows a script."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.api.anthropic import Access, AnthropicEndpoint
from core.api.patience import Patience
from core.errors import ApiError
from core.model import JSON, Usage
from core.testing import ScriptedApi, answers

BODY: dict[str, JSON] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
}


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def endpoint(
    api: ScriptedApi,
    time: Time | None = None,
    patience: Patience | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AnthropicEndpoint:
    time = time or Time()
    access = Access("key", base_url=api.url)
    return AnthropicEndpoint(access, clock=time.clock, sleep=time.sleep, patience=patience, cancelled=cancelled)


def failure(api: ScriptedApi, patience: Patience | None = None) -> ApiError:
    with pytest.raises(ApiError) as caught:
        endpoint(api, patience=patience).send(BODY)
    return caught.value


def test_an_answer_is_streamed_and_comes_whole() -> None:
    pieces: list[str] = []
    with ScriptedApi([answers.text("Hello, a somewhat longer world. " * 3)]) as api:
        reply = endpoint(api).send(BODY, pieces.append)

    assert reply.text == "".join(pieces) == "Hello, a somewhat longer world. " * 3
    assert len(pieces) > 2
    assert (reply.stop_reason, reply.model, reply.id) == ("end_turn", "claude-haiku-4-5", "msg_scripted")
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 10
    sent = api.requests[0]
    assert sent.body == {**BODY, "stream": True}
    assert "key" in sent.headers["authorization"]
    assert sent.betas == []


def test_every_kind_of_block_is_put_together() -> None:
    blocks: tuple[dict[str, JSON], ...] = (
        {"type": "thinking", "thinking": "Let me see, " * 4, "signature": "c2ln"},
        {"type": "text", "text": "Reading."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a", "limit": 3}},
        {"type": "compaction", "content": "S", "signature": "c2ln", "tool_changes": []},
        {"type": "unheard_of", "value": [1]},
    )
    with ScriptedApi([answers.Answer(blocks, "tool_use")]) as api:
        reply = endpoint(api).send(BODY)

    assert reply.content == blocks


def test_what_the_sdk_does_not_know_is_sent_and_read() -> None:
    odd: dict[str, JSON] = {
        **BODY,
        "unheard_of": {"x": 1},
        "messages": [{"role": "user", "content": [{"type": "odd"}]}],
    }
    usage: dict[str, JSON] = {"input_tokens": 1, "output_tokens": 2, "cache_deleted_input_tokens": 7}
    with ScriptedApi([answers.Answer((), usage=usage)]) as api:
        reply = endpoint(api).send(odd)

    assert api.bodies[0] == {**odd, "stream": True}
    assert reply.raw["usage"] == usage


def test_beta_headers_follow_from_the_body() -> None:
    with ScriptedApi([answers.text("ok")]) as api:
        endpoint(api).send({**BODY, "context_management": {"edits": []}, "compaction": {"type": "summarize"}})

    assert api.requests[0].betas == ["context-management-2025-06-27", "compact-2026-09-04"]


def test_without_a_key_nothing_is_sent() -> None:
    with ScriptedApi([]) as api:
        time = Time()
        keyless = AnthropicEndpoint(Access(base_url=api.url), clock=time.clock, sleep=time.sleep)
        with pytest.raises(ApiError) as caught:
            keyless.send(BODY)

    assert caught.value.kind == "auth"
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    assert api.requests == []


def test_a_token_of_a_gateway_is_sent_as_one() -> None:
    with ScriptedApi([answers.text("ok")]) as api:
        time = Time()
        access = Access(auth_token="tok", base_url=api.url)
        AnthropicEndpoint(access, clock=time.clock, sleep=time.sleep).send(BODY)

    assert api.requests[0].headers["authorization"] == "Bearer tok"
    assert "tok" not in repr(access)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (answers.prompt_too_long(215_000, 200_000), "too-long"),
        (answers.prompt_too_long(), "too-long"),
        (answers.body_too_large(), "too-long"),
        (answers.Failure(401, "authentication_error", "invalid x-api-key"), "auth"),
        (answers.Failure(400, "invalid_request_error", "Could not process image"), "media"),
        (
            answers.Failure(429, "rate_limit_error", "no", details={"error_code": "enforced_spend_limit_reached"}),
            "spend",
        ),
        (answers.error_in_stream("invalid_request_error", "no", "some text"), "request"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_failure_that_waiting_does_not_mend_is_raised_at_once(first: answers.Failure, kind: str) -> None:
    with ScriptedApi([first, answers.text("never")]) as api:
        assert failure(api).kind == kind

    assert len(api.requests) == 1


def test_the_figures_of_a_prompt_that_is_too_long_arrive() -> None:
    with ScriptedApi([answers.prompt_too_long(215_000, 200_000)]) as api:
        error = failure(api)

    assert (error.asked_tokens, error.limit_tokens) == (215_000, 200_000)
    assert "req_scripted" in str(error)


@pytest.mark.parametrize(
    "first",
    [
        answers.overloaded(),
        answers.rate_limited(),
        answers.disconnect(),
        answers.disconnect("a part of an answer"),
        answers.error_in_stream(said="a part of an answer"),
        answers.Failure(500, "api_error", "Internal server error"),
        answers.Failure(503, "", "<html>"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_waiting_mends_is_tried_again(first: answers.Failure | answers.Answer) -> None:
    time = Time()
    with ScriptedApi([first, first, answers.text("at last")]) as api:
        assert endpoint(api, time).send(BODY).text == "at last"

    assert len(api.requests) == 3
    assert sum(time.slept) == pytest.approx(1.5)  # 0.5, then 1


USED: dict[str, JSON] = {"input_tokens": 700, "cache_read_input_tokens": 300, "output_tokens": 5}


def test_tries_that_broke_off_are_charged_for_and_those_that_were_refused_are_not() -> None:
    broken = replace(answers.disconnect("a part"), usage=USED)
    with ScriptedApi([broken, answers.overloaded(), broken, answers.text("at last")]) as api:
        reply = endpoint(api).send(BODY)
    with ScriptedApi(lambda _: broken) as api:
        error = failure(api, patience=Patience(tries=3))
    with ScriptedApi(lambda _: answers.overloaded()) as api:
        refused = failure(api)

    assert (reply.lost.input_tokens, reply.lost.cache_read_tokens) == (1_400, 600)
    assert error.usage.prompt_tokens == 3_000
    assert refused.usage == Usage()


def test_a_call_that_is_cancelled_or_out_of_time_in_its_stream_is_charged_for() -> None:
    time, pieces = Time(), list[str]()
    said = replace(answers.text("a long answer " * 20), usage=USED)
    with ScriptedApi([said]) as api, pytest.raises(ApiError) as cancelled:
        endpoint(api, cancelled=lambda: bool(pieces)).send(BODY, pieces.append)

    def late(_text: str) -> None:
        time.now += 400

    with ScriptedApi([said]) as api, pytest.raises(ApiError) as ended:
        endpoint(api, time).send(BODY, late)

    assert (cancelled.value.kind, ended.value.kind) == ("cancelled", "deadline")
    assert cancelled.value.usage.prompt_tokens == ended.value.usage.prompt_tokens == 1_000


def test_the_api_is_waited_for_as_long_as_it_asks() -> None:
    time = Time()
    with ScriptedApi([answers.rate_limited(7), answers.text("at last")]) as api:
        assert endpoint(api, time).send(BODY).text == "at last"

    assert sum(time.slept) == pytest.approx(7)


def test_a_wait_longer_than_the_time_that_is_left_is_not_begun() -> None:
    time = Time()
    with (
        ScriptedApi([answers.rate_limited(4_294_967), answers.text("never")]) as api,
        pytest.raises(ApiError) as caught,
    ):
        endpoint(api, time).send(BODY)

    assert (caught.value.kind, caught.value.retry_after_s, time.slept) == ("rate", 4_294_967, [])


def test_tries_come_to_an_end() -> None:
    with ScriptedApi(lambda _: answers.overloaded()) as api:
        assert failure(api, patience=Patience(tries=3)).kind == "overloaded"

    assert len(api.requests) == 3


def test_text_that_was_handed_out_is_not_asked_for_again() -> None:
    pieces: list[str] = []
    with ScriptedApi([answers.disconnect("Hello"), answers.text("never")]) as api, pytest.raises(ApiError) as caught:
        endpoint(api).send(BODY, pieces.append)

    assert (caught.value.kind, "".join(pieces), len(api.requests)) == ("network", "Hello", 1)


def test_a_deadline_ends_a_stream() -> None:
    time = Time()

    def late(text: str) -> None:
        time.now += 400

    with ScriptedApi([answers.text("a long answer " * 20)]) as api, pytest.raises(ApiError) as caught:
        endpoint(api, time).send(BODY, late)

    assert caught.value.kind == "deadline"
    assert "600" in str(caught.value)


def test_a_stream_that_falls_silent_is_given_up() -> None:
    slow = answers.text("an answer that takes its time", pause_s=5)
    with ScriptedApi([slow, answers.text("at last")]) as api:
        assert endpoint(api, patience=Patience(silence_s=0.2)).send(BODY).text == "at last"


def test_a_stream_that_does_nothing_but_ping_is_ended_too() -> None:
    looks: list[bool] = []

    def cancelled() -> bool:
        looks.append(True)
        return len(looks) > 5

    pinging = replace(answers.text("never", pause_s=0.05), pings=400)
    with ScriptedApi([pinging]) as api, pytest.raises(ApiError) as caught:
        endpoint(api, cancelled=cancelled).send(BODY)

    assert caught.value.kind == "cancelled"


@pytest.mark.parametrize("data", ['{"error": {"type": "overloaded_error"}}', "overloaded_error", "[]"])
def test_any_error_in_a_stream_has_a_kind(data: str) -> None:
    from core.api.anthropic import _in_stream

    error = _in_stream(data, {"request-id": "req_1"})

    assert error.kind == ("overloaded" if "overloaded" in data else "request")
    assert str(error).endswith("(request req_1)")


def test_a_cancelled_call_ends_between_two_events() -> None:
    pieces: list[str] = []
    with ScriptedApi([answers.text("a long answer " * 20)]) as api, pytest.raises(ApiError) as caught:
        endpoint(api, cancelled=lambda: bool(pieces)).send(BODY, pieces.append)

    assert (caught.value.kind, len(pieces)) == ("cancelled", 1)


def test_a_cancelled_wait_ends_soon() -> None:
    time = Time()
    with ScriptedApi([answers.rate_limited(60), answers.text("never")]) as api, pytest.raises(ApiError) as caught:
        endpoint(api, time, cancelled=lambda: time.now > 101).send(BODY)

    assert caught.value.kind == "cancelled"
    assert time.now < 102


def test_connections_are_closed_with_the_endpoint_whatever_the_collector_comes_to_first() -> None:
    refused = answers.body_too_large()
    with ScriptedApi([refused]) as api, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        gc.disable()
        try:
            failed = endpoint(api)
            failed._client()
            gc.collect(0)  # what comes now is of a younger generation, which a full collection begins with
            with pytest.raises(ApiError) as caught:
                failed.send(BODY)
            around: list[object] = [failed, caught.value]
            around.append(around)
            del failed, caught, around
            gc.collect()
        finally:
            gc.enable()

    assert [str(w.message) for w in warned] == []


def test_no_server_is_a_failure_of_the_network() -> None:
    with ScriptedApi([]) as api:
        url = api.url
    time = Time()
    nowhere = AnthropicEndpoint(
        Access("k", base_url=url), clock=time.clock, sleep=time.sleep, patience=Patience(tries=2)
    )
    with pytest.raises(ApiError) as caught:
        nowhere.send(BODY)

    assert caught.value.kind == "network"
    assert caught.value.hint


def test_half_a_character_is_refused_before_it_is_sent() -> None:
    with ScriptedApi([]) as api, pytest.raises(ApiError) as caught:
        endpoint(api).send({**BODY, "system": "\ud800"})

    assert (caught.value.kind, api.requests) == ("request", [])


def test_tokens_are_counted_without_what_only_a_call_needs() -> None:
    with ScriptedApi([]) as api:
        tokens = endpoint(api).count(BODY)

    assert tokens > 0
    assert "max_tokens" not in api.requests[0].body
    assert api.requests[0].path == "/v1/messages/count_tokens"


def test_an_old_model_is_no_warning() -> None:
    with ScriptedApi([answers.text("ok")]) as api:
        assert endpoint(api).send({**BODY, "model": "claude-opus-4-5"}).text == "ok"


def test_what_is_no_count_is_a_failure() -> None:
    with ScriptedApi([answers.text("no count")]) as api:
        odd = endpoint(api)
        odd.call = lambda *_: "no count"  # type: ignore[method-assign]
        with pytest.raises(ApiError, match="no count"):
            odd.count(BODY)


def test_a_token_that_the_sdk_cannot_get_is_a_failure() -> None:
    import anthropic

    with ScriptedApi([]) as api:
        broken = endpoint(api)

        def no_token() -> str:
            raise anthropic.AnthropicError("no token")

        broken._client().post = lambda *_, **__: no_token()  # type: ignore[assignment, method-assign]
        with pytest.raises(ApiError, match="no token"):
            broken.send(BODY)


def test_a_stream_with_parts_that_nobody_knows_is_read() -> None:
    from core.api.stream import StreamedMessage

    message = StreamedMessage()
    for event in (
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": 1}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": 2}}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "of no block"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"cut'}},
        {"type": "unheard_of"},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2, "x": None}},
        {"type": "message_stop"},
    ):
        message.add(event)  # type: ignore[arg-type]
    reply = message.reply()

    assert reply.text == "a"
    assert reply.content[0]["citations"] == [{"n": 1}, {"n": 2}]
    assert reply.content[1]["input"] == {}
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.stop_reason) == (5, 2, "max_tokens")


def test_a_stream_that_ends_too_early_is_no_answer() -> None:
    from core.api.stream import StreamedMessage

    message = StreamedMessage()
    message.add({"type": "message_start", "message": {}})
    with pytest.raises(ApiError) as caught:
        message.reply()

    assert caught.value.kind == "network"
