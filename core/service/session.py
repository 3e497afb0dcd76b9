"""One transcript of any format, opened: what all operations start from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec import Raw

from core.context.dialect import NEWEST, Dialect
from core.context.sizes import (
    Part,
    measured,
    measured_conversation,
    overhead_tokens,
    parts_of_conversation,
    parts_of_messages,
    projected_uuids,
    stale_uuids,
)
from core.context.tokens.ledger import ContextSize
from core.context.tokens.models import SYNTHETIC, Model, Models
from core.context.tokens.models import load as load_models
from core.context.tokens.window import AS_FOUND, Levels, Measuring, levels
from core.context.view import messages_of
from core.model import Block, Message
from core.redact.text import redact
from core.results import Result
from core.transcript.chain import Transcript, aload, load
from core.transcript.formats import expect_one, find_format, read
from core.transcript.formats.conversation import Conversation
from core.transcript.formats.summarised import split_summary
from core.transcript.listing import describe
from core.transcript.projects import SessionFile
from core.transcript.reader import Reading

CLAUDE_CODE = "claude-code"


class SessionRef(Result):
    """Which transcript a result is about."""

    id: str
    path: str
    format: str
    title: str


@dataclass
class Session:
    """An open transcript.  `claude` is there for Claude Code's own format, `conversation` for all others."""

    file: SessionFile
    format: str
    dialect: Dialect
    claude: Transcript | None = None
    conversation: Conversation | None = None
    inside: Sequence[Path] | None = None
    """Where records of what it was made of may lead to; None: wherever they may at all."""
    measuring: Measuring = AS_FOUND

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.file.path

    @cached_property
    def title(self) -> str:
        """What the client calls the session, without the secrets of a first prompt; "" where it has no name."""
        title = self.conversation.title if self.conversation else describe(self.file).title
        return redact(title)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The active view: what the next model call is made of."""
        if self.claude:
            return messages_of(*self.claude, self.dialect)
        return split_summary(self.conversation.active) if self.conversation else ()

    @cached_property
    def cwd(self) -> str:
        """The folder that the session works in, "" where the file does not say."""
        if self.conversation:
            return self.conversation.cwd
        if self.claude and self.claude.chain.leaf:
            cwd = self.claude.log.row(self.claude.chain.leaf).get("cwd")
            return cwd if isinstance(cwd, str) else ""
        return ""

    @cached_property
    def recorded_decisions(self) -> Sequence[Raw]:
        """What stages decided about the active view, oldest first, as recorded."""
        from core.transcript.records import decisions_of

        return decisions_of(self.claude.log) if self.claude else ()

    @property
    def model_id(self) -> str:
        """The model of the last response that the API gave, "" when there is none."""
        if self.claude:
            models = (e.model for e in reversed(self.claude.chain.entries) if e.model not in ("", SYNTHETIC))
            return next(models, "")
        return self.conversation.model if self.conversation else ""

    @cached_property
    def models(self) -> Models:
        """All models that are known."""
        return load_models(self.measuring.models_file)

    @cached_property
    def model(self) -> Model:
        """The model that the session runs on, as the table knows it."""
        return self.models.lookup(self.model_id)

    @cached_property
    def size(self) -> ContextSize:
        """The size of the active view."""
        return size_of(self, self.model)

    @property
    def window_tokens(self) -> int:
        """The window that the session has."""
        return window_of(self, self.model)

    @cached_property
    def levels(self) -> Levels:
        """The sizes at which something happens."""
        return levels(self.model, self.window_tokens)

    @property
    def system(self) -> str:
        """The system prompt, where the format holds one."""
        return self.conversation.system if self.conversation else ""

    @property
    def tools(self) -> tuple[Block, ...]:
        """The tool definitions, where the format holds them."""
        return self.conversation.tools if self.conversation else ()

    def measured(self, parts: Sequence[Part], model: Model) -> ContextSize:
        """The size of the active view, cut into `parts`."""
        if self.conversation:
            from core.transcript.documents import written_tokens  # what can be written, too

            return measured_conversation(parts, self.conversation, model, written_tokens(self.path))
        return measured(parts, model, overhead_tokens(*self.claude) if self.claude else 0)

    @property
    def ref(self) -> SessionRef:
        """How results name the session."""
        return SessionRef(id=self.file.id, path=str(self.path), format=self.format, title=self.title)


@contextmanager
def opened(
    file: SessionFile,
    dialect: Dialect = NEWEST,
    whole: bool = False,
    inside: Sequence[Path] | None = None,
    measuring: Measuring = AS_FOUND,
    begun: Reading | None = None,
) -> Iterator[Session]:
    """Opens a transcript; `whole` reads it from its first byte, `inside` are the only folders its records lead into.

    A reading of it that was `begun` is gone on with.

    Raises `InputError` for a file that cannot be opened, `UnknownFormat`, `WrongFormat`, `Damaged`, and
    `SessionNotFound` where `file.pick` names none of its conversations.
    """
    kind = find_format(file.path).name
    if kind != CLAUDE_CODE:
        yield Session(file, kind, dialect, conversation=read(file.path, file.pick), measuring=measuring)
        return
    expect_one(file.path, file.pick)
    transcript = load(file.path, whole, begun)
    with transcript.log:
        yield Session(file, kind, dialect, claude=transcript, inside=inside, measuring=measuring)


@asynccontextmanager
async def aopened(
    file: SessionFile, *, whole: bool = False, inside: Sequence[Path] | None = None, measuring: Measuring = AS_FOUND
) -> AsyncIterator[Session]:
    """As `opened`, for a server: a long read leaves the event loop free, and can be cancelled between its batches."""
    import asyncio

    kind = (await asyncio.to_thread(find_format, file.path)).name
    if kind != CLAUDE_CODE:
        conversation = await asyncio.to_thread(read, file.path, file.pick)
        yield Session(file, kind, NEWEST, conversation=conversation, measuring=measuring)
        return
    expect_one(file.path, file.pick)
    transcript = await aload(file.path, whole)
    with transcript.log:
        yield Session(file, kind, NEWEST, claude=transcript, inside=inside, measuring=measuring)


def window_of(session: Session, model: Model) -> int:
    """The window that the session has on a model, in tokens: the one asked for, else its client's, else the model's.

    Claude Code gives some models less than they have; what other clients give them is not known.
    """
    client_tokens = model.client_window_tokens if session.claude else None
    return session.measuring.window_tokens or client_tokens or model.window_tokens


def size_of(session: Session, model: Model) -> ContextSize:
    """The size of a session's active view by a model, as all results state it."""
    parts = parts_of_conversation(session.conversation) if session.conversation else []
    if session.claude:
        chain = session.claude.chain
        parts = parts_of_messages(session.messages, stale_uuids(chain), projected_uuids(chain))
    return session.measured(parts, model)
