"""What belongs to this process: its settings, its folders, its machine.  It knows no `click`: hooks are quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.errors import SettingsError
    from core.hosts.base import Launch, Machine
    from core.model import JSON
    from core.settings import Settings

PROGRAM = Path(__file__).resolve().parents[1] / "foldmark.py"


def settings(faults: list[SettingsError] | None = None, **overrides: JSON) -> Settings:
    """Load the settings; overrides come from the command line, None means not given.

    Raises SettingsError; with `faults`, what is wrong is left out, and said there.
    """
    from platformdirs import user_config_path

    from core.settings import load

    user_dir = user_config_path("foldmark", appauthor=False)
    here, home = Path.cwd(), Path.home()
    return load(os.environ, home=home, project_dir=here, user_dir=user_dir, overrides=overrides, faults=faults)


def machine() -> Machine:
    """Where hosts are looked for: here."""
    from core.hosts.base import Machine

    return Machine(sys.platform, Path.home(), os.environ)


def launch() -> Launch:
    """How a host starts this program's server: neither a PATH nor a `foldmark` in the working folder counts.

    Where sessions are has to be said: programs of the desktop do not have the variables of a shell.
    """
    from core.hosts.base import Launch

    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    env = {"CLAUDE_CONFIG_DIR": str(Path.home() / folder)} if folder else {}
    return Launch(sys.executable, (str(PROGRAM), "serve"), env)


def lock_dir() -> Path:
    """The folder for locks on transcripts."""
    return state_dir() / "locks"


def state_dir() -> Path:
    """The folder for what only this machine needs to know: locks, failures, batches, copies of hosts' settings."""
    from platformdirs import user_state_path

    return user_state_path("foldmark", appauthor=False)
