"""What the tests of session memory share."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from core.memory.evidence import evidence_of
from core.memory.notes import Notes
from core.memory.offline import by_rule
from core.memory.operations import Operation, apply
from core.memory.part import Part, unseen
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


def part_of(
    made: Transcript | tuple[Message, ...], notes: Notes | None = None, *, title: str = "", budget: int = 8_000
) -> Part:
    """All of a transcript that the notes do not tell of."""
    messages = shown(made) if isinstance(made, Transcript) else made
    notes = notes or Notes("s")
    seen = unseen(messages, [100] * len(messages), notes.covers)
    view = messages[: seen.end]
    return Part(notes, view, seen.start, evidence_of(view), title, budget)


def noted(part: Part, operations: Sequence[Operation]) -> Notes:
    """The notes after operations, none of which may be refused."""
    done = apply(part.notes, operations, part.evidence, part.budget_tokens, part.covers)
    assert done.refused == ()
    return done.notes


def by_rules(made: Transcript, notes: Notes | None = None, title: str = "") -> Notes:
    """The notes that the rules make of a transcript, or bring up to its end."""
    part = part_of(made, notes, title=title)
    return noted(part, by_rule(part))
