"""Asking a person before something is changed that was there before, in both protocol eras."""

from __future__ import annotations

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from core.service.undo import undoable
from core.transcript.projects import SessionFile
from mcp_server.config import Ctx, config_of
from mcp_server.sessions import Resolved
from mcp_server.work import in_session, in_thread


class Consent(BaseModel):
    """What a person says to the question."""

    go_on: bool = Field(title="Go on", description="Change it?")


_NEEDLESS = Consent(go_on=True)


async def ask_in_place(
    file: Resolved, in_place: bool, dry_run: bool, confirmed: bool, ctx: Ctx
) -> Consent | Elicit[Consent]:
    """Asks before a transcript is appended to; a new file needs no consent."""
    if not in_place or dry_run:
        return _NEEDLESS
    question = "Append to the transcript of {} itself? Its old rows stay; undo takes it back."
    return await _asked(question, file, confirmed, ctx)


async def ask_undo(file: Resolved, confirmed: bool, ctx: Ctx) -> Consent | Elicit[Consent]:
    """Asks before something is taken back: a file that Foldmark wrote goes, or a block of rows.

    Raises ToolError where nothing can be.
    """
    claude_dir = config_of(ctx).settings.claude_dir
    op = await in_thread(ctx, "looking", lambda: undoable(file, claude_dir))
    return await _asked(f"Take back the newest operation ({op}) on {{}}?", file, confirmed, ctx)


def require(consent: ElicitationResult[Consent]) -> None:
    """Raises ToolError unless a person agreed."""
    if not isinstance(consent, AcceptedElicitation) or not consent.data.go_on:
        raise ToolError("not confirmed, nothing was changed. Ask the person what to do; a new file needs no consent")


async def _asked(question: str, file: SessionFile, confirmed: bool, ctx: Ctx) -> Consent | Elicit[Consent]:
    if can_ask(ctx):
        known = await in_session(ctx, "reading", file, lambda found: found.ref)
        return Elicit(question.format(f"{known.title!r} ({known.id})" if known.title else known.id), Consent)
    if confirmed:
        return _NEEDLESS
    raise ToolError(
        "this changes what is there, and this host cannot ask. "
        "Ask the person; if they agree, call again with confirmed=true"
    )


def can_ask(ctx: Ctx) -> bool:
    """Whether the host shows a form to a person; a bare `elicitation` means that it does."""
    capabilities = ctx.client_capabilities
    asks = capabilities.elicitation if capabilities else None
    return asks is not None and (asks.form is not None or asks.url is None)
