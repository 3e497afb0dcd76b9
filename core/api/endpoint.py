"""What a model call takes and gives, whoever answers it: nothing here imports an SDK or opens a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from core.errors import FoldmarkError
from core.model import JSON, Block, Usage, block_text

FailureKind: TypeAlias = Literal[
    "too-long",  # the prompt is over the window, or the body over the limit
    "output-room",  # input and max_tokens together are over the window
    "media",  # an image or document is too large, too many, or none at all
    "thinking",  # a thinking block does not fit to what is in front of it
    "request",  # anything else that is wrong with the request
    "auth",  # no key, a wrong one, no permission
    "spend",  # no money left: waiting does not help
    "rate",  # too much at once: waiting helps
    "overloaded",  # the server's fault: waiting helps
    "network",  # no answer, or one that broke off
    "deadline",  # the time that was given is over
    "cancelled",  # whoever asked does not want it any more
]


class ApiError(FoldmarkError):
    """A model call that gave no answer: `kind` says what to do about it."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        hint: str = "",
        *,
        asked_tokens: int | None = None,
        limit_tokens: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.asked_tokens = asked_tokens
        """What the API counted, where it says so."""
        self.limit_tokens = limit_tokens
        """The most that it takes, where it says so."""
        self.retry_after_s = retry_after_s
        self.usage = Usage()
        """What the tries that broke off were charged for, as far as the API had said so."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One response of a model."""

    content: tuple[Block, ...]
    stop_reason: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    id: str = ""
    raw: Mapping[str, JSON] = field(default_factory=dict)
    """The message as it came, for what only some endpoints report."""
    lost: Usage = field(default_factory=Usage)
    """What tries before it that broke off were charged for, as far as the API had said so."""

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "".join(block_text(b) for b in self.content if b.get("type") == "text")


class Endpoint(Protocol):
    """Whatever answers requests of the Messages API.

    Bodies are those of `POST /v1/messages`, without `stream`; beta headers are found out from what a body holds.
    """

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        """The answer, streamed; `on_text` gets its text piece by piece.

        Waits and tries again where that helps, within the time that it was given.  Raises `ApiError`.
        """

    def count(self, body: Mapping[str, JSON]) -> int:
        """The tokens of a request, as the API counts them.  Raises `ApiError`."""
