"""The exception tree.  Everything that Foldmark raises on purpose is a `FoldmarkError`.

    FoldmarkError
     +- InputError            what was given cannot be used
     |   +- SessionNotFound      no session of that name, or several
     |   +- UnknownFormat        not a transcript that Foldmark reads
     |   +- WrongFormat          a transcript, but not one that this command takes
     |   +- Damaged              the file cannot be read as what it claims to be
     |   +- SettingsError        a setting has a value that it cannot have
     |   +- WrongUsage           what was asked for does not go together
     |   +- WrongPattern         not a regular expression
     |   +- IdNotFound           no message, output or marker of that id
     |   +- NothingToUndo        a file that Foldmark did not write, or write to
     +- StorageError          the disk did not do what was asked
     |   +- WriteFailed          nothing was written; the old file is as it was
     |   +- Locked               another process holds the lock
     |   +- Changed              the file changed while it was worked on
     +- ApiError              a model call gave no answer; `kind` says what to do about it
     +- NoServer              Foldmark's own server does not answer
     +- NothingNoted         the model said nothing that the notes can be changed by; they are as they were
     +- ContextFull           no room for another request, and nothing may be compacted
     +- CompactionError       no usable result; nothing was changed
         +- NothingToCompact
         +- SummaryRejected
         +- SummaryPending
         +- NoUsableMemory       the notes of the session cannot stand for what would go

A message says what happened; `hint` says what to do next.  A way to do it that each shell has its own word for stands
in braces: `{search}` is a command here and a tool there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from core.model import Usage

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
_WAY = re.compile(r"\{(\w+)\}")


class FoldmarkError(Exception):
    """Base of all errors that are shown to a person: `str(error)` is what and why, `hint` the next step."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def hint_in(self, words: Mapping[str, str]) -> str:
        """The hint in the words of a shell."""
        return _WAY.sub(lambda way: words.get(way[1], way[0]), self.hint)


class InputError(FoldmarkError):
    """What was given cannot be used."""


class SessionNotFound(InputError):
    """No session answers to the name, or more than one does."""


class UnknownFormat(InputError):
    """The content is no transcript that Foldmark reads."""


class WrongFormat(InputError):
    """The content is a transcript, but not of a client that this can be done for."""


class Damaged(InputError):
    """The content cannot be read as the format that it claims to be."""


class SettingsError(InputError):
    """A setting has a value that it cannot have."""

    def __init__(self, message: str, hint: str = "", key: str = "") -> None:
        """`key` names the setting; "" where a file of settings cannot be read."""
        super().__init__(message, hint)
        self.key = key


class WrongUsage(InputError):
    """What was asked for does not go together."""


class WrongPattern(InputError):
    """What should be a regular expression is none."""


class IdNotFound(InputError):
    """No message, output or marker has the id."""


class NothingToUndo(InputError):
    """The file holds nothing that Foldmark wrote."""


class StorageError(FoldmarkError):
    """The disk did not do what was asked."""


class WriteFailed(StorageError):
    """Nothing was written; what stood there before is as it was."""


class Locked(StorageError):
    """Another process holds the lock."""


class Changed(StorageError):
    """The file changed while it was worked on."""


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


class NoServer(FoldmarkError):
    """Foldmark's own server does not answer; the message says how far it came."""


class ContextFull(FoldmarkError):
    """There is no room for another request, and nothing may be compacted."""


class NothingNoted(FoldmarkError):
    """The model said nothing that the notes can be changed by; they are as they were."""


class CompactionError(FoldmarkError):
    """No usable compaction; nothing was changed."""


class NothingToCompact(CompactionError):
    """There is nothing that a compaction could take out."""


class SummaryRejected(CompactionError):
    """The summary failed a check; the message names it."""


class NoUsableMemory(CompactionError):
    """The notes of the session cannot stand for what would go; the message says why."""


class SummaryPending(CompactionError):
    """The summary has been, or will be, asked for and is not there yet: nothing takes over, it will come."""
