"""What a host asks while a session runs: one function an event, JSON in, what the host should get out.

A host waits for the answer.  So an event imports what it needs and no more, and nobody here waits for anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.settings import Settings

EVENTS = ("PostToolUse", "PreCompact", "SubagentStop", "SessionStart", "Stop")
HEEDED = ("result_chars", "results_chars", "preview_bytes")
"""The settings that an answer depends on."""


def answer(event: str, raw: bytes, settings: Callable[[], Settings]) -> str:
    """What to print for an event; "" for nothing, also for events that are nobody's business here.

    `raw` is the host's JSON, and `settings` loads them for an event that heeds them.  Raises whatever goes wrong: it is
    the shell that keeps faults from the host.
    """
    match event:
        case "PostToolUse":
            from core.service.hooks.post_tool_use import post_tool_use

            return post_tool_use(raw, settings())
        case "PreCompact":
            from core.service.hooks.pre_compact import pre_compact

            return pre_compact(raw)
        case "SubagentStop":
            from core.service.hooks.subagent_stop import subagent_stop

            return subagent_stop(raw)
        case "SessionStart":
            from core.service.hooks.session_start import session_start

            return session_start(raw)
    return ""
