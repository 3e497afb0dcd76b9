"""Reads a Claude Code transcript, or a part of one, into Messages in file order, for the measures in this folder."""

from __future__ import annotations

from pathlib import Path

from core.context.view import messages_of
from core.model import Message
from core.transcript.chain import Chain
from core.transcript.reader import open_log


def messages_in(path: Path) -> tuple[Message, ...]:
    """Every message of the main conversation in file order: a part of a transcript has no whole chain to walk."""
    with open_log(path, whole=True) as log:
        return messages_of(log, Chain(tuple(e for e in log.entries if e.on_chain and not e.sidechain)))
