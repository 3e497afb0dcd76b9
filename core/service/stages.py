"""Run stages on one transcript: read it with what was decided before, plan, store what goes, write the projection."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import msgspec

from core.context.decisions import Decision, fold
from core.context.tokens.ledger import items_of, measure_like
from core.context.tokens.window import AS_FOUND, Measuring
from core.errors import WriteFailed
from core.model import Message
from core.service.operation import Loss, Operation, Outcome, StageReport, Target, attempted
from core.service.past_decisions import decided, take_along, with_contents_back
from core.service.session import Session, opened
from core.stages.base import Plan, Scene, applied
from core.stages.edits import store_bodies, store_pages
from core.transcript.materialize import NewHistory, derived_id
from core.transcript.projects import SessionFile
from core.transcript.records import Record
from core.transcript.store import Store


class StageResult(Outcome):
    """What stages did, would do, or found needless (`changed` is false, `reason` says why)."""

    op: str


@dataclass(frozen=True, slots=True)
class StageSettings:
    """What the stages need to know that no transcript says."""

    measuring: Measuring = AS_FOUND
    now: datetime | None = None
    forced: bool = False
    """Do what costs more than it saves, too."""


NO_SETTINGS = StageSettings()


@dataclass(frozen=True)
class StageRun:
    """An open session, about to be changed by stages: `op` is what the record calls that, `asked` what was asked for.

    The result of the same `op`, `asked` and decisions on the same history is the same session.
    """

    session: Session
    op: str
    asked: tuple[str, ...]
    target: Target
    settings: StageSettings = NO_SETTINGS
    comes_to: str = ""
    """A digest of all decisions; "" while they are being planned, under a name that has not counted them yet."""

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided about this history before."""
        return decided(self.session)

    @cached_property
    def operation(self) -> Operation:
        """What is made, and where that goes."""
        return Operation.of(self.session, self.target, self.op, *self.asked, self.comes_to)

    @cached_property
    def scene(self) -> Scene:
        """What stages plan on."""
        return Scene(
            self.session.messages,
            self.session.model,
            fold(self.decisions),
            self.session.size.calibration,
            self.session.size.overhead_tokens,
            str(self.operation.store.folder),
            self.settings.now,
            self.session.levels.auto_threshold,
            self.settings.forced,
        )

    @cached_property
    def earlier(self) -> frozenset[str]:
        """Ids of rows that were read, and are in the context no more."""
        if self.session.claude is None:
            return frozenset()
        log, chain = self.session.claude
        return frozenset(e.uuid for e in log.entries) - {e.uuid for e in chain.entries}

    def named(self, plans: Sequence[Plan]) -> StageRun:
        """The run under the name of its result, which all that was decided before and is planned has a part in.

        The folder that the result is written to has none.
        """
        decisions = [*self.decisions, *(d for plan in plans for d in plan.decisions)]
        text = msgspec.json.encode(decisions).replace(_in_json(self.operation.store.folder), b"")
        return replace(self, comes_to=hashlib.sha256(text).hexdigest())


def run_stages(
    file: SessionFile,
    op: str,
    asked: Sequence[str],
    choose: Callable[[StageRun], Sequence[Plan]],
    target: Target,
    settings: StageSettings = NO_SETTINGS,
) -> StageResult:
    """Opens a transcript, has `choose` make the plans, and writes what they come to.

    In place it starts anew when rows were written meanwhile.  Raises what reading, `choose` and writing raise.
    """

    def once() -> StageResult:
        with opened(file, measuring=settings.measuring) as session:
            run = StageRun(session, op, tuple(asked), target, settings)
            return write_projection(run, choose(run))

    return attempted(once)


def write_projection(run: StageRun, plans: Sequence[Plan]) -> StageResult:
    """Stores what the plans take out, then writes what the model sees with them, and records their decisions.

    Each plan has to be made on what those before it left.  Where nothing would change nothing is written, but for
    decisions in place, which are recorded.  Raises WriteFailed, Locked, Changed, Damaged: then no transcript changed.
    """
    if not run.target.in_place:
        draft, run = run, run.named(plans)
        plans = _moved(plans, draft.operation.store.folder, run.operation.store.folder)
    with run.operation.pending() as reason:
        stored, warnings = (plans, []) if reason else _stored(run, plans)
        if warnings and not any(plan.bodies for plan in stored):
            raise WriteFailed("; ".join(warnings), "put right what is in the way, and run the command again")
        written = _Written(run, stored, warnings)
        if not written.decisions or not (written.differs or run.target.in_place):
            return written.needless()
        if not reason:
            written.write()
            return written.result()
        return msgspec.structs.replace(written.result(), changed=False, reason=reason)


def _in_json(path: Path) -> bytes:
    """The path as it stands in a JSON string."""
    return msgspec.json.encode(str(path))[1:-1]


def _moved(plans: Sequence[Plan], old: Path, new: Path) -> list[Plan]:
    """The plans, with the new folder of the store in all that they say to the model."""
    moved = (msgspec.json.encode(p.decisions).replace(_in_json(old), _in_json(new)) for p in plans)
    return [
        replace(plan, decisions=msgspec.json.decode(decisions, type=tuple[Decision, ...]))
        for plan, decisions in zip(plans, moved, strict=True)
    ]


def _stored(run: StageRun, plans: Sequence[Plan]) -> tuple[list[Plan], list[str]]:
    """The plans, without what could not be stored, and what is to be said of that."""
    scene, kept, warnings = run.scene, list[Plan](), list[str]()
    for plan in plans:
        stored = store_bodies(run.operation.store, scene, plan)
        store_pages(run.operation.store, scene, stored, run.session.file.id)
        scene = applied(scene, stored)
        kept.append(stored)
        if len(stored.bodies) < len(plan.bodies):
            warnings.append(stored.reason)
    return kept, warnings


@dataclass(frozen=True)
class _Written:
    """What the plans come to."""

    run: StageRun
    plans: Sequence[Plan]
    warnings: list[str]

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        return tuple(d for plan in self.plans for d in plan.decisions)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        scene = applied(self.run.scene, Plan(self.run.op, self.decisions))
        return with_contents_back(scene.view().messages, scene.state, Store.beside(self.run.session.path))

    @cached_property
    def before(self) -> tuple[Message, ...]:
        """What is sent now: no message without content (thinking alone that was never signed)."""
        return tuple(m for m in self.run.session.messages if m.content)

    @cached_property
    def changed_from(self) -> int:
        """The first message that is not what it was; behind the last where all are."""
        pairs = zip(self.messages, self.before, strict=False)
        return next((i for i, (new, old) in enumerate(pairs) if new is not old), len(self.messages))

    @property
    def differs(self) -> bool:
        """Whether the model sees anything else than before."""
        return len(self.messages) != len(self.before) or self.changed_from < len(self.messages)

    @cached_property
    def sizes(self) -> list[int]:
        """Tokens of each message: of what stays as they were, of what is new by estimate in the same proportion."""
        run = self.run
        estimates = self._estimates(run.session.messages)
        measured = zip(run.session.messages, run.session.size.item_tokens, estimates, strict=True)
        old = {message.uuid: (message, tokens, estimate) for message, tokens, estimate in measured}
        ratio = sum(run.session.size.item_tokens) / max(1, sum(estimates))
        out = []
        for message, estimate in zip(self.messages, self._estimates(self.messages), strict=True):
            before, tokens, old_estimate = old.get(message.uuid, (None, estimate, 0))
            if before is not message:
                most = tokens if estimate <= old_estimate else estimate
                tokens = min(round(estimate * ratio), most)
            out.append(tokens)
        return out

    def _estimates(self, messages: Sequence[Message]) -> Sequence[int]:
        return measure_like(items_of(messages), self.run.session.model, self.run.session.size).item_tokens

    @property
    def freed_tokens(self) -> Mapping[str, int]:
        """By each stage, with all its plans."""
        freed: Counter[str] = Counter()
        for plan in self.plans:
            freed[plan.stage] += plan.tokens_freed
        return freed

    def result(self) -> StageResult:
        run, there = self.run, {m.uuid for m in self.messages}
        gone = sum(m.uuid not in there for m in self.before)
        return StageResult(
            session=run.session.ref,
            output=str(run.operation.output),
            output_id=run.operation.new_id,
            op=run.op,
            tokens_before=run.session.size.total_tokens,
            tokens_after=min(run.session.size.total_tokens, run.session.size.overhead_tokens + sum(self.sizes)),
            stages=[StageReport(stage=stage, tokens_freed=tokens) for stage, tokens in self.freed_tokens.items()],
            loss=Loss(kept=len(self.before) - gone, reachable=gone, gone=0),
            verdicts=[f"{p.stage}: {p.verdict}" for p in self.plans if p.verdict and p.verdict.deleted_tokens],
            warnings=self.warnings,
            changed=True,
            reason="; ".join(p.reason for p in self.plans if p.reason),
        )

    def needless(self) -> StageResult:
        """What there is instead of a result: the source, as it is."""
        result, source = self.result(), self.run.session.ref
        return msgspec.structs.replace(
            result,
            output=source.path,
            output_id=source.id,
            tokens_after=result.tokens_before,
            changed=False,
            reason=result.reason or "nothing is to be done",
        )

    def write(self) -> None:
        take_along(self.run.operation.store, self.run.session, self.run.decisions)
        self.run.operation.write(self._record(), self._content())

    def _record(self) -> Record:
        run, result, operation = self.run, self.result(), self.run.operation
        kept = (*run.decisions, *self.decisions) if self.differs else self.decisions
        return Record(
            op=run.op,
            id=derived_id("record", operation.new_id, run.op, *run.asked, str(operation.source.size)),
            session_id=operation.new_id,
            source=operation.source,
            tokens_before=result.tokens_before,
            tokens_after=result.tokens_after,
            decisions=tuple(msgspec.Raw(msgspec.json.encode(d)) for d in kept),
        )

    def _content(self) -> bytes:
        """What is written, but for the record."""
        run = self.run
        if run.session.claude is None:
            return run.operation.document(self.messages)
        return run.operation.rows(self._compacted(self.result())) if self.differs else b""

    def _compacted(self, result: StageResult) -> NewHistory:
        run = self.run
        there = {m.uuid for m in self.messages}
        return NewHistory(
            session_id=run.operation.new_id,
            summary="",
            kept=self.messages,
            prompt_tokens=[*accumulate(self.sizes, initial=run.session.size.overhead_tokens)],
            tokens_before=result.tokens_before,
            tokens_after=result.tokens_after,
            title=run.operation.titled(run.op),
            changed_from=self.changed_from,
            dropped=frozenset(u for m in run.session.messages if m.uuid not in there for u in m.uuids),
            in_place=run.target.in_place,
            overhead_tokens=run.session.size.overhead_tokens,
        )
