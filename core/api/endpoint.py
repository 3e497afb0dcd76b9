"""What a model call takes and gives, whoever answers it: nothing here imports an SDK or opens a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from core.model import JSON, Block, Usage, block_text


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
