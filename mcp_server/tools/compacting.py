"""The tool that compacts: with a summary of the calling model, of the host, or of a summariser of Foldmark."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import ElicitationResult, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, CreateMessageResult, SamplingMessage, TextContent
from pydantic import Field

from core.compaction.full import Options
from core.compaction.restore import RestoreLimits
from core.service.compact import CompactResult, compact
from core.service.host import NAME, Given, wanted, what_to_write
from core.service.inline import spooled, with_messages
from core.service.micro import micro
from core.service.operation import Target
from core.stages.tool_budget import ToolBudgetSettings
from core.summarizers import AUTO, make
from core.summarizers.base import Summarizer, SummaryRequest, room_chars
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
_CHARS_PER_TOKEN = 3
_MOST_SUMMARY_CHARS = 200_000
_OTHER = (
    "\n\nIf that conversation is not the one before you, read it first (resource foldmark://session/{}/view), "
    "or let summarizer=extractive write it by rule."
)
How = Literal["full", "micro"]
_Summary = Annotated[str, Field(max_length=_MOST_SUMMARY_CHARS, description="as this tool asked you to write it")]
_Who = Annotated[
    str, Field(max_length=40, description="host: you; sampling: the host's model; extractive: by rule, offline; auto")
]
_Instructions = Annotated[str, Field(max_length=10_000, description="what the summary should pay attention to")]
_Keep = Annotated[int | None, Field(ge=0, description="kept word for word at the end")]
_Messages = Annotated[
    list[dict[str, Any]], Field(description="instead of a session: messages of the API; fewer messages come back")
]


@dataclass(frozen=True)
class _Job:
    """One compaction, but for who writes the summary."""

    config: Config
    file: SessionFile | None
    messages: list[dict[str, Any]]
    instructions: str
    keep_tokens: int | None
    in_place: bool
    dry_run: bool

    def full(self, summarizer: Summarizer) -> CompactResult:
        """With a summary."""
        settings, config = self.config.settings, self.config
        limits = RestoreLimits(
            settings.restore_files, settings.restore_file_tokens, settings.restore_total_tokens, home=config.home
        )
        keep = settings.keep_tokens if self.keep_tokens is None else self.keep_tokens
        options = Options(keep, room_chars(settings.summary_tokens), self.instructions, limits, self.in_place)
        with self._source() as file:
            done = compact(file, summarizer, options, self._target, models_file=settings.models_file)
            return self._finished(done)

    def micro(self) -> CompactResult:
        """Without one."""
        settings = self.config.settings
        budget = ToolBudgetSettings(settings.result_chars, settings.results_chars, settings.preview_bytes)
        with self._source() as file:
            return self._finished(micro(file, self._target, self.config.known, budget))

    @property
    def _target(self) -> Target:
        return self.config.target(self.in_place, self.dry_run, self.config.inline_dir if self.file is None else None)

    def _source(self) -> AbstractContextManager[SessionFile]:
        return nullcontext(self.file) if self.file else spooled(self.messages)

    def _finished(self, done: CompactResult) -> CompactResult:
        """Of a conversation without a file, the caller gets what the file would hold."""
        return with_messages(done) if self.file is None and not self.dry_run else done


async def ask_host_model(
    session: str,
    how: str,
    summary: str,
    summarizer: str,
    instructions: str,
    keep_tokens: int | None,
    in_place: bool,
    dry_run: bool,
    messages: list[dict[str, Any]],
    ctx: Ctx,
) -> CreateMessageResult | Sample | None:
    """Has the host's own model write the summary, where that was asked for."""
    if summarizer != SAMPLING or summary or dry_run or how != "full":
        return None
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise ToolError("this host lends no model; write the summary yourself (summarizer=host), or use extractive")
    job = await _job(ctx, session, messages, instructions, keep_tokens, in_place, dry_run=True)
    request = await in_thread(ctx, "reading", lambda: wanted(job.full))
    if not isinstance(request, SummaryRequest):
        return None
    text = f"{what_to_write(request)}\n\n{write_markdown(request.messages, '', '')}"
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return Sample([asked], max_tokens=request.budget_chars // _CHARS_PER_TOKEN)


async def compact_session(
    ctx: Ctx,
    consent: Annotated[ElicitationResult[Consent], Resolve(ask_in_place)],
    sampled: Annotated[CreateMessageResult | None, Resolve(ask_host_model)],
    session: SessionName = "current",
    how: Annotated[
        How, Field(description="full: a summary stands for old messages; micro: old tool results give way")
    ] = "full",
    summary: _Summary = "",
    summarizer: _Who = NAME,
    instructions: _Instructions = "",
    keep_tokens: _Keep = None,
    dry_run: bool = False,
    in_place: InPlace = False,
    confirmed: Confirmed = False,  # noqa: ARG001 (the question takes it)
    messages: _Messages = [],  # noqa: B006 (never changed; the schema shows it)
) -> CallToolResult:
    """Make a shorter session that can be resumed; the old one stays, undo takes it back.

    Call it without a summary first: it says what to write. Then call it again with that summary.
    """
    require(consent)
    job = await _job(ctx, session, messages, instructions, keep_tokens, in_place, dry_run)
    if how == "micro":
        result = await in_thread(ctx, "compacting", job.micro)
    elif dry_run or summary or summarizer != NAME:
        stop = Event()
        writer = Stoppable(_writer(summary, summarizer, sampled), stop)
        result = await in_thread(ctx, "compacting", lambda: job.full(writer), stop)
    else:
        asked = await in_thread(ctx, "reading", lambda: wanted(job.full))
        if isinstance(asked, SummaryRequest):
            other = "" if messages or session == "current" else _OTHER.format(job.file.id if job.file else "")
            return text_answer(f"{what_to_write(asked)}{other}\n\nThen call compact_session again, with it as summary.")
        result = asked
    await announce(ctx, result.changed)
    return data_answer(result, compact_words(result))


async def _job(
    ctx: Ctx,
    session: str,
    messages: list[dict[str, Any]],
    instructions: str,
    keep_tokens: int | None,
    in_place: bool,
    dry_run: bool,
) -> _Job:
    if messages and in_place:
        raise ToolError("messages have no transcript that could be changed: leave out in_place")
    file = None if messages else await session_file_of(session, ctx)
    return _Job(config_of(ctx), file, messages, instructions, keep_tokens, in_place, dry_run)


def _writer(summary: str, summarizer: str, sampled: CreateMessageResult | None) -> Summarizer:
    """Who writes the summary; a dry run takes what costs nothing."""
    if summary:
        return Given(summary)
    if sampled is not None:
        return Given(sampled.content.text if isinstance(sampled.content, TextContent) else "")
    return make(AUTO if summarizer in (NAME, SAMPLING) else summarizer)


def tools() -> list[Tool]:
    """The tools of this module."""
    return [tool(compact_session, "Compact a session", CHANGES, LOADED, structured=False)]
