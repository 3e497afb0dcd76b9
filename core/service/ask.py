"""One real turn of an old session: a question, answered by a model from what the session holds.

Nothing is written unless that is asked for: then the session, as the turn left it, with the question and the answer
becomes a new one, which its client resumes.
"""

from __future__ import annotations

import re
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
from core.compaction.restore import RestoreLimits
from core.context.tokens.estimate import PRIOR
from core.context.tokens.ledger import ContextSize
from core.context.tokens.models import Model
from core.context.tokens.window import AS_FOUND, Measuring, levels
from core.defaults import KEEP_TOKENS
from core.errors import InputError
from core.model import JSON, Block, Message, block_text, call_id, text_block, tool_uses
from core.redact.text import redact
from core.redact.values import redact_messages
from core.service.operation import Operation, StageReport, Target
from core.service.session import Result, Session, SessionRef, opened, window_of
from core.service.spent import Spent, spent
from core.stages.base import Stage
from core.stages.read_dedup import ReadDedup
from core.summarizers.base import DEFAULT_BUDGET_CHARS, Summarizer
from core.summarizers.extractive import Extractive
from core.transcript.materialize import Compacted, derived_id
from core.transcript.projects import SessionFile
from core.transcript.records import Record
from core.transcript.store import Store
from core.turn.journal import Journal
from core.turn.loop import Conversation, TurnResult
from core.turn.request import RequestOptions
from core.turn.work import TurnSettings, Work

NAME = "ask"
MODEL = "claude-sonnet-5-5"
"""For sessions of models that the table does not know: what most accounts have, with a window that holds them."""
_SYSTEM = (
    "You look back at a session of a coding agent with the person who led it. The conversation so far is that session, "
    "or what is left of it; its last message is a new question. Answer it from what the session holds, and name files, "
    "commands and figures as they stand there. You have no tools here: where the answer would need one, say which."
)
_NO_TOOL = "A tool of the session. It cannot be used here."
_BLOCKS = ("text", "tool_use", "tool_result", "image", "document", "compaction")
"""What every request may hold; thinking is bound to another system prompt, the rest to tools of the server."""
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 128


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
    recovery: list[Recovery]
    warnings: list[str]
    output: str
    """The new session's file; "" where nothing was to be saved."""
    session_id: str
    """What the client resumes: the new session, or the old one."""


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What a person may choose about it, and what no transcript says."""

    model_id: str = ""
    """In place of the session's own."""
    save: bool = False
    measuring: Measuring = AS_FOUND
    keep_tokens: int = KEEP_TOKENS
    summary_chars: int = DEFAULT_BUDGET_CHARS
    restore: RestoreLimits = field(default_factory=RestoreLimits)


@dataclass(frozen=True, slots=True)
class Voice:
    """Who answers, who summarises, what time it is (`seconds` only grow), and who listens."""

    endpoint: Endpoint
    clock: Callable[[], datetime]
    seconds: Callable[[], float]
    summarizer: Summarizer = field(default_factory=Extractive)
    on_text: Callable[[str], None] | None = None
    on_retry: Callable[[str], None] = lambda _why: None


def ask(file: SessionFile, question: str, target: Target, options: AskOptions, voice: Voice) -> AskResult:
    """Asks about a session; its transcript keeps its bytes.

    Raises what reading and writing raise, InputError without a question or messages, ApiError when the model gave no
    answer, and ContextFull; then nothing was written.
    """
    if not question.strip():
        raise InputError("there is no question", 'foldmark ask SESSION "What is left to do?"')
    with opened(file, measuring=options.measuring) as session:
        if not session.messages:
            raise InputError(f"{session.path} holds no messages", "ask about a session that does")
        return _Ask(session, question, target, options, voice).result()


@dataclass(frozen=True)
class _Ask:
    session: Session
    question: str
    target: Target
    options: AskOptions
    voice: Voice

    def result(self) -> AskResult:
        now = self.voice.clock().isoformat()
        operation = Operation.of(self.session, self.target, NAME, self.question, self.options.model_id, now)
        metered = Metered(self.voice.endpoint, NO_CAPS, clock=self.voice.seconds, models=self.session.models)
        with self._store(operation) as store:
            sent = _sendable(self.session.messages)
            talk = self._conversation(sent, store, metered)
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

    def _conversation(self, sent: Sequence[Message], store: Store, endpoint: Endpoint) -> Conversation:
        session, options = self.session, self.options
        model = self._model()
        system: tuple[Block, ...] = tuple(text_block(t) for t in (redact(session.system), _SYSTEM) if t)
        tools = _tools(sent, session.tools)
        overhead = prompt_tokens({"system": [*system], "tools": [*tools]}, model)
        window_tokens = window_of(session, model)
        calibration = session.size.calibration if session.model.tokenizer == model.tokenizer else PRIOR
        settings = TurnSettings(
            model,
            system,
            tools,
            RequestOptions(tool_choice={"type": "none"}, system_messages=False),
            window_tokens=window_tokens,
            keep_tokens=options.keep_tokens,
            summary_chars=options.summary_chars,
            restore=options.restore,
            cwd=session.cwd,
            overhead_tokens=overhead,
            calibration=calibration,
        )
        work = Work(Journal(session.file.id, sent), settings, store, self.voice.clock)
        if work.size().total_tokens < levels(model, window_tokens).auto_threshold:
            # All of it fits, and without tools what is cleared cannot be read again: only what is twice there goes.
            lossless: tuple[Stage, ...] = (ReadDedup(),)
            work = replace(work, settings=replace(settings, stages=lossless))
        voice = self.voice
        return Conversation(work, endpoint, voice.summarizer, on_text=voice.on_text, on_retry=voice.on_retry)

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
            session_id=operation.new_id if saved else self.session.file.id,
        )


def _sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as another model takes them: no secrets, no thinking, no blocks of tools that are not there.

    Their usage was charged for another system prompt.
    """
    out: list[Message] = []
    for number, message in enumerate(redact_messages(messages)):
        blocks = tuple(_plain_block(b) for b in message.content if b.get("type") in _BLOCKS)
        uuids = message.uuids or (derived_id("asked", str(number)),)
        out.append(replace(message, content=blocks, usage=None, uuids=uuids))
    return tuple(m for m in out if m.content)


def _plain_block(block: Block) -> Block:
    """The block with names and ids that the API takes, and without references to tools."""
    content = block.get("content")
    if block.get("type") == "compaction":  # the block itself is signed for the conversation that it was made in
        return text_block(block_text(block))
    if block.get("type") == "tool_use":
        given = block.get("input")
        fields: JSON = given if isinstance(given, dict) else {"input": given}
        return {**block, "id": _plain(call_id(block)), "name": _plain(str(block.get("name"))), "input": fields}
    if block.get("type") != "tool_result":
        return block
    if isinstance(content, list):
        content = [i for i in content if isinstance(i, dict) and i.get("type") in _BLOCKS]
    return {**block, "tool_use_id": _plain(call_id(block)), "content": content or ""}


def _plain(name: str) -> str:
    return _NOT_PLAIN.sub("_", name)[:_NAME_CHARS]


def _tools(messages: Sequence[Message], defined: Sequence[Block]) -> tuple[Block, ...]:
    """A definition for each tool that the session used: the API takes no calls of tools that it does not know."""
    known = {str(tool.get("name")): tool for tool in defined if "input_schema" in tool}
    names = dict.fromkeys(str(b["name"]) for m in messages for b in tool_uses(m))
    return tuple(known.get(name) or _undefined(name) for name in names if name)


def _undefined(name: str) -> Block:
    return {"name": name, "description": _NO_TOOL, "input_schema": {"type": "object"}}


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

    def _compacted(self, messages: Sequence[Message], own: ContextSize) -> Compacted:
        session = self.operation.session
        before = session.messages
        known = {m.uuid: n for m, n in zip(before, own.item_tokens, strict=True)}
        estimates = self.talk.work.scene().tokens(messages)
        sizes = [min(n, known.get(m.uuid, n)) for m, n in zip(messages, estimates, strict=True)]
        is_new = messages[0].kind == "summary" and messages[0].uuid not in known
        kept = messages[1:] if is_new else messages
        there = {m.uuid for m in messages}
        same = next((i for i, (a, b) in enumerate(zip(kept, before, strict=False)) if a is not b), len(before))
        title = session.title.removeprefix(f"{NAME}: ")
        return Compacted(
            session_id=self.operation.new_id,
            summary="".join(block_text(b) for b in messages[0].content) if is_new else "",
            kept=kept,
            prompt_tokens=[*accumulate(sizes, initial=own.overhead_tokens)][1 if is_new else 0 :],
            tokens_before=own.total_tokens,
            tokens_after=own.overhead_tokens + sum(sizes),
            title=f"{NAME}: {title}",
            changed_from=0 if is_new else same,
            dropped=frozenset(u for m in before if m.uuid not in there for u in m.uuids),
            overhead_tokens=own.overhead_tokens,
        )
