"""A model of the Messages API writes the summary: as a fork of the conversation's own request, else from quoted text.

A fork is read from the cache and sees the conversation as it was; it fails where that itself is refused (too long,
an image, thinking).  The quoted text holds no image and no thinking, and gets shorter until it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.api.endpoint import Endpoint, Reply
from core.api.metered import billed_usage
from core.api.payload import prompt_tokens
from core.context.tokens.models import Model, Models, load
from core.errors import ApiError, FailureKind, SummaryRejected
from core.model import JSON, Usage, text_block
from core.summarizers.answer import Written, read
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.compose import composed, redacted, text_chars
from core.summarizers.prompt import SYSTEM, fork_prompt, plain_prompt
from core.summarizers.quotation import Quotation, earlier_summary, quotation
from core.summarizers.repair import Fault, Repair, answered, question

RETRIES = 3
"""How often a request that is too long is made shorter."""
DROPPED_SHARE = 0.2
"""Of the rounds, where the error does not say by how much it is too long."""
_MARGIN = 1.15
"""Estimates of a span are 8 to 14 % off."""
_RESERVE_PART, _RESERVE_TOKENS = 0.02, 4_096
"""Free below the limit, of the window and at least: what is counted is not only what is estimated."""
_TOO_LONG: frozenset[FailureKind] = frozenset({"too-long", "output-room"})
_FINAL: frozenset[FailureKind] = frozenset({"auth", "spend", "deadline", "cancelled", "network"})
"""What another form of the request does not mend."""
_ANSWER_TOKENS = 2_000
"""On top of the text, one token for two characters of it: tags, headings, and a language that takes more."""
REPAIR_TOKENS = 8_000


@dataclass(slots=True)
class _Bill:
    usage: Usage = field(default_factory=Usage)
    remarks: tuple[str, ...] = ()


class ModelSummarizer:
    """Summaries by a model that an endpoint answers for; `model` is its id as the endpoint knows it."""

    def __init__(self, endpoint: Endpoint, model: str, name: str = "anthropic", models: Models | None = None) -> None:
        self.name = name
        self._endpoint = endpoint
        self._id = model
        self._model = (models or load()).lookup(model)

    def summarize(self, request: SummaryRequest) -> Summary:
        """The summary.  Raises `SummaryRejected` for an answer that is none, `ApiError` where there is no answer."""
        safe, bill = redacted(request), _Bill()
        written, writer = self._forked(safe, bill), str((safe.fork or {}).get("model") or self._id)
        if written is None:
            written, writer = self._plain(safe, bill), self._id
        return composed(safe, written, self.name, writer, bill.usage, bill.remarks)

    def repair(self, text: str, faults: Sequence[Fault], evidence: str) -> Repair:
        """The sections of a summary that the model writes anew; see `core.summarizers.repair`."""
        reply = self._endpoint.send(self.body(question(text, faults, evidence), REPAIR_TOKENS))
        return Repair(answered(reply.text), billed_usage(reply))

    def body(self, prompt: str, max_tokens: int) -> dict[str, JSON]:
        """A request of one message."""
        return {
            "model": self._id,
            "max_tokens": min(max_tokens, self._model.max_output_tokens),
            "system": SYSTEM,
            "messages": [{"role": "user", "content": prompt}],
        }

    def plain_body(self, request: SummaryRequest, quoted: Quotation) -> dict[str, JSON]:
        """The request that holds the conversation as quoted text."""
        earlier = earlier_summary(request.previous, request.messages)
        prompt = plain_prompt(request, quoted.text, earlier, text_chars(request))
        return self.body(prompt, _answer_tokens(request))

    def fitted(self, request: SummaryRequest) -> Quotation:
        """The conversation as quoted text, without the oldest rounds where a known window does not hold it."""
        quoted = quotation(request.messages, self._model)
        sent = prompt_tokens(self.plain_body(request, quoted), self._model)
        over = sent + _answer_tokens(request) - self._model.window_tokens
        return quoted.without(_MARGIN * over) if over > 0 and self._model.known else quoted

    def _forked(self, request: SummaryRequest, bill: _Bill) -> Written | None:
        if request.fork is None:
            return None
        body = continued(request.fork, fork_prompt(request, text_chars(request)))
        asked = body.get("max_tokens")
        body["max_tokens"] = max(asked if isinstance(asked, int) else 0, _answer_tokens(request))
        try:
            return self._write(body, bill)
        except SummaryRejected:
            return None
        except ApiError as error:
            if error.kind in _FINAL:
                raise
            return None

    def _plain(self, request: SummaryRequest, bill: _Bill) -> Written:
        quoted, tries = self.fitted(request), 0
        while True:
            body = self.plain_body(request, quoted)
            try:
                written = self._write(body, bill)
            except ApiError as error:
                shorter = _shorter(quoted, body, self._model, error, tries)
                if shorter == quoted:
                    raise
                quoted, tries = shorter, tries + 1
            else:
                bill.remarks += left_out_remarks(quoted)
                return written

    def _write(self, body: Mapping[str, JSON], bill: _Bill) -> Written:
        """What the model writes; asked once more, with twice the room, if it reached the limit."""
        written = read(self._sent(body, bill))
        most = body["max_tokens"]
        if not written.is_cut or not isinstance(most, int) or most >= self._model.max_output_tokens:
            return written
        roomier = {**body, "max_tokens": min(2 * most, self._model.max_output_tokens)}
        try:
            return read(self._sent(roomier, bill))
        except SummaryRejected:
            return written
        except ApiError as error:
            if error.kind == "cancelled":
                raise
            return written

    def _sent(self, body: Mapping[str, JSON], bill: _Bill) -> Reply:
        try:
            reply = self._endpoint.send(body)
        except ApiError as error:
            bill.usage += error.usage
            raise
        bill.usage += billed_usage(reply)
        return reply


def left_out_remarks(quoted: Quotation) -> tuple[str, ...]:
    """What a person should know of the rounds that were not sent."""
    if not quoted.left_out:
        return ()
    return (f"{quoted.left_out} of {len(quoted.parts)} rounds were too much for the model, which did not see them",)


def continued(body: Mapping[str, JSON], text: str) -> dict[str, JSON]:
    """A request with one more text of the user at its end; all before it stays as it is, byte for byte."""
    messages = body.get("messages")
    history: list[JSON] = [*messages] if isinstance(messages, list) else []
    block: JSON = text_block(text)
    last = history[-1] if history else None
    if isinstance(last, dict) and last.get("role") == "user":
        content = last.get("content")
        before: list[JSON] = [*content] if isinstance(content, list) else [{"type": "text", "text": content}]
        history[-1] = {**last, "content": [*before, block]}
    else:
        history.append({"role": "user", "content": [block]})
    return {**body, "messages": history}


def _answer_tokens(request: SummaryRequest) -> int:
    return text_chars(request) // 2 + _ANSWER_TOKENS


def _shorter(quoted: Quotation, body: Mapping[str, JSON], model: Model, error: ApiError, tries: int) -> Quotation:
    """Less of the conversation, enough for the gap that the error names; the same where that mends nothing."""
    if error.kind not in _TOO_LONG or tries >= RETRIES:
        return quoted
    if error.asked_tokens is None or error.limit_tokens is None:
        return quoted.without_share(DROPPED_SHARE)
    most = body["max_tokens"]
    answer = most if isinstance(most, int) else 0
    prompt = error.asked_tokens - (answer if error.kind == "output-room" else 0)
    reserve = max(_RESERVE_PART * error.limit_tokens, _RESERVE_TOKENS) + answer
    gap = prompt - error.limit_tokens + reserve
    per_estimate = max(prompt, 1) / max(prompt_tokens(body, model), 1)
    return quoted.without(_MARGIN * gap * (1 + tries / 2) / per_estimate)
