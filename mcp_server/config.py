"""What the server is started with; nothing in it comes from whoever calls a tool."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp.server.mcpserver import Context

from core.service.find import Caller

if TYPE_CHECKING:  # what only calls need is loaded when the first one comes: a host waits for the server to start
    from core.context.tokens.window import Measuring
    from core.memory.limits import MemoryLimits
    from core.service.job import Choices
    from core.service.operation import Target
    from core.service.stages import StageSettings
    from core.settings import Settings
    from core.summarizers.base import Summarizer

MakeSummarizer: TypeAlias = "Callable[[str, Callable[[], bool]], Summarizer]"
"""Of a name; it gives up once the second argument says that nobody waits any more."""


def by_rule(name: str, _is_stopped: Callable[[], bool]) -> Summarizer:
    """A summariser of Foldmark that asks no model."""
    from core.summarizers import make

    return make(name)


@dataclass(frozen=True, slots=True)
class Config:
    """Settings, folders, and what is known of the client that started the server."""

    settings: Settings
    folder: Path
    """What paths are relative to, and whose newest session `latest` is."""
    state_dir: Path
    """For locks, and for what was made of conversations that came without a file."""
    home: Path | None = None
    client_pid: int | None = None
    session_id: str = ""
    clock: Callable[[], float] = time.time
    summarizer: MakeSummarizer = by_rule
    call_wait_s: float = 1.0
    """How long to look for the call that is being answered: clients write it within a quarter of a second."""
    poll_s: float = 2.0
    """How often transcripts are looked at while somebody is subscribed."""

    @property
    def lock_dir(self) -> Path:
        """For locks on transcripts."""
        return self.state_dir / "locks"

    @property
    def inline_dir(self) -> Path:
        """Where compacted conversations go that came without a file."""
        return self.state_dir / "inline"

    @property
    def caller(self) -> Caller:
        """Who asks, as the core knows it."""
        roots = (*self.settings.allowed_roots, self.inline_dir)
        return Caller(self.settings.claude_dir, self.folder, roots, self.client_pid, self.session_id)

    @property
    def measuring(self) -> Measuring:
        """What the user says about the sizes of sessions."""
        from core.context.tokens.window import Measuring

        return Measuring.of(self.settings)

    @property
    def known(self) -> StageSettings:
        """What stages need to know that no transcript says."""
        from core.service.stages import StageSettings

        return StageSettings(self.measuring, datetime.fromtimestamp(self.clock(), UTC))

    @property
    def memory_limits(self) -> MemoryLimits:
        """How large the notes of a session may be."""
        from core.memory.limits import limits_of

        return limits_of(self.settings)

    def choices(self, target: Target) -> Choices:
        """All about a compaction that the user has set."""
        from core.service.from_settings import choices_of

        return choices_of(self.settings, self.home, target, self.known)

    def target(self, in_place: bool, dry_run: bool, out_dir: Path | None = None) -> Target:
        """Where an operation goes."""
        from core.service.operation import Target

        return Target(self.lock_dir, out_dir, in_place, dry_run, clock=self.clock)


Ctx: TypeAlias = Context[Config, Any]


def config_of(ctx: Ctx) -> Config:
    """The configuration of the server that answers."""
    return ctx.request_context.lifespan_context
