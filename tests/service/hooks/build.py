"""What a host says to its hooks, and what it gets back."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from core.model import JSON
from core.service.hooks import answer
from core.service.hooks.limits import Limits


def ask(event: str, transcript: Path, limits: Limits = Limits(), /, **fields: JSON) -> str:  # noqa: B008
    """The answer to an event."""
    given = {"session_id": "s", "transcript_path": str(transcript), "cwd": "/srv/app", "hook_event_name": event}
    return answer(event, msgspec.json.encode({**given, **fields}), lambda: limits)


def specific(text: str) -> dict[str, JSON]:
    """The part of an answer that is for its event."""
    return cast("dict[str, JSON]", msgspec.json.decode(text)["hookSpecificOutput"])
