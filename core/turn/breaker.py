"""The failures of automatic compactions in a row, kept from one run of the program to the next.

One small file a session, a line for each failure; a success removes it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from core.errors import WriteFailed
from core.model import UNDECODABLE
from core.redact.text import redact
from core.transcript.materialize import derived_id
from core.transcript.projects import as_text
from core.transcript.writer import append, make_private, write_new
from core.turn.autocompact import MAX_FAILURES


class _Failure(msgspec.Struct, frozen=True):
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Breaker:
    """The counter of one session, in a folder of this machine's own."""

    folder: Path
    session: str
    """What tells the session from all others: its path."""

    @property
    def path(self) -> Path:
        """Where the failures are counted."""
        return self.folder / f"{derived_id('breaker', as_text(self.session))}.jsonl"

    @property
    def reasons(self) -> list[str]:
        """Why the compactions since the last success failed, oldest first."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError:  # none failed
            return []
        return [_reason(line) for line in lines if line]

    @property
    def is_open(self) -> bool:
        """Whether automatic compaction has stopped."""
        return len(self.reasons) >= MAX_FAILURES

    def failed(self, reason: str) -> None:
        """Counts a failure; one that cannot be written is not counted."""
        line = msgspec.json.encode(_Failure(redact(reason))) + b"\n"
        with suppress(WriteFailed, OSError):
            make_private(self.folder)
            if self.path.exists():
                append(self.path, line)
            else:
                write_new(self.path, [line])

    def reset(self) -> None:
        """After a success, or because the user says so."""
        with suppress(OSError):
            self.path.unlink()


def _reason(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=_Failure).reason
    except UNDECODABLE:  # it failed all the same
        return ""
