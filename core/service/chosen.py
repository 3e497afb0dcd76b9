"""What the settings of a user mean for an operation, whichever shell asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.compaction.full import Options
from core.compaction.hooks import CommandHooks
from core.compaction.memory import DEFAULT_TAIL
from core.compaction.restore import RestoreLimits
from core.memory.limits import limits_of
from core.service.job import NotesRules
from core.settings import Settings
from core.stages.tool_budget import ToolBudgetSettings
from core.summarizers.base import room_chars


def options_of(settings: Settings, home: Path | None, instructions: str) -> Options:
    """What stays, how large a summary may be, and what is read again; `home` is the user's home folder."""
    limits = restore_limits(settings, home)
    return Options(settings.keep_tokens, room_chars(settings.summary_tokens), instructions, limits)


def restore_limits(settings: Settings, home: Path | None) -> RestoreLimits:
    """What is read again after a compaction."""
    return RestoreLimits(
        settings.restore_files,
        settings.restore_file_tokens,
        settings.restore_total_tokens,
        home=home,
        plans=settings.claude_dir / "plans",
    )


def notes_of(settings: Settings) -> NotesRules:
    """How the notes of a session stand for what goes."""
    tail = replace(DEFAULT_TAIL, least_tokens=settings.memory_keep_tokens, most_tokens=settings.memory_keep_most_tokens)
    return NotesRules(limits_of(settings), tail)


def budget_of(settings: Settings) -> ToolBudgetSettings:
    """What tool results may take."""
    return ToolBudgetSettings(settings.result_chars, settings.results_chars, settings.preview_bytes)


def hooks_of(settings: Settings) -> CommandHooks:
    """What the user has run around a compaction."""
    return CommandHooks(settings.pre_compact, settings.session_start, settings.post_compact)
