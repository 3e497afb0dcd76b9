"""The messages that hooks look at: what the model sees now, and what it saw before the last compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.context.view import messages_of
from core.model import Message
from core.transcript.chain import active_chain, load
from core.transcript.live import FileState

MOST_BYTES = 32 << 20
"""Of a transcript that is read whole: some 300 ms."""


def active(transcript: Path) -> Sequence[Message]:
    """The active view; raises InputError for a file that cannot be read."""
    log, chain = load(transcript)
    with log:
        return messages_of(log, chain)


def around_boundary(transcript: Path) -> tuple[Sequence[Message], Sequence[Message]]:
    """The view before the last compaction and the one now; the first is empty where there was none, or too much.

    Raises InputError for a file that cannot be read.
    """
    whole = FileState.of(transcript).size <= MOST_BYTES
    log, chain = load(transcript, whole)
    with log:
        now = messages_of(log, chain)
        if chain.boundary is None or not whole:
            return (), now
        end = chain.boundary.offset
        earlier = replace(log, entries=[entry for entry in log.entries if entry.offset < end])
        return messages_of(earlier, active_chain(earlier)), now
