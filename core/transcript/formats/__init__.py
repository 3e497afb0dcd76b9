"""Conversations of other clients: recognised by content, read into one shape; what they are written as has modules of
its own (`outgoing`, `markdown`)."""

from __future__ import annotations

from pathlib import Path

from core.errors import InputError, WrongFormat
from core.transcript.formats.blocks import expect_one
from core.transcript.formats.conversation import Conversation, Format
from core.transcript.formats.sniff import FORMATS, find_format

__all__ = [
    "FORMATS",
    "Conversation",
    "Format",
    "expect_one",
    "find_format",
    "read",
]


def read(path: Path, pick: str = "") -> Conversation:
    """Reads a file of any format but Claude Code, whose transcripts have a reader of their own.

    `pick` names one of several conversations in a file: its id, the beginning of its id, its title, or its number
    from 1.  Raises UnknownFormat, WrongFormat, Damaged, SessionNotFound (several, none picked; the message lists
    them), or InputError when the file cannot be opened.
    """
    found = find_format(path)
    if found.read is None:
        raise WrongFormat(f"{path.name} is {found.label}", "Leave out what is only for the files of other clients.")
    if not found.several:
        expect_one(path, pick)
    try:
        return found.read(path, pick)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", "Check the path and the rights."
        ) from error
