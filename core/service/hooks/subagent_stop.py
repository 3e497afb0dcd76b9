"""SubagentStop: a client that compacts asks a nameless subagent for the summary, which is kept for SessionStart."""

from __future__ import annotations

import os

from core.service.hooks import checkpoint
from core.service.hooks.given import Given, decoded


class SubagentStop(Given, frozen=True):
    """A subagent that answered; that of a compaction has no type, and no transcript of its own."""

    agent_type: str | None = None
    agent_transcript_path: str = ""
    last_assistant_message: str = ""


def subagent_stop(raw: bytes) -> str:
    """Nothing to say; raises StorageError where the summary cannot be kept."""
    given = decoded(raw, SubagentStop)
    is_summary = given.agent_type == "" and not os.path.exists(given.agent_transcript_path)
    if is_summary and given.last_assistant_message and given.is_kept:
        checkpoint.put(given.transcript, given.last_assistant_message)
    return ""
