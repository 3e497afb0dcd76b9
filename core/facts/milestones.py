"""Where a piece of work ended: a task is done, or a commit was made."""

from __future__ import annotations

from collections.abc import Sequence

from core.facts.git import is_commit
from core.facts.scan import Call
from core.facts.tasks import completes


def closes(calls: Sequence[Call]) -> list[bool]:
    """For each call whether a piece of work ended with it."""
    return [done or is_commit(call) for call, done in zip(calls, completes(calls), strict=True)]
