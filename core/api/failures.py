"""What a failed model call means, from its status, its type, its code and its words: any provider, any wording.

Types and codes go first; the words of a message are not stable, but they are all that tells a prompt that is too
long from a request that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from core.errors import ApiError, FailureKind
from core.redact.text import redact

_Q = r"[`'\"]?"
_N = r"(?P<{}>\d[\d,_]{{0,14}})"
_ASKED, _LIMIT = _N.format("asked"), _N.format("limit")
SHOWN_CHARS = 500
"""Of a message: providers put whole requests into it."""
SEARCHED_CHARS = 20_000


class _Family(NamedTuple):
    kind: FailureKind
    pattern: re.Pattern[str]


def _family(kind: FailureKind, *wordings: str) -> _Family:
    return _Family(kind, re.compile("|".join(wordings), re.IGNORECASE | re.DOTALL))


_FAMILIES: tuple[_Family, ...] = (
    _family(
        "thinking",
        r"bound to a different conversation|prefix_mismatch_behavior|capability_rejected:\s*thinking_signature",
        rf"invalid\s+{_Q}signature{_Q}\s+in\s+{_Q}thinking|invalid\s+{_Q}data{_Q}\s+in\s+{_Q}redacted_thinking",
        r"thinking\.signature:\s*field required",
        rf"(?:redacted_)?thinking{_Q}\s+blocks?\b[^.]{{0,80}}cannot be modified",
        rf"expected\s+{_Q}thinking{_Q}\s+or\s+{_Q}redacted_thinking{_Q},?\s+but found",
    ),
    _family(
        "request",
        r"thinking\.type[^a-z]{1,8}\w+.{0,60}not supported|to turn thinking off on",
        rf"tool_use{_Q}\s+ids? (?:were|was) found without\s+{_Q}tool_result",
        rf"unexpected\s+{_Q}tool_use_id{_Q}\s+found in\s+{_Q}tool_result|tool_use{_Q}\s+ids? must be unique",
    ),
    _family(
        "media",
        r"too much media:|too many images and documents|capability_rejected:\s*(?:media_budget|image_block)",
        r"maximum of \d+ pdf pages|pdf (?:specified )?(?:is password|was not valid)|could not process pdf",
        r"not support pdf",
        r"dimensions?\s+exceeds?\s+(?:the\s+)?max(?:imum)?\s+(?:allowed|image)\s+size|image_dimensions_too_large",
        r"image dimensions \d+x\d+ exceed the maximum image size|image exceeds (?:the )?\d+(?:\.\d+)?\s*mi?b maximum",
        r"could not process image|not match the provided media type",
    ),
    _family(
        "output-room",
        rf"input length and\s+{_Q}max_tokens{_Q}\s+exceed context limit:\s*{_ASKED}\s*\+?\s*"
        rf"{_N.format('more')}\s*>\s*{_LIMIT}",
    ),
    _family("output-room", rf"max_tokens:\s*{_ASKED}\s*>\s*{_LIMIT},?\s*which is the maximum"),
    _family("output-room", rf"maximum tokens you requested exceeds the model limit of {_LIMIT}"),
    # The same with both figures, in the wordings of the providers that name them.
    _family("too-long", rf"prompt is too long:\s*{_ASKED}\s*tokens?\s*>\s*{_LIMIT}\s*maximum"),
    _family("too-long", rf"prompt tokens \({_ASKED}\) exceed model maximum \({_LIMIT}\)"),
    _family("too-long", rf"token count (?:of |\(){_ASKED}\)? exceeds the (?:limit|maximum)[^\d]{{0,60}}{_LIMIT}"),
    _family("too-long", rf"prompt contains {_ASKED} tokens.{{0,80}}too large for model with {_LIMIT} maximum"),
    _family("too-long", rf"maximum prompt length is {_LIMIT} but the request contains {_ASKED} tokens"),
    _family("too-long", rf"exceeded model token limit:\s*{_LIMIT} \(requested:\s*{_ASKED}\)"),
    _family(
        "too-long",
        rf"maximum context length is {_LIMIT}(?: tokens)?"
        rf"(?:.{{0,80}}(?:requested|resulted in|contains?)(?: about)? {_ASKED})?",
    ),
    _family(
        "too-long",
        r"prompt is too long|input is too long|context_length_exceeded|contextwindowexceedederror",
        r"context window error|capability_rejected:\s*prompt_too_long",
        r"exceeds the (?:available )?context (?:size|window)",
    ),
    _family("spend", r"(?:extra usage is|usage credits are) required for long context|long context beta is not yet"),
    _family(
        "too-long",
        r"request_too_large|request exceeds the maximum size|request_body_too_large_after_decoding",
        r"(?:request|message) size \(\d+ bytes\) exceeds [\d.]+\s*mb limit",
    ),
    _family("overloaded", r"\bcompaction_unavailable\b"),
    _family(
        "request",
        r"content blocks must (?:be non-empty|contain non-whitespace)|must have non-empty content",
        r"does not support assistant message prefill|must end with a user message",
        r"roles must alternate|first message must use|role 'system' is not supported",
        r"maximum of 4 blocks with cache_control|\bcompaction_[a-z_]+\b|extra inputs are not permitted",
    ),
    _family("spend", r"spend_limit_reached|ramp_limit_exceeded|credit balance is too low|spend limit reached"),
    _family("rate", r"rate_limit_error|would exceed (?:your organization's|the) rate limit"),
    _family("overloaded", r"overloaded_error|\boverloaded\b"),
)
"""The first that fits wins; what is more exact stands in front.  A wording that names no figures comes last."""

_SPENT = re.compile(
    r"spend_limit|ramp_limit_exceeded|contract_\w+_reached|spend limit|credit balance"
    r"|(?:extra usage is|usage credits are) required|insufficient_quota",
    re.IGNORECASE,
)
_BY_TYPE: Mapping[str, FailureKind] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "spend",
    "rate_limit_error": "rate",
    "overloaded_error": "overloaded",
    "request_too_large": "too-long",
    "api_error": "overloaded",
    "timeout_error": "overloaded",
}
_BY_STATUS: Mapping[int, FailureKind] = {
    401: "auth",
    402: "spend",
    403: "auth",
    408: "overloaded",
    409: "overloaded",
    413: "too-long",
    429: "rate",
}
_SURE: frozenset[FailureKind] = frozenset({"auth", "spend", "rate"})
"""Kinds that status and type settle: no words of theirs make another failure of them."""
_SAID: Mapping[FailureKind, tuple[str, str]] = {
    "too-long": ("the model does not take a request of this size", "compact the session first"),
    "output-room": ("the request leaves no room for the answer", "ask for a shorter answer, or compact first"),
    "media": ("the model does not take an image or document of the request", "{strip} takes them out"),
    "thinking": ("thinking in the request does not fit to what is in front of it", "leave the thinking out"),
    "request": ("the model API does not take the request", ""),
    "auth": ("the model API does not know the key, or the key may not do this", "check ANTHROPIC_API_KEY"),
    "spend": ("there is no money or no quota left for this", "look at the plan and the limits of the account"),
    "rate": ("too many requests at once", "try again later"),
    "overloaded": ("the model API is overloaded or out of order", "try again later"),
}


def classify(
    status: int | None,
    error_type: str,
    message: str,
    *,
    code: str = "",
    body: str = "",
    retry_after_s: float | None = None,
    request_id: str = "",
) -> ApiError:
    """The failure of a call that the API, or a gateway in front of it, answered with an error.

    `status` is that of HTTP (200 for an error inside a stream), `code` the machine-readable cause, `body` the whole
    answer: gateways hide the cause in it.  A 429 is never a prompt that is too long.
    """
    words = f"{code} {message} {body}"[:SEARCHED_CHARS]
    kind, found = _kind(status, error_type, words)
    said, hint = _SAID[kind]
    shown = _shown(message)
    of_request = f" (request {ident})" if (ident := _shown(request_id)) else ""
    return ApiError(
        kind,
        (f"{said}: {shown}" if shown else said) + of_request,
        hint,
        asked_tokens=_sum(found, "asked", "more"),
        limit_tokens=_sum(found, "limit"),
        retry_after_s=retry_after_s,
    )


def _shown(text: str) -> str:
    """As much of a text as is shown to a person, without secrets."""
    plain = "".join(c if c.isprintable() else " " for c in redact(text[: 4 * SHOWN_CHARS]))
    return " ".join(plain.split())[:SHOWN_CHARS]


def _kind(status: int | None, error_type: str, words: str) -> tuple[FailureKind, re.Match[str] | None]:
    sure = _BY_STATUS.get(status or 0) or _BY_TYPE.get(error_type)
    if sure in _SURE:
        return ("spend" if sure == "rate" and _SPENT.search(words) else sure), None
    if status == 529 or error_type == "overloaded_error":
        return "overloaded", None
    for kind, pattern in _FAMILIES:
        if found := pattern.search(words):
            return kind, found
    if sure:
        return sure, None
    return "overloaded" if (status or 0) >= 500 else "request", None


def _sum(found: re.Match[str] | None, *names: str) -> int | None:
    """The figures of these names, added; None where the wording has none."""
    groups = found.groupdict() if found else {}
    figures = [int(re.sub(r"[,_]", "", text)) for name in names if (text := groups.get(name))]
    return sum(figures) if figures else None
