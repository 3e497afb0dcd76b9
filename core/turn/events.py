"""What happens to a running conversation, as records: appended to a journal, never edited, one JSON line each."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import msgspec

from core.context.decisions import Decision
from core.model import Block, Kind, Message, Role, Usage

How: TypeAlias = Literal["memory", "full", "peel"]
"""memory: the session's notes stand for what went.  full: a summary does.  peel: parts of the oldest went, after the
API had refused the request."""
Trigger: TypeAlias = Literal["auto", "manual", "reactive"]
Rung: TypeAlias = Literal[
    "media-old", "media-large", "media-all", "max-tokens", "thinking", "clip", "drain", "peel", "peel-more", "peel-all",
    "summary",
]  # fmt: skip
"""The steps of a recovery."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message, as a journal holds it."""

    role: Role
    kind: Kind
    content: tuple[dict[str, object], ...]
    uuids: tuple[str, ...] = ()
    response_id: str = ""
    model: str = ""
    usage: Usage | None = None
    timestamp: str = ""

    @classmethod
    def of(cls, message: Message) -> Row:
        """The row of a message."""
        content = cast("tuple[dict[str, object], ...]", message.content)
        return cls(
            message.role,
            message.kind,
            content,
            message.uuids,
            message.response_id,
            message.model,
            message.usage,
            message.timestamp,
        )

    def message(self) -> Message:
        """The message of the row."""
        content = cast("tuple[Block, ...]", self.content)
        return Message(
            self.role, self.kind, content, self.uuids, self.response_id, self.model, self.usage, self.timestamp
        )


class _Base(msgspec.Struct, frozen=True, tag_field="event", omit_defaults=True):
    """Base of all events."""


class Begun(_Base, frozen=True, tag="begun"):
    """The first event: whose conversation it is; ids of what is appended are derived from it."""

    session: str


class Appended(_Base, frozen=True, tag="appended"):
    """A prompt, a response with its usage, the results of its calls."""

    message: Row


class Attached(_Base, frozen=True, tag="attached"):
    """A change of state, as the model reads it and as data for the scans to come."""

    message: Row
    data: dict[str, object]


class Decided(_Base, frozen=True, tag="decided"):
    """What a stage decided."""

    stage: str
    decisions: tuple[Decision, ...]
    tokens_freed: int = 0


class Compacted(_Base, frozen=True, tag="compacted"):
    """A boundary: what is in front of the model from now on.

    `layout` holds new messages, and the ids of those that stay; an id is a message's, or that of a snip or span.
    """

    how: How
    trigger: Trigger
    layout: tuple[str | Row, ...]
    summarizer: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage | None = None
    """What the summary cost."""


class Failed(_Base, frozen=True, tag="failed"):
    """An automatic compaction that came to nothing."""

    reason: str
    usage: Usage | None = None
    """What the call that broke off cost."""


class Refilled(_Base, frozen=True, tag="refilled"):
    """The context is full again, a few requests after a compaction."""


class Paused(_Base, frozen=True, tag="paused"):
    """A compaction left too little room: the next one waits until the context has grown well over this size."""

    tokens: int


class Acted(_Base, frozen=True, tag="acted"):
    """The user did something about the context: automatic compaction may try again."""


class Climbed(_Base, frozen=True, tag="climbed"):
    """A step of the recovery that was taken in this turn: none is taken twice."""

    rung: Rung


class Stripped(_Base, frozen=True, tag="stripped"):
    """Messages whose thinking the API refused: it is not sent again."""

    uuids: tuple[str, ...]


class Limited(_Base, frozen=True, tag="limited"):
    """The endpoint takes no larger `max_tokens` than this."""

    max_tokens: int


class Recovered(_Base, frozen=True, tag="recovered"):
    """A refused request that went through after all: what the API said, and what had to go."""

    reason: str
    rungs: tuple[Rung, ...]
    removed: tuple[str, ...]
    """Ids of messages, calls, images and documents."""
    asked_tokens: int | None = None
    limit_tokens: int | None = None


Event: TypeAlias = (
    Begun
    | Appended
    | Attached
    | Decided
    | Compacted
    | Failed
    | Refilled
    | Paused
    | Acted
    | Climbed
    | Stripped
    | Limited
    | Recovered
)
