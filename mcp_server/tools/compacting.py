"""The tool that compacts: with a summary of the calling model, of the host, or of a summariser of Foldmark."""

# ruff: noqa: ARG001 (a tool declares its arguments; those who fill in its other parameters take them)

from __future__ import annotations

from threading import Event
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, CreateMessageResult, SamplingMessage, TextContent
from pydantic import Field

from core.defaults import MOST
from mcp_server.answers import data_answer, text_answer, told
from mcp_server.config import Ctx, config_of
from mcp_server.consent import Consent, ask_in_place, require
from mcp_server.sessions import SessionName, session_file_of
from mcp_server.tools.base import COMPACTS, LOADED, tool
from mcp_server.tools.writing import Confirmed, DryRun, InPlace
from mcp_server.watch import announce
from mcp_server.words import compact_words
from mcp_server.work import in_thread

_MOST_SUMMARY_CHARS = 200_000
_OTHER = (
    "\n\nIf that conversation is not the one before you, read it first (resource foldmark://session/{}/view), "
    "or let summarizer=extractive write it by rule."
)
_NOTES = "\n\nThe session has notes: how=memory lets them stand in the place of a summary, and writes at once."
_THEN = "\n\nThen call compact_session again, with your text as summary."
How = Literal["auto", "memory", "full", "partial", "micro"]
"""As the core has it; said here too, because a host that asks for the tools must not wait for all of that to load."""
_How = Annotated[
    How,
    Field(description="full, partial: a summary stands for messages; memory: notes do; micro: old results give way"),
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
_Keep = Annotated[int | None, Field(ge=0, le=MOST, description="kept word for word at the end")]
_UpTo = Annotated[str, Field(max_length=200, description="partial: summarise what is before this message")]
_FromId = Annotated[str, Field(max_length=200, description="partial: summarise from this message on")]
_Results = Annotated[
    list[Annotated[str, Field(max_length=200)]],
    Field(max_length=200, description="store these tool results, by id, and leave previews; nothing else is done"),
]
_Messages = Annotated[
    list[dict[str, Any]], Field(description="instead of a session: messages of the API; fewer messages come back")
]


async def asked_of(
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
) -> object:
    """The arguments of a call as the compaction that they ask for."""
    from core.service.arguments import Arguments
    from mcp_server.compaction import Asked

    if messages and in_place:
        raise ToolError("messages have no transcript that could be changed: leave out in_place")
    file = None if messages else await session_file_of(session, ctx)
    config = config_of(ctx)
    usual = config.choices(config.target(in_place, dry_run, None if file else config.inline_dir))
    with told():
        arguments = Arguments(how, up_to, from_id, keep_tokens, instructions, summarizer, summary)
        return Asked(config, file, messages, arguments.over(usual), summary, summarizer, results)


_Asked = Annotated[Any, Resolve(asked_of)]
"""An `Asked`, which is loaded when the first call comes."""


async def wanted_of(asked: _Asked, ctx: Ctx) -> object:
    """What is to be summarised, where a question depends on it; else None."""
    if not asked.asks_first:
        return None
    found = await in_thread(ctx, "reading", asked.looked_at)
    return found if asked.is_request(found) else None


_Wanted = Annotated[Any, Resolve(wanted_of)]
"""A `SummaryRequest` or None."""


async def ask_consent(
    asked: _Asked, wanted: _Wanted, in_place: bool, dry_run: bool, confirmed: bool, ctx: Ctx
) -> Consent | Elicit[Consent]:
    """Asks before the transcript is changed; not as long as the caller has its summary still to write."""
    is_written = not (wanted and asked.waits_for_summary)
    return await ask_in_place(asked.file, in_place and is_written, dry_run, confirmed, ctx)


def ask_host_model(asked: _Asked, wanted: _Wanted, ctx: Ctx) -> CreateMessageResult | Sample | None:
    """Has the host's own model write the summary, where that was asked for."""
    if not (wanted and asked.is_sampled):
        return None
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise ToolError("this host lends no model; write the summary yourself (summarizer=host), or use extractive")
    from core.service.host import material

    message = SamplingMessage(role="user", content=TextContent(type="text", text=material(wanted)))
    from core.summarizers.base import CHARS_PER_TOKEN

    return Sample([message], max_tokens=wanted.budget_chars // CHARS_PER_TOKEN)


async def compact_session(
    ctx: Ctx,
    asked: _Asked,
    consent: Annotated[ElicitationResult[Consent], Resolve(ask_consent)],
    sampled: Annotated[CreateMessageResult | None, Resolve(ask_host_model)],
    session: SessionName = "current",
    how: _How = "auto",
    summary: _Summary = "",
    summarizer: _Who = "host",
    instructions: _Instructions = "",
    keep_tokens: _Keep = None,
    up_to: _UpTo = "",
    from_id: _FromId = "",
    results: _Results = [],  # noqa: B006 (never changed; the schema shows it)
    dry_run: DryRun = False,
    in_place: InPlace = False,
    confirmed: Confirmed = False,
    messages: _Messages = [],  # noqa: B006 (never changed; the schema shows it)
) -> CallToolResult:
    """Make a shorter session that can be resumed; the old one stays, undo takes it back.

    Call it without a summary first: it writes nothing, and says what to write. Then call it again with that summary.
    """
    from core.service.host import what_to_write

    require(consent)
    stop = Event()
    if sampled is not None:
        asked = asked.with_summary(sampled.content.text if isinstance(sampled.content, TextContent) else "")
    result = await in_thread(ctx, "compacting", lambda: asked.carried_out(stop.is_set), stop)
    if asked.is_request(result):
        is_its_own = session == "current" or not asked.file
        other = "" if is_its_own else _OTHER.format(asked.file.id)
        notes = _NOTES if asked.has_notes else ""
        return text_answer(f"{what_to_write(result)}{other}{notes}{_THEN}")
    await announce(ctx, result.changed)
    return data_answer(result, compact_words(result))


def tools() -> list[Tool]:
    """The tools of this module."""
    return [tool(compact_session, "Compact a session", COMPACTS, LOADED)]
