"""Where settings come from: variables, files and overrides as layers of values, each value with its origin.

What a value may be is not known here: `core.settings` folds the layers, and checks what counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import SettingsError
from core.model import JSON

FILE_NAME = "foldmark.toml"
ENV_PREFIX = "FOLDMARK_"
TOKEN = f"{ENV_PREFIX}TOKEN"
"""No setting: the secret of the server over HTTP, which belongs neither in a file nor on the command line, where other
users of the machine see it."""
DEFAULT = "default"
COMMANDS = ("pre_compact", "session_start", "post_compact")
"""Settings that hold shell commands."""
_NOT_OF_PROJECTS = ("claude_dir", "allowed_roots", "models_file", "summarizer", "claude_program", *COMMANDS)
"""Whoever wrote a project must not open folders of its reader, send what is in them away, run commands, or say what a
call costs: there are caps on that."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of one layer: what, where it was set, and the folder that relative paths start from."""

    value: JSON
    origin: str
    base: Path
    is_text: bool = False
    """Of a variable, which says a number as text too."""


def layers(
    keys: Iterable[str],
    env: Mapping[str, str],
    *,
    home: Path,
    project_dir: Path,
    user_dir: Path,
    overrides: Mapping[str, JSON],
    faults: list[SettingsError],
) -> list[dict[str, Value]]:
    """What each layer sets, the strongest last; variables count where they name one of the `keys`, files as they are.

    `project_dir` is the working folder: the project's file is the nearest `foldmark.toml` there or above, within
    the home folder.  `user_dir` holds the user's file.  Overrides that are None are not set.

    A file that cannot be read is left out, as is a setting that a project may not set: that goes to `faults`.
    """
    project_file = _nearest(project_dir, home)
    return [
        _defaults(env, home),
        _toml(user_dir / FILE_NAME, faults),
        _project(project_file, faults) if project_file else {},
        _environment(env, keys, project_dir),
        {k: Value(v, "command line", project_dir) for k, v in overrides.items() if v is not None},
    ]


def _defaults(env: Mapping[str, str], home: Path) -> dict[str, Value]:
    """The client's folder is where the client itself looks for it."""
    if given := env.get("CLAUDE_CONFIG_DIR"):
        return {"claude_dir": Value(given, "CLAUDE_CONFIG_DIR", home)}
    return {"claude_dir": Value(str(home / ".claude"), DEFAULT, home)}


def _environment(env: Mapping[str, str], keys: Iterable[str], base: Path) -> dict[str, Value]:
    """Read the variables that name a setting; others with the prefix may belong to other programs."""
    found = {}
    for key in keys:
        name = ENV_PREFIX + key.upper()
        if text := env.get(name):
            found[key] = Value(_of_variable(key, text), name, base, is_text=True)
    return found


def _of_variable(key: str, text: str) -> JSON:
    """A list of folders is PATH-like, as on the command line of the system; of commands it is one."""
    if key == "allowed_roots":
        return [*text.split(os.pathsep)]
    return [text] if key in COMMANDS else text


def _nearest(folder: Path, home: Path) -> Path | None:
    """Find the project's file; the search ends at the home folder, above which nothing is a project's."""
    for parent in (folder, *folder.parents):
        if parent == home:
            return None
        if (parent / FILE_NAME).is_file():
            return parent / FILE_NAME
    return None


def _project(path: Path, faults: list[SettingsError]) -> dict[str, Value]:
    """A project's file comes with the project, from others: see `_NOT_OF_PROJECTS`."""
    values = _toml(path, faults)
    for key in _NOT_OF_PROJECTS:
        if values.pop(key, None):
            hint = f"set {ENV_PREFIX}{key.upper()}, or the user's {FILE_NAME}"
            faults.append(SettingsError(f"{path}: {key} cannot be set by a project", hint, key))
    return values


def _toml(path: Path, faults: list[SettingsError]) -> dict[str, Value]:
    try:
        text = path.read_text("utf-8")
        import tomllib

        content = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # no UTF-8 or TOML, too many digits, lists in lists in lists
        faults.append(SettingsError(f"{path}: {error}", "correct the file or move it away"))
        return {}
    return {key: Value(value, str(path), path.parent) for key, value in content.items()}
