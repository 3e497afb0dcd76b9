"""What all tests share: no test sees the home folder, the settings or the time limits of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure; the same examples on every run are what makes a failure repeatable.
settings.register_profile("foldmark", deadline=None, derandomize=True)
settings.load_profile("foldmark")


@pytest.fixture(autouse=True)
def scratch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, and none of the variables that would lead out of it."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    for name in [n for n in os.environ if n.startswith(("FOLDMARK_", "CLAUDE", "XDG_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return home
