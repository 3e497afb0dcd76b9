"""What a host says to its hooks, and what it gets back."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from core.model import JSON
from core.service.hooks import answer
from core.settings import Settings

USUAL = Settings(claude_dir=Path("/none"))


def limited(**limits: int) -> Settings:
    """Settings with some limits that are not the usual ones."""
    return msgspec.structs.replace(USUAL, **limits)


def ask(event: str, transcript: Path, settings: Settings = USUAL, /, **fields: JSON) -> str:
    """The answer to an event."""
    given = {"session_id": "s", "transcript_path": str(transcript), "cwd": "/srv/app", "hook_event_name": event}
    return answer(event, msgspec.json.encode({**given, **fields}), lambda: settings)


def specific(text: str) -> dict[str, JSON]:
    """The part of an answer that is for its event."""
    return cast("dict[str, JSON]", msgspec.json.decode(text)["hookSpecificOutput"])
