"""Compact one session by a summary: choose what goes, have it summarised, store it, write what stays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from core.compaction.cut import Cut
from core.compaction.full import CompactionPlan, choose, plan, text_message
from core.compaction.state import NO_STATE, State, state_of
from core.context.rounds import cut_points, in_thinking_loop
from core.report.fidelity import fidelity
from core.service.final_plan import FinalPlan
from core.service.job import CompactResult, Done, Job
from core.service.operation import WRITTEN_BEFORE, Loss, Operation, StageReport
from core.service.usage import spent
from core.summarizers.fallback import remarks_of, repairer_of, rescue_of
from core.transcript.formats.summarised import is_settled, with_head
from core.transcript.materialize import NewHistory, derived_id
from core.transcript.note import note_of
from core.transcript.records import Record

NOTHING_KEPT = (
    "the last turn is unfinished and holds thinking: nothing can be kept word for word, whatever was asked for"
)
"""What a person is told who asked for a tail."""


def full(job: Job) -> CompactResult:
    """By a summary of all but the tail; raises as `core.compaction.full.plan` and as writing does."""
    if reason := done_before(job):
        return job.unchanged(reason)
    return carried_out(Task(job, "full"))


def partial(job: Job) -> CompactResult:
    """By a summary of what is before one message, or from it on; raises as `full`, and IdNotFound."""
    return carried_out(Task(job, "partial"))


def done_before(job: Job) -> str:
    """Why there is nothing to do, if this is what a compaction left, and it was asked to keep no more than now."""
    session, keep_tokens = job.session, job.options.keep_tokens
    if session.conversation:
        settled = is_settled(session.conversation.active, keep_tokens)
    else:
        note = note_of(*session.claude) if session.claude else None
        leaf = session.claude.chain.leaf if session.claude else None
        settled = bool(note and leaf and leaf.uuid == note.leaf_uuid and note.keep_tokens <= keep_tokens)
    return "nothing was added since the last compaction" if settled else ""


def carried_out(task: Task) -> CompactResult:
    """What a compaction comes to: planned and written, or found written before."""
    if earlier := task.operation.written:
        return task.written_before(earlier)
    final = FinalPlan.of(task.planned(), task.job, task.operation.store)
    planned = final.plan
    with task.operation.pending() as reason:
        if not reason:
            task.write(final)
    remarks = () if reason else task.job.hooks.post_compact(task.job.about, planned.summary.text).remarks
    return task.result(planned, reason, remarks)


@dataclass(frozen=True)
class Task:
    """One compaction: of what, and where it goes."""

    job: Job
    how: Done

    @cached_property
    def cut(self) -> Cut:
        """What goes: what went in an attempt before, if that is there still and may be cut out."""
        job, messages = self.job, self.job.session.messages
        cut = self._earlier_cut() or choose(messages, job.session.size.item_tokens, job.options, job.target.in_place)
        job.asked.gone = tuple(m.uuid for m in messages[cut.start : cut.end])
        return cut

    def _earlier_cut(self) -> Cut | None:
        messages, gone, options = self.job.session.messages, self.job.asked.gone, self.job.options
        uuids = [m.uuid for m in messages]
        if not gone or gone[0] not in uuids or in_thinking_loop(messages):
            return None
        start = uuids.index(gone[0])
        end = start + len(gone)
        if tuple(uuids[start:end]) != gone or end not in cut_points(messages):
            return None
        return Cut(start, end, "up_to" if options.up_to else "from" if options.since else "")

    @cached_property
    def operation(self) -> Operation:
        """The same for the same compaction of the same history."""
        job = self.job
        if job.asked.new_id:
            return Operation(job.session, job.target, job.asked.new_id)
        return Operation.of(job.session, job.target, *self._choices())

    def _choices(self) -> list[str]:
        """What the result is one of: other choices make another session."""
        options, limits = self.job.options, self.job.options.restore
        sizes = (options.keep_tokens, options.summary_chars, limits.files, limits.file_tokens, limits.total_tokens)
        part = [f"{self.cut.direction} {self._at}"] if self.how == "partial" else []
        return [*self.job.asked.choice, *map(str, sizes), options.instructions, *part]

    @property
    def _at(self) -> str:
        """The message that a partial compaction was cut at."""
        at = self.cut.end if self.cut.direction == "up_to" else self.cut.start
        return self.job.session.messages[at].uuid

    @property
    def page(self) -> str:
        """The name of the compaction's page in the store."""
        return self.operation.new_id[:8]

    @property
    def history(self) -> Path:
        """Where all that goes can be read."""
        operation = self.operation
        return operation.output if self.job.target.in_place else operation.store.page(self.page)

    @cached_property
    def state(self) -> State:
        """What the session was in the middle of."""
        claude = self.job.session.claude
        return state_of(*claude, self.job.session.messages) if claude else NO_STATE

    def planned(self) -> CompactionPlan:
        """What would be done; raises as `core.compaction.full.plan`."""
        job = self.job
        job.asked.new_id = self.operation.new_id
        return plan(
            job.context(str(self.history)),
            job.asked,
            job.options,
            cut=self.cut,
            state=self.state,
            hooks=job.hooks,
            about=job.about,
            repairer=repairer_of(job.asked.summarizer),
            rescue=rescue_of(job.asked.summarizer),
        )

    def write(self, final: FinalPlan) -> None:
        """Stores what goes, then writes what stays: a body is on disk before anything leans on it.

        In place, what goes is in the transcript already.
        """
        operation, session, planned = self.operation, self.job.session, final.plan
        if not self.job.target.in_place:
            header = f"What a compaction took out of session {session.file.id}"
            operation.store.archive(self.page, planned.gone, header)
        final.store(self.job, operation.store)
        operation.write(self._record(final), self._content(planned))

    def _record(self, final: FinalPlan) -> Record:
        operation, planned = self.operation, final.plan
        decisions = tuple(msgspec.Raw(msgspec.json.encode(d)) for d in final.decisions)
        return Record(
            op="compact",
            id=derived_id("record", operation.new_id, str(planned.tokens_before), str(operation.source.size)),
            session_id=operation.new_id,
            source=operation.source,
            summarizer=planned.summary.summarizer,
            tokens_before=planned.tokens_before,
            tokens_after=planned.tokens_after,
            decisions=decisions or msgspec.UNSET,
        )

    def _content(self, planned: CompactionPlan) -> bytes:
        """What is written, but for the record."""
        if self.job.session.claude:
            return self.operation.rows(self._compacted(planned))
        summary = planned.summary.text
        if not self.job.target.markdown:
            summary = with_head(summary, self.job.options.keep_tokens, planned.kept)
        front = [text_message("summary", summary)]
        front += [text_message("meta", r.text) for r in planned.restored]
        return self.operation.document([*planned.head, *front, *planned.kept])

    def _compacted(self, planned: CompactionPlan) -> NewHistory:
        head = len(planned.head)
        return NewHistory(
            session_id=self.operation.new_id,
            summary=planned.summary.text,
            kept=(*planned.head, *planned.kept),
            prompt_tokens=planned.prompt_tokens,
            tokens_before=planned.tokens_before,
            tokens_after=planned.tokens_after,
            summary_at=head,
            gone=frozenset(uuid for message in planned.gone for uuid in message.uuids),
            direction=self.cut.direction,
            restored=[r.text for r in planned.restored],
            title=self.operation.titled("compacted"),
            permission_mode=self.state.permission_mode,
            changed_from=head,
            in_place=self.job.target.in_place,
            keep_tokens=self._kept_tokens(planned),
            overhead_tokens=planned.overhead_tokens,
        )

    def _kept_tokens(self, planned: CompactionPlan) -> int:
        """What the next compaction is told that was kept: as much as was asked for, or what a part left."""
        if not self.cut.direction:
            return self.job.options.keep_tokens
        front = len(planned.head)
        return sum(planned.sizes_tokens[:front]) + sum(planned.sizes_tokens[front + 1 + len(planned.restored) :])

    @property
    def _remarks(self) -> tuple[str, ...]:
        """That nothing could be kept, where something was to be."""
        is_kept = self.cut.direction or not self.job.options.keep_tokens
        return () if is_kept or not in_thinking_loop(self.job.session.messages) else (NOTHING_KEPT,)

    def result(self, planned: CompactionPlan, reason: str, remarks: tuple[str, ...] = ()) -> CompactResult:
        """What the plan comes to; `reason`: why it was not carried out."""
        kept, gone = len(planned.head) + len(planned.kept), len(planned.gone)
        return CompactResult(
            session=self.job.session.ref,
            output=str(self.operation.output),
            output_id=self.operation.new_id,
            how=self.how,
            summarizer=planned.summary.summarizer,
            tokens_before=planned.tokens_before,
            tokens_after=planned.tokens_after,
            stages=[StageReport(stage=self.how, tokens_freed=planned.tokens_before - planned.tokens_after)],
            loss=Loss(kept=kept, reachable=gone, gone=0),
            restored=[r.path for r in planned.restored if r.has_content],
            warnings=[*planned.remarks, *remarks, *self._remarks],
            usage=spent(planned.summary.usage),
            fidelity=fidelity(planned.verification) if planned.verification else None,
            changed=not reason,
            reason=reason,
        )

    def written_before(self, record: Record) -> CompactResult:
        """What was written before; nobody is asked for a summary again."""
        gone = self.cut.end - self.cut.start
        return CompactResult(
            session=self.job.session.ref,
            output=str(self.operation.output),
            output_id=self.operation.new_id,
            how=self.how,
            summarizer=record.summarizer,
            tokens_before=record.tokens_before,
            tokens_after=record.tokens_after,
            stages=[StageReport(stage=self.how, tokens_freed=record.tokens_before - record.tokens_after)],
            loss=Loss(kept=len(self.job.session.messages) - gone, reachable=gone, gone=0),
            warnings=[*remarks_of(self.job.asked.summarizer, record.summarizer), *self._remarks],
            changed=False,
            reason=WRITTEN_BEFORE,
        )
