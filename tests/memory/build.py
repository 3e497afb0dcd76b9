"""What the tests of session memory share."""

from __future__ import annotations

import tempfile
from pathlib import Path

from core.model import Message
from core.service.session import opened
from core.testing import Transcript
from core.transcript.projects import session_file


def shown(made: Transcript) -> tuple[Message, ...]:
    """What the next model call would see of a transcript."""
    with tempfile.TemporaryDirectory() as folder:
        path = made.write(Path(folder) / f"{made.session_id}.jsonl")
        with opened(session_file(path)) as session:
            return session.messages
