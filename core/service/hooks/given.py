"""What a host says about an event."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

G = TypeVar("G", bound="Given")


class Given(msgspec.Struct, frozen=True):
    """What all events have; each event adds its own."""

    transcript_path: str
    session_id: str = ""
    cwd: str = ""

    @property
    def transcript(self) -> Path:
        """The file of the session; that of a subagent is not named here."""
        return Path(self.transcript_path)

    @property
    def is_kept(self) -> bool:
        """Whether the session is: a host that keeps none names a file all the same, and then nothing is stored."""
        return self.transcript.is_absolute() and self.transcript.is_file()


def decoded(raw: bytes, kind: type[G]) -> G:
    """The input of an event; raises msgspec.DecodeError for what no host would send."""
    return msgspec.json.decode(raw, type=kind)
