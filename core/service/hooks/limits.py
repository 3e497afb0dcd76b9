"""The settings that hooks heed, read without the checks of all settings: those take longer than a hook may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from core import defaults
from core.layers import Value, layers, strongest

WORTH_CHARS = 10_000
"""A shorter result is stored for its own size only: it takes twenty of them to fill a message."""


class Limits(NamedTuple):
    """Settings of these names, and their defaults."""

    result_chars: int = defaults.RESULT_CHARS
    """The largest result that stays."""
    results_chars: int = defaults.RESULTS_CHARS
    """The most that the results of one response may have together."""
    preview_bytes: int = defaults.PREVIEW_BYTES
    """What stays to be seen of a result that was stored."""

    @property
    def least_chars(self) -> int:
        """No shorter result is ever stored."""
        return min(self.result_chars, max(WORTH_CHARS, self.preview_bytes))


def hook_limits(env: Mapping[str, str], home: Path, project_dir: Path, user_dir: Path) -> Limits:
    """The limits as they are set; one that cannot be counts as not set.

    Raises SettingsError for a file that cannot be read.
    """
    given = layers(Limits._fields, env, home=home, project_dir=project_dir, user_dir=user_dir, overrides={})
    values = strongest(given)
    return Limits(**{key: _number(values.get(key), default) for key, default in Limits()._asdict().items()})


def _number(value: Value | None, default: int) -> int:
    try:
        number = int(str(value.value)) if value else default
    except ValueError:
        return default
    return number if 0 <= number <= defaults.MOST else default
