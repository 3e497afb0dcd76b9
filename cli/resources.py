"""What summarisers that ask a model need, found in the environment and the settings of this process."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from core.api.anthropic import AnthropicEndpoint
    from core.api.program import ClaudeProgram
    from core.settings import Settings
    from core.summarizers import Resources
    from core.summarizers.base import Summarizer


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Where models are asked, as plain data: it goes to other processes, which make their own connections."""

    model: str
    deadline_s: int
    models_file: Path | None
    claude_program: str
    env: Mapping[str, str] = field(repr=False)

    def endpoint(self, cancelled: Callable[[], bool] = lambda: False) -> AnthropicEndpoint:
        """The Messages API, with the key or token of the environment; a call ends once it is `cancelled`."""
        from core.api import anthropic
        from core.api.patience import Patience

        access = anthropic.Access(
            self.env.get("ANTHROPIC_API_KEY", ""),
            self.env.get("ANTHROPIC_AUTH_TOKEN", ""),
            self.env.get("ANTHROPIC_BASE_URL") or anthropic.BASE_URL,
        )
        return anthropic.AnthropicEndpoint(
            access,
            clock=time.monotonic,
            sleep=time.sleep,
            patience=Patience(self.deadline_s),
            cancelled=cancelled,
        )

    def program(self, cancelled: Callable[[], bool] = lambda: False) -> ClaudeProgram:
        """The `claude` program; it is ended once the call is `cancelled`."""
        from core.api.patience import Patience
        from core.api.program import ClaudeProgram, Program, small_environment

        program = Program(self.claude_program, small_environment(self.env))
        return ClaudeProgram(
            program,
            clock=time.monotonic,
            sleep=time.sleep,
            patience=Patience(self.deadline_s),
            cancelled=cancelled,
        )

    def resources(self, fallback: bool = True, cancelled: Callable[[], bool] = lambda: False) -> Resources:
        """What there is of all this."""
        from core.context.tokens.models import load
        from core.summarizers import Resources

        has_key = bool(self.env.get("ANTHROPIC_API_KEY") or self.env.get("ANTHROPIC_AUTH_TOKEN"))
        return Resources(
            partial(self.endpoint, cancelled) if has_key else None,
            partial(self.program, cancelled) if self.claude_program else None,
            self.model,
            fallback,
            load(self.models_file),
        )


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes summaries, as plain data too."""

    access: ModelAccess
    name: str
    fallback: bool
    dry_run: bool = False

    def summarizer(self, cancelled: Callable[[], bool] = lambda: False) -> Summarizer:
        """The summariser of that name, in a dry run one that asks nobody; it gives up once it is `cancelled`."""
        from core.summarizers import lacking, make
        from core.summarizers.rehearsal import rehearsed

        given = self.access.resources(self.fallback, cancelled)
        chosen = make(self.name, given)
        return rehearsed(chosen, lacking(self.name, given)) if self.dry_run else chosen


def refuse_without_model(ctx: click.Context, summarizer: str, given: Mapping[str, object]) -> None:
    """Raises UsageError for options about the asking of a model, by name, where the summariser asks none."""
    said = [name for name, value in given.items() if value]
    if said and summarizer == "extractive":
        raise click.UsageError(
            f"{' and '.join(said)}: extractive, who writes here, asks no model; name one with --summarizer", ctx
        )


def access(settings: Settings, model: str = "") -> ModelAccess:
    """The models that this process can ask; `model` in place of the one of the settings."""
    program = shutil.which(settings.claude_program) or ""
    return ModelAccess(
        model or settings.summary_model,
        settings.api_deadline_s,
        settings.models_file,
        program,
        dict(os.environ),
    )
