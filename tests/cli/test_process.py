"""What belongs to the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import process


def test_settings_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch, scratch_home: Path) -> None:
    monkeypatch.setenv("FOLDMARK_KEEP_TOKENS", "5")

    settings = process.settings(restore_files=None)

    assert (settings.keep_tokens, settings.restore_files) == (5, 5)
    assert settings.claude_dir == scratch_home / ".claude"
