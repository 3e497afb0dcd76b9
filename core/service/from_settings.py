"""What the settings of a user mean for an operation, whichever shell asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.compaction.full import Options
from core.compaction.hooks import CommandHooks
from core.compaction.memory import DEFAULT_TAIL
from core.compaction.restore import RestoreLimits
from core.memory.limits import limits_of
from core.service.job import Choices, NotesRules
from core.service.operation import Target
from core.service.stages import StageSettings
from core.settings import Settings
from core.stages.tool_budget import ToolBudgetSettings
from core.summarizers.base import room_chars


def choices_of(settings: Settings, home: Path | None, target: Target, known: StageSettings) -> Choices:
    """All about a compaction that a user has set; `home` is the user's home folder."""
    return Choices(
        Options(settings.keep_tokens, room_chars(settings.summary_tokens), restore=_restore_limits(settings, home)),
        target,
        settings=known,
        budget=ToolBudgetSettings(settings.result_chars, settings.results_chars, settings.preview_bytes),
        hooks=CommandHooks(settings.pre_compact, settings.session_start, settings.post_compact),
        notes=_notes_of(settings),
    )


def _restore_limits(settings: Settings, home: Path | None) -> RestoreLimits:
    """What is read again after a compaction."""
    return RestoreLimits(
        settings.restore_files,
        settings.restore_file_tokens,
        settings.restore_total_tokens,
        home=home,
        plans=settings.claude_dir / "plans",
    )


def _notes_of(settings: Settings) -> NotesRules:
    """How the notes of a session stand for what goes."""
    tail = replace(DEFAULT_TAIL, least_tokens=settings.memory_keep_tokens, most_tokens=settings.memory_keep_most_tokens)
    return NotesRules(limits_of(settings), tail)
