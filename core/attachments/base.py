"""What an attachment is: a change of state as data, with the text that the model gets of it.

The fields are named, in JSON, as the client names them, so that its own rows are read by the same classes.  An
attachment is appended to the history and never edited.  What was announced before is a fold over the earlier
attachments of the kind: whoever scans hands in those of the active view, oldest first, and none of those that a
compaction ate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Protocol, Self, TypeVar

import msgspec

from core.model import REMINDER, Block, Kind, Message, Role, text_block

A = TypeVar("A", bound="Attachment")


class Attachment(msgspec.Struct, frozen=True, tag_field="type", rename="camel"):
    """Base of all kinds: one class a kind, its tag the name."""

    role: ClassVar[Role] = "system"
    """Who speaks: the state of things is a system message, what holds files is a user message."""
    message_kind: ClassVar[Kind] = "attachment"

    def text(self) -> str:
        """What the model reads, without the wrapper."""
        raise NotImplementedError

    def blocks(self) -> tuple[Block, ...]:
        """What the model gets."""
        return (text_block(REMINDER.format(self.text())),)

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """What is new of this kind: the state now against what the earlier attachments announced."""
        raise NotImplementedError


class Files(Protocol):
    """How scans look at files; paths are absolute, and nothing here raises for a path that cannot be looked at."""

    def mtime_ns(self, path: str) -> int | None:
        """When a file was changed last, None when there is no such file."""

    def read(self, path: str) -> str | None:
        """The text of a file; None for what is no text, too large, or not to be shown."""

    def names(self, folder: str) -> Sequence[str]:
        """The names in a folder, sorted; none when there is no such folder."""


class NoFiles:
    """A disk with nothing on it."""

    def mtime_ns(self, path: str) -> int | None:
        """No file was ever changed."""
        return None

    def read(self, path: str) -> str | None:
        """No file has a text."""
        return None

    def names(self, folder: str) -> Sequence[str]:
        """No folder has names in it."""
        return ()


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as the model knows it."""

    text: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Queued:
    """Input that arrived while the turn ran: texts and images."""

    id: str
    prompt: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Planning:
    """Only planning is allowed, and the plan goes into this file."""

    path: str
    exists: bool


class Task(msgspec.Struct, frozen=True):
    """One entry of the task list."""

    id: str
    subject: str
    status: str


@dataclass(frozen=True, slots=True)
class World:
    """The state that scans look at.  What is not known keeps its default, and announces nothing."""

    responses: int = 0
    """How many the model gave so far, in the whole session: the clock of reminders."""
    date: str = ""
    """The local date, as in 2026-11-30."""
    prefix_date: str = ""
    """The date that the fixed context says."""
    queued: Sequence[Queued] = ()
    deferred_tools: Mapping[str, str] | None = None
    """Tools behind a tool search: name -> the line that lists it."""
    agents: Mapping[str, str] | None = None
    """Agent types: name -> the line that lists it."""
    mcp_instructions: Mapping[str, str] | None = None
    """Connected servers: name -> what they say about themselves, with or without a heading."""
    files: Files = field(default_factory=NoFiles)
    cwd: str = ""
    home: str = ""
    """What `~` means in memory files; "" where it means nothing."""
    known_files: Mapping[str, KnownFile] = field(default_factory=lambda: MappingProxyType({}))
    """By absolute path."""
    touched: Sequence[str] = ()
    """Absolute paths that tools read or changed since the last scan, in order."""
    loaded: frozenset[str] = frozenset()
    """Memory files that the model has: those of the fixed context, and all that were attached since the last
    compaction, also where the attachment itself is out of the view."""
    planning: Planning | None = None
    tasks: Sequence[Task] | None = None
    """The task list, None where there is no task tool."""
    last_task_response: int = 0
    """The response that used the task tool last."""
    nudge: str = ""
    """The proposal to snip that is due."""


def of_kind(kind: type[A], earlier: Iterable[Attachment]) -> list[A]:
    """The attachments of one kind, in order."""
    return [a for a in earlier if isinstance(a, kind)]


def to_message(attachment: Attachment, uuid: str, timestamp: str = "") -> Message:
    """The message of an attachment."""
    kind = attachment.message_kind
    return Message(attachment.role, kind, attachment.blocks(), (uuid,), timestamp=timestamp)
