"""What a scripted API answers with: a whole message, a stream that goes wrong, an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.model import JSON, Block


@dataclass(frozen=True, slots=True)
class Answer:
    """A message, and how it is streamed: in pieces of so many characters, with pauses, to a good or a bad end."""

    blocks: tuple[Block, ...]
    stop_reason: str = "end_turn"
    usage: Mapping[str, JSON] | None = None
    """As the API reports it; None: counted by estimate."""
    piece_chars: int = 20
    pause_s: float = 0.0
    """Before each piece."""
    pings: int = 0
    """How often the stream says that it lives, with the same pauses, before it says more."""
    breaks: bool = False
    """Whether the connection is dropped where the message should end."""
    error: tuple[str, str] | None = None
    """Type and message of an error that comes there in place of the end, after a status of 200."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in place of a message."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, JSON] | None = None


def text(said: str, stop_reason: str = "end_turn", pause_s: float = 0.0) -> Answer:
    """A text; with `pause_s` a slow one.  An empty text is a message without content."""
    return Answer(({"type": "text", "text": said},) if said else (), stop_reason, pause_s=pause_s)


def tool_call(name: str, given: Mapping[str, JSON], said: str = "", call_id: str = "toolu_scripted") -> Answer:
    """A call of a tool, after some text if there is any."""
    call: Block = {"type": "tool_use", "id": call_id, "name": name, "input": dict(given)}
    return Answer((*text(said).blocks, call), "tool_use")


def refusal(said: str = "") -> Answer:
    """A refusal by the API itself."""
    return text(said, "refusal")


def cut_off(said: str) -> Answer:
    """An answer that reached `max_tokens`."""
    return text(said, "max_tokens")


def disconnect(said: str = "") -> Answer:
    """A connection that is dropped in the middle of an answer."""
    return Answer(text(said).blocks, breaks=True)


def error_in_stream(error_type: str = "overloaded_error", message: str = "Overloaded", said: str = "") -> Answer:
    """An error that comes after the stream has begun."""
    return Answer(text(said).blocks, error=(error_type, message))


def compaction(content: str, signature: str = "c2lnbmVk", usage: Sequence[int] = (1_000, 200)) -> Answer:
    """What the API's own compaction gives; `usage`: tokens of the prompt and of the block, in `iterations` alone."""
    block: Block = {"type": "compaction", "content": content, "signature": signature}
    iteration: JSON = {"type": "compaction", "input_tokens": usage[0], "output_tokens": usage[1]}
    totals: dict[str, JSON] = {"input_tokens": 0, "output_tokens": 0, "iterations": [iteration]}
    return Answer((block,), "compaction", totals)


def prompt_too_long(asked: int | None = None, limit: int | None = None) -> Failure:
    """The prompt is over the window; the API may say by how much."""
    figures = f": {asked} tokens > {limit} maximum" if asked is not None else ""
    return Failure(400, "invalid_request_error", f"prompt is too long{figures}")


def body_too_large() -> Failure:
    """The body is over 32 MB."""
    return Failure(413, "request_too_large", "Request exceeds the maximum size")


def rate_limited(retry_after_s: float | None = None) -> Failure:
    """Too many tokens a minute."""
    headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    return Failure(429, "rate_limit_error", "This request would exceed the rate limit", headers)


def overloaded() -> Failure:
    """The API has too much to do."""
    return Failure(529, "overloaded_error", "Overloaded")
