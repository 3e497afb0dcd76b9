"""Compact one session by its notes: they stand for what goes, no model is asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from core.compaction.cut import Cut
from core.compaction.full import CompactionPlan, Context, measured, with_session_start
from core.compaction.hooks import allowed
from core.compaction.memory import Memory, plan_from_memory
from core.compaction.restore_state import restored_state
from core.errors import Damaged, Locked, NoUsableMemory
from core.memory.files import Held, MemoryFiles
from core.memory.notes import budget_tokens
from core.service.by_summary import Task, carried_out, done_before
from core.service.job import DEFAULT_NOTES, Choices, CompactResult, Job, NotesRules
from core.service.session import Session


def memory(job: Job) -> CompactResult:
    """By the notes of the session, which an update that runs is waited for.

    Raises NoUsableMemory with the reason where they cannot stand for what would go, and what writing raises.
    """
    if reason := done_before(job):
        return job.unchanged(reason)
    if job.session.claude is None:
        raise NoUsableMemory("only Claude Code sessions have notes", "{full} works on all")
    return carried_out(_Noted(job, "memory"))


@dataclass(frozen=True)
class _Noted(Task):
    """A compaction whose summary is there before it begins."""

    @cached_property
    def cut(self) -> Cut:
        """What the notes tell of, but for the tail."""
        return Cut(0, len(self._draft.gone))

    @property
    def _rules(self) -> NotesRules:
        return self.job.choices.notes or DEFAULT_NOTES

    @cached_property
    def _held(self) -> Held:
        files = MemoryFiles.beside(self.job.session.file)
        try:
            held = files.read()
        except Damaged as error:
            raise NoUsableMemory(str(error), error.hint) from None
        if held.exists and not self.job.target.dry_run:
            with suppress(Locked), files.locked(self._rules.limits.wait_s):
                held = files.read()
        return held

    @cached_property
    def _context(self) -> Context:
        return self.job.context(str(self.history))

    @cached_property
    def _draft(self) -> CompactionPlan:
        return by_notes(self.job.session, self._context, self._held, self.job.choices)

    def planned(self) -> CompactionPlan:
        """The notes and the tail, and what the session was in the middle of; files are named in the notes."""
        job = self.job
        draft = self._draft  # first: where notes are of no use, it is the next way that asks the hooks
        asked = allowed(job.hooks, job.about, job.options.instructions)
        restored = restored_state(self.state, job.session.messages, draft.kept, job.options.restore)
        draft = replace(draft, restored=tuple(restored), remarks=asked.remarks)
        return with_session_start(measured(draft, self._context), self._context, job.hooks, job.about)

    def _choices(self) -> list[str]:
        asked_tokens = self._rules.tail.asked_tokens
        return ["memory", self._held.sha256, str(self.job.options.keep_tokens), str(asked_tokens)]


def by_notes(session: Session, context: Context, held: Held, choices: Choices) -> CompactionPlan:
    """The notes in the place of what they cover of a session; raises as `plan_from_memory`."""
    rules = choices.notes or DEFAULT_NOTES
    room_tokens = budget_tokens(rules.limits.most_tokens, session.window_tokens)
    path = MemoryFiles.beside(session.file).notes_path
    rows = {entry.uuid for entry in session.claude.log.entries} if session.claude else set[str]()
    return plan_from_memory(
        context,
        Memory(held.notes, path, room_tokens) if held.exists else None,
        session.file.id,
        threshold_tokens=session.levels.auto_threshold,
        in_file=rows.__contains__,
        rules=replace(rules.tail, least_tokens=min(rules.tail.least_tokens, choices.options.keep_tokens)),
        in_place=choices.target.in_place,
    )
