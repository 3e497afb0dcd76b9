"""One real turn of an old session: a question, answered by a model from what the session holds.

Nothing is written unless that is asked for: then the session, as the turn left it, with the question and the answer
becomes a new one, which its client resumes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path

from core.api.endpoint import Endpoint
from core.api.metered import NO_CAPS, Metered
from core.api.payload import prompt_tokens
from core.compaction.full import CompactionPlan, Context, with_session_start
from core.compaction.hooks import About, allowed
from core.context.tokens.estimate import PRIOR
from core.context.tokens.ledger import ContextSize
from core.context.tokens.models import Model
from core.errors import Damaged, InputError, NoUsableMemory
from core.memory.files import MemoryFiles
from core.model import Message, block_text
from core.redact.text import redact
from core.results import Result
from core.service.by_notes import by_notes
from core.service.job import Choices
from core.service.operation import Operation, StageReport
from core.service.plain import sendable, tools_of
from core.service.session import Session, SessionRef, opened, window_of
from core.service.surroundings import Surroundings, Workstation
from core.service.usage import Spent, spent
from core.stages.base import Stage
from core.stages.collapse import Collapse
from core.stages.microcompact import Microcompact
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip
from core.stages.tool_budget import ToolBudget
from core.summarizers.base import Summarizer
from core.summarizers.extractive import Extractive
from core.transcript.materialize import NewHistory, derived_id
from core.transcript.projects import SessionFile
from core.transcript.records import Record
from core.transcript.store import Store
from core.turn.journal import Journal
from core.turn.loop import Conversation, TurnResult
from core.turn.request import RequestOptions, blocks_of
from core.turn.work import TurnSettings, Work

NAME = "ask"
MODEL = "claude-sonnet-5-5"
"""For sessions of models that the table does not know: what most accounts have, with a window that holds them."""
_SYSTEM = (
    "You look back at a session of a coding agent with the person who led it. The conversation so far is that session, "
    "or what is left of it; its last message is a new question. What has changed since then may stand behind it: know "
    "it, do not act on it. Answer the question from what the session holds, and name files, commands and figures as "
    "they stand there. You have no tools here: where the answer would need one, say which."
)


class Recovery(Result):
    """A refused request that went through after all."""

    reason: str
    steps: list[str]
    removed: int
    """How many messages, results, images and the like had to go."""
    asked_tokens: int | None
    limit_tokens: int | None


class AskResult(Result):
    """The answer, what it cost, and what had to be done for it."""

    session: SessionRef
    answer: str
    stop_reason: str
    model: str
    requests: int
    usage: Spent
    usd: float | None
    """At list prices; null where the model's are not known."""
    stages: list[StageReport]
    attachments: list[str]
    """What the model was told beside the session, by kind: what has changed since it ended."""
    recovery: list[Recovery]
    warnings: list[str]
    output: str
    """The new session's file; "" where nothing was to be saved."""
    output_id: str
    """Of the session in it, which the client resumes."""


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What a person may choose about a question."""

    model_id: str = ""
    """In place of the session's own."""
    save: bool = False


@dataclass(frozen=True, slots=True)
class Voice:
    """Who answers, who summarises, what time it is (`seconds` only grow), and who listens."""

    endpoint: Endpoint
    clock: Callable[[], datetime]
    seconds: Callable[[], float]
    summarizer: Summarizer = field(default_factory=Extractive)
    on_text: Callable[[str], None] | None = None
    on_retry: Callable[[str], None] = lambda _why: None


def ask(
    file: SessionFile,
    question: str,
    choices: Choices,
    voice: Voice,
    options: AskOptions = AskOptions(),
    machine: Workstation | None = None,
) -> AskResult:
    """Asks about a session; its transcript keeps its bytes.

    `choices` say how it is made to fit; `machine` is where its files may be, None where nothing but the session is to
    be sent.  Raises what reading and writing raise, InputError without a question or messages, ApiError when the model
    gave no answer, and ContextFull; then nothing was written.
    """
    if not question.strip():
        raise InputError("there is no question", "say what you want to know: {ask}")
    with opened(file, measuring=choices.settings.measuring) as session:
        if not session.messages:
            raise InputError(f"{session.path} holds no messages", "ask about a session that does")
        return _Ask(session, question, choices, voice, options, machine).result()


@dataclass(frozen=True)
class _Ask:
    session: Session
    question: str
    choices: Choices
    voice: Voice
    options: AskOptions
    machine: Workstation | None

    def result(self) -> AskResult:
        now = self.voice.clock()
        operation = Operation.of(
            self.session, self.choices.target, NAME, self.question, self.options.model_id, now.isoformat()
        )
        metered = Metered(self.voice.endpoint, NO_CAPS, clock=self.voice.seconds, models=self.session.models)
        with self._store(operation) as store:
            sent = sendable(self.session.messages)
            around = Surroundings(self.session, sent, self.machine, now) if self.machine else None
            talk = self._conversation(sent, around, store, metered)
            turn = talk.turn(redact(self.question))
            if self.options.save:
                _Saved(operation, sent, talk).write()
        return self._told(turn, metered, operation)

    @contextmanager
    def _store(self, operation: Operation) -> Iterator[Store]:
        """Where bodies go that give way: beside the new session, or nowhere in the end."""
        with ExitStack() as stack:
            if self.options.save:
                stack.enter_context(operation.pending())
                yield operation.store
            else:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="foldmark-"))
                yield Store(Path(folder) / "session" / "tool-results")

    def _conversation(
        self, sent: Sequence[Message], around: Surroundings | None, store: Store, endpoint: Endpoint
    ) -> Conversation:
        settings = self._settings(sent, around)
        journal = around.journal if around else Journal(self.session.file.id, sent)
        work = Work(journal, settings, store, self.voice.clock, around.fixed if around else None)
        if work.size().total_tokens < work.levels.auto_threshold:
            # All of it fits, and without tools what is cleared cannot be read again: only what is twice there goes.
            lossless: tuple[Stage, ...] = (ReadDedup(),)
            work = replace(work, settings=replace(settings, stages=lossless))
        voice = self.voice
        talk = Conversation(
            work, endpoint, voice.summarizer, self._by_notes, on_text=voice.on_text, on_retry=voice.on_retry
        )
        return replace(talk, world=around.world) if around else talk

    def _settings(self, sent: Sequence[Message], around: Surroundings | None) -> TurnSettings:
        session, model, options = self.session, self._model(), self.choices.options
        system, tools = tuple(blocks_of(redact(session.system), _SYSTEM)), tools_of(sent, session.tools)
        front = (around.fixed.system, around.fixed.user.text) if around else ()
        overhead = prompt_tokens({"system": [*system, *blocks_of(*front)], "tools": [*tools]}, model)
        return TurnSettings(
            model,
            system,
            tools,
            RequestOptions(tool_choice={"type": "none"}, system_messages=False),
            (ToolBudget(self.choices.budget), ReadDedup(), Snip(), Microcompact(), Collapse()),
            window_of(session, model),
            keep_tokens=options.keep_tokens,
            summary_chars=options.summary_chars,
            instructions=options.instructions,
            restore=options.restore,
            hooks=self.choices.hooks,
            cwd=session.cwd,
            transcript=str(session.path),
            overhead_tokens=overhead,
            calibration=session.size.calibration if session.model.tokenizer == model.tokenizer else PRIOR,
        )

    def _by_notes(self, context: Context) -> CompactionPlan:
        """The notes of the session in the place of what they cover, with what hooks have to say."""
        session, choices = self.session, self.choices
        try:
            held = MemoryFiles.beside(session.file).read()
        except Damaged as error:
            raise NoUsableMemory(str(error)) from None
        draft = by_notes(session, context, held, choices)
        about = About(session.file.id, str(session.path), session.cwd, "auto")
        asked = allowed(choices.hooks, about, choices.options.instructions)
        return with_session_start(replace(draft, remarks=asked.remarks), context, choices.hooks, about)

    def _model(self) -> Model:
        session = self.session
        if self.options.model_id:
            return session.models.lookup(self.options.model_id)
        return session.model if session.model.known and session.model_id else session.models.lookup(MODEL)

    def _told(self, turn: TurnResult, metered: Metered, operation: Operation) -> AskResult:
        saved = self.options.save
        return AskResult(
            session=self.session.ref,
            answer=turn.reply.text,
            stop_reason=turn.reply.stop_reason,
            model=turn.reply.model or self._model().id,
            requests=metered.spent.calls,
            usage=spent(metered.spent.usage),
            usd=metered.spent.dollars,
            stages=[StageReport(stage=stage, tokens_freed=freed) for stage, freed in turn.stages],
            attachments=[*turn.attached],
            recovery=[
                Recovery(
                    reason=event.reason,
                    steps=[*event.rungs],
                    removed=len(event.removed),
                    asked_tokens=event.asked_tokens,
                    limit_tokens=event.limit_tokens,
                )
                for event in turn.recovered
            ],
            warnings=[*turn.warnings],
            output=str(operation.output) if saved else "",
            output_id=operation.new_id if saved else "",
        )


@dataclass(frozen=True)
class _Saved:
    """The session after the turn: rows that nothing was done to stay as they are."""

    operation: Operation
    sent: Sequence[Message]
    talk: Conversation

    def write(self) -> None:
        operation, session = self.operation, self.operation.session
        messages = self._messages()
        own = session.size
        compacted = self._compacted(messages, own)
        content = operation.rows(compacted) if session.claude else operation.document(messages)
        record = Record(
            op=NAME,
            id=derived_id("record", operation.new_id),
            session_id=operation.new_id,
            source=operation.source,
            tokens_before=compacted.tokens_before,
            tokens_after=compacted.tokens_after,
        )
        operation.write(record, content)

    def _messages(self) -> list[Message]:
        """What the model would see next, of the original messages where they were sent whole."""
        originals = {m.uuid: m for m in self.operation.session.messages}
        sent = {m.uuid: m for m in self.sent}
        view = self.talk.work.scene().view().messages
        return [originals[m.uuid] if m.uuid in originals and sent.get(m.uuid) == m else m for m in view]

    def _compacted(self, messages: Sequence[Message], own: ContextSize) -> NewHistory:
        session = self.operation.session
        before = session.messages
        known = {m.uuid: n for m, n in zip(before, own.item_tokens, strict=True)}
        estimates = self.talk.work.scene().tokens(messages)
        sizes = [min(n, known.get(m.uuid, n)) for m, n in zip(messages, estimates, strict=True)]
        is_new = messages[0].kind == "summary" and messages[0].uuid not in known
        kept = messages[1:] if is_new else messages
        there = {m.uuid for m in messages}
        same = next((i for i, (a, b) in enumerate(zip(kept, before, strict=False)) if a is not b), len(before))
        return NewHistory(
            session_id=self.operation.new_id,
            summary="".join(block_text(b) for b in messages[0].content) if is_new else "",
            kept=kept,
            prompt_tokens=[*accumulate(sizes, initial=own.overhead_tokens)][1 if is_new else 0 :],
            tokens_before=own.total_tokens,
            tokens_after=own.overhead_tokens + sum(sizes),
            title=self.operation.titled(NAME),
            changed_from=0 if is_new else same,
            dropped=frozenset(u for m in before if m.uuid not in there for u in m.uuids),
            overhead_tokens=own.overhead_tokens,
        )
