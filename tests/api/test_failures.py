"""What a failed call means: all wordings that were seen, and any other text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.api.failures import SHOWN_CHARS, classify
from core.errors import FailureKind, FoldmarkError

BAD = "invalid_request_error"
WORDINGS: list[tuple[int, str, str, FailureKind, int | None, int | None]] = [
    (400, BAD, "prompt is too long: 215000 tokens > 200000 maximum", "too-long", 215_000, 200_000),
    (400, BAD, "Prompt is too long", "too-long", None, None),
    (400, "", "ValidationException: Input is too long for requested model.", "too-long", None, None),
    (400, "", "The model returned the following errors: Input is too long for requested model", "too-long", None, None),
    (400, "", "prompt tokens (210000) exceed model maximum (200000)", "too-long", 210_000, 200_000),
    (400, "", "context_length_exceeded", "too-long", None, None),
    (413, "", "Prompt is too long", "too-long", None, None),
    (400, "", '{"error":"{\\"message\\":\\"Prompt is too long\\"}"}', "too-long", None, None),
    (
        400,
        "",
        "This endpoint's maximum context length is 200000 tokens. However, you requested about 214321 tokens (1 x)",
        "too-long",
        214_321,
        200_000,
    ),
    (400, "", "litellm.ContextWindowExceededError: AnthropicError - too much", "too-long", None, None),
    (400, "", "BedrockException: Context Window Error - too much", "too-long", None, None),
    (
        500,
        "",
        "Vertex_aiException BadRequestError - b'prompt is too long: 201 tokens > 200 maximum'",
        "too-long",
        201,
        200,
    ),
    (400, "", "capability_rejected: prompt_too_long", "too-long", None, None),
    (400, "", "capability_rejected: media_budget", "media", None, None),
    (400, "", "capability_rejected: image_block", "media", None, None),
    (400, "", "capability_rejected: thinking_signature", "thinking", None, None),
    (
        400,
        BAD,
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        "output-room",
        210_000,
        200_000,
    ),
    (
        400,
        BAD,
        "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-x",
        "output-room",
        200_000,
        64_000,
    ),
    (400, "", "The maximum tokens you requested exceeds the model limit of 4096", "output-room", None, 4_096),
    (413, "request_too_large", "Request exceeds the maximum size", "too-long", None, None),
    (400, "", "The request size (41000000 bytes) exceeds 30 MB limit", "too-long", None, None),
    (400, BAD, "request_body_too_large_after_decoding", "too-long", None, None),
    (400, BAD, "Too much media: 40 document pages + 70 images > 100", "media", None, None),
    (400, BAD, "too many images and documents: 70 + 40 > 100", "media", None, None),
    (
        400,
        BAD,
        "messages.3.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
        " for many-image requests: 2000 pixels",
        "media",
        None,
        None,
    ),
    (400, BAD, "messages.1: image dimensions exceed max allowed size: 8000 pixels", "media", None, None),
    (400, BAD, "image_dimensions_too_large", "media", None, None),
    (400, BAD, "x.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", "media", None, None),
    (400, BAD, "A maximum of 100 PDF pages may be provided", "media", None, None),
    (400, BAD, "Could not process image", "media", None, None),
    (
        400,
        BAD,
        "messages.4: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        "request",
        None,
        None,
    ),
    (400, BAD, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_2", "request", None, None),
    (400, BAD, "`tool_use` ids must be unique", "request", None, None),
    (400, BAD, "messages.5.content.0: Invalid `signature` in `thinking` block", "thinking", None, None),
    (
        400,
        BAD,
        "messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
        " See prefix_mismatch_behavior.",
        "thinking",
        None,
        None,
    ),
    (
        400,
        BAD,
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
        "thinking",
        None,
        None,
    ),
    (400, BAD, "Expected `thinking` or `redacted_thinking`, but found `tool_use`", "thinking", None, None),
    (400, BAD, "messages: text content blocks must be non-empty", "request", None, None),
    (400, BAD, "messages: text content blocks must contain non-whitespace text", "request", None, None),
    (400, BAD, "messages: roles must alternate", "request", None, None),
    (400, BAD, "This model does not support assistant message prefill", "request", None, None),
    (400, BAD, "role 'system' is not supported on this model", "request", None, None),
    (400, BAD, "compaction: Extra inputs are not permitted", "request", None, None),
    (400, BAD, "compaction_signature_invalid", "request", None, None),
    (529, "overloaded_error", "compaction_unavailable", "overloaded", None, None),
    (429, "rate_limit_error", "Extra usage is required for long context requests.", "spend", None, None),
    (429, "rate_limit_error", "Usage credits are required for long context requests.", "spend", None, None),
    (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 40000 input tokens per minute (...)",
        "rate",
        None,
        None,
    ),
    (429, "rate_limit_error", "enforced_spend_limit_reached", "spend", None, None),
    (429, "rate_limit_error", "contract_limit_reached", "spend", None, None),
    (429, "rate_limit_error", "ramp_limit_exceeded", "spend", None, None),
    (400, BAD, "Your credit balance is too low to access the API", "spend", None, None),
    (529, "overloaded_error", "Overloaded", "overloaded", None, None),
    (401, "authentication_error", "invalid x-api-key", "auth", None, None),
    (402, "billing_error", "pay", "spend", None, None),
    (403, "permission_error", "not yours", "auth", None, None),
    (404, "not_found_error", "model: claude-3-opus", "request", None, None),
    (409, "conflict_error", "again", "overloaded", None, None),
    (500, "api_error", "Internal server error", "overloaded", None, None),
    (504, "timeout_error", "timed out", "overloaded", None, None),
    (418, "", "teapot", "request", None, None),
    # inside a stream: a status of 200 says nothing
    (200, "overloaded_error", "Overloaded", "overloaded", None, None),
    (200, "rate_limit_error", "slow down", "rate", None, None),
    (200, "api_error", "", "overloaded", None, None),
    (200, "", "rate_limit_error", "rate", None, None),
    # other providers
    (400, "", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)", "too-long",
     1_196_265, 1_048_575),
    (400, "", "prompt token count of 128001 exceeds the limit of 128000", "too-long", 128_001, 128_000),
    (400, "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens", "too-long",
     537_812, 131_072),
    (400, "", "Your request exceeded model token limit: 262144 (requested: 291351)", "too-long", 291_351, 262_144),
    (400, "", "Prompt contains 40_000 tokens, too large for model with 32,768 maximum context length", "too-long",
     40_000, 32_768),
    (400, "", "the request exceeds the available context size", "too-long", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind_of_api", "message", "kind", "asked", "limit"), WORDINGS, ids=lambda v: str(v))
def test_a_wording_that_was_seen_has_its_kind_and_its_figures(
    status: int, kind_of_api: str, message: str, kind: FailureKind, asked: int | None, limit: int | None
) -> None:
    error = classify(status, kind_of_api, message)

    assert (error.kind, error.asked_tokens, error.limit_tokens) == (kind, asked, limit)
    assert str(error)


def test_the_code_and_the_body_say_what_the_message_hides() -> None:
    hidden = '{"metadata":{"raw":"{\\"message\\":\\"prompt is too long: 300 tokens > 200 maximum\\"}"}}'

    assert classify(400, "", "Provider returned error", body=hidden).limit_tokens == 200
    assert classify(400, BAD, "no", code="image_dimensions_too_large").kind == "media"
    assert classify(429, "rate_limit_error", "no", code="enforced_spend_limit_reached").kind == "spend"


def test_an_error_carries_what_a_caller_needs_and_shows_no_secret() -> None:
    error = classify(
        429, "rate_limit_error", "key sk-ant-api03-" + "Ab1-" * 24 + " is slow", retry_after_s=2.5, request_id="req_1"
    )

    assert isinstance(error, FoldmarkError)
    assert error.retry_after_s == 2.5
    assert str(error).endswith("(request req_1)")
    assert "Ab1" not in str(error)
    assert error.hint


@given(
    st.sampled_from([None, 200, 400, 401, 402, 403, 404, 413, 429, 500, 529, 599]),
    st.sampled_from(["", BAD, "rate_limit_error", "overloaded_error", "api_error", "request_too_large"]),
    st.one_of(st.text(max_size=200), st.sampled_from([w[2] for w in WORDINGS])),
)
def test_any_answer_is_some_failure(status: int | None, kind_of_api: str, message: str) -> None:
    error = classify(status, kind_of_api, message)

    if status == 429:
        assert error.kind in ("rate", "spend")
    if status in (401, 402, 403):
        assert error.kind in ("auth", "spend")
    assert len(str(error)) <= SHOWN_CHARS + 200
    assert str(error).isprintable()
    if error.asked_tokens is not None:
        assert error.asked_tokens >= 0
