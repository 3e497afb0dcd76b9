"""The settings that hooks heed, read without the checks of all settings: those take longer than a hook may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.layers import Value, merged

RESULT_CHARS, PREVIEW_BYTES = 50_000, 2_000
"""The defaults of the settings of these names (a test compares them)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tool may give: the largest result that stays, and what stays to be seen of a larger one."""

    result_chars: int = RESULT_CHARS
    preview_bytes: int = PREVIEW_BYTES


def limits_of(env: Mapping[str, str], home: Path, project_dir: Path, user_dir: Path) -> Limits:
    """The limits as they are set; one that is no number counts as not set.

    Raises SettingsError for a file that cannot be read.
    """
    keys = ("result_chars", "preview_bytes")
    values = merged(keys, env, home=home, project_dir=project_dir, user_dir=user_dir, overrides={})
    return Limits(_number(values.get(keys[0]), 1, RESULT_CHARS), _number(values.get(keys[1]), 0, PREVIEW_BYTES))


def _number(value: Value | None, least: int, default: int) -> int:
    try:
        return max(least, int(str(value.value))) if value else default
    except ValueError:
        return default
