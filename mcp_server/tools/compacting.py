"""The tool that compacts: with a summary of the calling model, of the host, or of a summariser of Foldmark."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import Annotated, Any

from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, CreateMessageResult, SamplingMessage, TextContent
from pydantic import Field

from core.service.compact import compact
from core.service.host import NAME, wanted, what_to_write
from core.service.inline import spooled, with_messages
from core.service.job import CompactResult, How
from core.service.persist import persist
from core.summarizers.base import Summarizer, SummaryRequest
from core.summarizers.given import Given
from core.transcript.formats import write_markdown
from core.transcript.projects import SessionFile
from mcp_server.answers import data_answer, text_answer
from mcp_server.config import Config, Ctx, config_of
from mcp_server.consent import Consent, ask_in_place, require
from mcp_server.sessions import SessionName, session_file_of
from mcp_server.tools.base import CHANGES, LOADED, tool
from mcp_server.tools.writing import Confirmed, InPlace
from mcp_server.watch import announce
from mcp_server.words import compact_words
from mcp_server.work import Stoppable, in_thread

SAMPLING = "sampling"
BY_RULE = "extractive"
_CHARS_PER_TOKEN = 3
"""Of a summary: prose with many names."""
_MOST_SUMMARY_CHARS = 200_000
_OTHER = (
    "\n\nIf that conversation is not the one before you, read it first (resource foldmark://session/{}/view), "
    "or let summarizer=extractive write it by rule."
)
_How = Annotated[
    How,
    Field(description="full: a summary stands for old messages; partial: for one part; micro: old results give way"),
]
_Summary = Annotated[str, Field(max_length=_MOST_SUMMARY_CHARS, description="as this tool asked you to write it")]
_Who = Annotated[
    str,
    Field(
        max_length=40,
        description="host: you; sampling: the host's model; extractive: by rule; anthropic, claude, api, auto",
    ),
]
_Instructions = Annotated[str, Field(max_length=10_000, description="what the summary should pay attention to")]
_Keep = Annotated[int | None, Field(ge=0, description="kept word for word at the end")]
_UpTo = Annotated[str, Field(max_length=200, description="partial: summarise what is before this message")]
_FromId = Annotated[str, Field(max_length=200, description="partial: summarise from this message on")]
_Results = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Field(max_length=200, description="store these tool results, by id, and leave previews; nothing else is done"),
]
_Messages = Annotated[
    list[dict[str, Any]], Field(description="instead of a session: messages of the API; fewer messages come back")
]


@dataclass(frozen=True)
class _Job:
    """One compaction, but for who writes the summary."""

    config: Config
    file: SessionFile | None
    messages: list[dict[str, Any]] = field(default_factory=list)
    how: How = "auto"
    instructions: str = ""
    keep_tokens: int | None = None
    up_to: str = ""
    since: str = ""
    results: list[str] = field(default_factory=list)
    in_place: bool = False
    dry_run: bool = False

    def __call__(self, summarizer: Summarizer) -> CompactResult:
        """Compacts; of a conversation without a file, the caller gets what the file would hold."""
        config, inline = self.config, self.file is None
        target = config.target(self.in_place, self.dry_run, config.inline_dir if inline else None)
        asked = config.options(self.instructions, self.keep_tokens, self.in_place, self.up_to, self.since)
        known, budget = config.known, config.budget
        with self._source() as file:
            if self.results:
                done = persist(file, self.results, target, known, budget)
            else:
                done = compact(
                    file, summarizer, asked, target, settings=known, how=self.how, budget=budget, hooks=config.hooks
                )
            return with_messages(done) if inline and not self.dry_run else done

    def _source(self) -> AbstractContextManager[SessionFile]:
        return nullcontext(self.file) if self.file else spooled(self.messages)


async def plan_ahead(
    session: str,
    how: How,
    summary: str,
    summarizer: str,
    instructions: str,
    keep_tokens: int | None,
    up_to: str,
    from_id: str,
    results: list[str],
    in_place: bool,
    dry_run: bool,
    messages: list[dict[str, Any]],
    ctx: Ctx,
) -> SummaryRequest | CompactResult | None:
    """What the compaction will come to, where there is something to ask before it begins."""
    if summary or dry_run or not (summarizer == SAMPLING or (in_place and summarizer == NAME)):
        return None
    file = await _file(ctx, session, messages, in_place)
    job = _Job(
        config_of(ctx), file, messages, how, instructions, keep_tokens, up_to, from_id, results, in_place, dry_run=True
    )
    return await in_thread(ctx, "reading", lambda: wanted(job))


_Ahead = Annotated[SummaryRequest | CompactResult | None, Resolve(plan_ahead)]


async def ask_consent(
    ahead: _Ahead, summarizer: str, session: str, in_place: bool, dry_run: bool, confirmed: bool, ctx: Ctx
) -> Consent | Elicit[Consent]:
    """Asks before the transcript is changed; not as long as the caller has its summary still to write."""
    is_written = not (isinstance(ahead, SummaryRequest) and summarizer == NAME)
    return await ask_in_place(session, in_place and is_written, dry_run, confirmed, ctx)


def ask_host_model(ahead: _Ahead, summarizer: str, ctx: Ctx) -> CreateMessageResult | Sample | None:
    """Has the host's own model write the summary, where that was asked for."""
    if summarizer != SAMPLING or not isinstance(ahead, SummaryRequest):
        return None
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise ToolError("this host lends no model; write the summary yourself (summarizer=host), or use extractive")
    text = f"{what_to_write(ahead)}\n\nThe conversation:\n\n{write_markdown(ahead.messages, '', '')}"
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return Sample([asked], max_tokens=ahead.budget_chars // _CHARS_PER_TOKEN)


async def compact_session(
    ctx: Ctx,
    consent: Annotated[ElicitationResult[Consent], Resolve(ask_consent)],
    sampled: Annotated[CreateMessageResult | None, Resolve(ask_host_model)],
    session: SessionName = "current",
    how: _How = "auto",
    summary: _Summary = "",
    summarizer: _Who = NAME,
    instructions: _Instructions = "",
    keep_tokens: _Keep = None,
    up_to: _UpTo = "",
    from_id: _FromId = "",
    results: _Results = [],  # noqa: B006 (never changed; the schema shows it)
    dry_run: bool = False,
    in_place: InPlace = False,
    confirmed: Confirmed = False,  # noqa: ARG001 (the question takes it)
    messages: _Messages = [],  # noqa: B006 (never changed; the schema shows it)
) -> CallToolResult:
    """Make a shorter session that can be resumed; the old one stays, undo takes it back.

    Call it without a summary first: it says what to write. Then call it again with that summary.
    """
    require(consent)
    file = await _file(ctx, session, messages, in_place)
    job = _Job(
        config_of(ctx), file, messages, how, instructions, keep_tokens, up_to, from_id, results, in_place, dry_run
    )
    stop = Event()

    def work() -> CompactResult | SummaryRequest:
        if summarizer == NAME and not (summary or dry_run):
            return wanted(job)
        return job(Stoppable(_writer(job, stop, summary, summarizer, sampled), stop))

    result = await in_thread(ctx, "compacting", work, stop)
    if isinstance(result, SummaryRequest):
        is_its_own = session == "current" or not file
        other = "" if is_its_own else _OTHER.format(file.id if file else "")
        return text_answer(f"{what_to_write(result)}{other}\n\nThen call compact_session again, with it as summary.")
    await announce(ctx, result.changed)
    return data_answer(result, compact_words(result))


async def _file(ctx: Ctx, session: str, messages: list[dict[str, Any]], in_place: bool) -> SessionFile | None:
    if not messages:
        return await session_file_of(session, ctx)
    if in_place:
        raise ToolError("messages have no transcript that could be changed: leave out in_place")
    return None


def _writer(job: _Job, stop: Event, summary: str, summarizer: str, sampled: CreateMessageResult | None) -> Summarizer:
    """Who writes the summary; a dry run takes what costs nothing."""
    if summary:
        return Given(summary)
    if sampled is not None:
        return Given(sampled.content.text if isinstance(sampled.content, TextContent) else "")
    name = BY_RULE if job.dry_run or summarizer in (NAME, SAMPLING) else summarizer
    return job.config.summarizer(name, stop.is_set)


def tools() -> list[Tool]:
    """The tools of this module."""
    return [tool(compact_session, "Compact a session", CHANGES, LOADED, structured=False)]
