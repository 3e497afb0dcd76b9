"""Completion of what a person types for a session or an output."""

from __future__ import annotations

import anyio
from mcp.server import MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from core.errors import FoldmarkError
from core.service.find import CURRENT, named
from core.service.history import stored_outputs
from core.service.session import opened
from core.service.sessions import list_sessions
from core.transcript.locate import LATEST
from mcp_server.config import Config
from mcp_server.prompts import resume

_MOST = 100
"""What one answer may hold, by the protocol."""


def register(server: MCPServer[Config], config: Config) -> None:
    """Has a server complete the arguments of its templates and prompts."""

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if argument.name == "session":
            takes_current = isinstance(ref, PromptReference) and ref.name != resume.__name__
            words = (LATEST, CURRENT) if takes_current else (LATEST,)
            found = await anyio.to_thread.run_sync(_sessions, config, argument.value, words)
        elif argument.name == "output":
            session = (context.arguments or {}).get("session", "") if context else ""
            found = await anyio.to_thread.run_sync(_outputs, config, session, argument.value)
        else:
            return None
        return Completion(values=found[:_MOST], total=len(found), has_more=len(found) > _MOST)


def _sessions(config: Config, typed: str, words: tuple[str, ...]) -> list[str]:
    """Ids that begin with what was typed, then those of sessions whose title holds it."""
    lines, wanted = list_sessions(config.settings.claude_dir).sessions, typed.casefold()
    ids = [word for word in words if word.startswith(wanted)]
    ids += [line.id for line in lines if line.id.casefold().startswith(wanted)]
    ids += [line.id for line in lines if wanted in line.title.casefold()]
    return list(dict.fromkeys(ids))


def _outputs(config: Config, session: str, typed: str) -> list[str]:
    try:
        with opened(named(session, config.caller)) as found:
            return [line.id for line in stored_outputs(found).outputs if line.id.startswith(typed)]
    except FoldmarkError:  # no session was chosen yet
        return []
