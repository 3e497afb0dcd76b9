"""What every summariser takes and gives: one request, one summary, one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core.defaults import SUMMARY_TOKENS
from core.model import JSON, Message, Usage

CHARS_PER_TOKEN = 3
"""Of a summary: prose with many names."""


def room_chars(tokens: int) -> int:
    """The characters of a summary that has room for so many tokens."""
    return tokens * CHARS_PER_TOKEN


DEFAULT_BUDGET_CHARS = room_chars(SUMMARY_TOKENS)
_GROWTH = 1.25
_GROWTH_FLOOR_CHARS = room_chars(4_000)
"""An update may be a quarter longer than what it updates, but a summary of half the default is always allowed."""


def room_tokens(text: str) -> int:
    """The tokens of a summary, about: the other way round than `room_chars`."""
    return -(-len(text) // CHARS_PER_TOKEN)


def growth_chars(earlier: Sequence[str]) -> int:
    """How long an update of some earlier summaries may be: else each compaction would leave less room than the last."""
    return max(_GROWTH_FLOOR_CHARS, int(_GROWTH * sum(map(len, earlier))))


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A part of a conversation to summarise, and what the summary has to respect.

    `messages` hold what the summary replaces, oldest first; a message of kind "summary" is an earlier summary, to be
    updated and not embedded; images and documents are in words (see `media.in_words`).  `previous` is one more such
    summary, older than all messages.  `instructions` say what to pay attention to.  `cwd` and `transcript` are named
    in the text, so that the reader finds files and history.  `fork` is the body of the request that the conversation
    would send next, where it is known as it was sent: a model that gets it with one more message reads it from the
    cache.
    """

    messages: Sequence[Message]
    budget_chars: int = DEFAULT_BUDGET_CHARS
    instructions: str = ""
    previous: str = ""
    cwd: str = ""
    transcript: str = ""
    fork: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and who made it."""

    text: str
    summarizer: str
    usage: Usage = field(default_factory=Usage)
    """What the model was paid for, all calls together."""
    remarks: tuple[str, ...] = ()
    """What a person should know: another summariser took over, the text was cut, the input was."""


class Summarizer(Protocol):
    """Whatever turns messages into a summary."""

    @property
    def name(self) -> str:
        """What settings and results call it."""

    def summarize(self, request: SummaryRequest) -> Summary:
        """The summary, at most `budget_chars` long.

        Raises `CompactionError` when there is none, and `ApiError` where the model cannot be asked; the offline
        summariser always has one.
        """
