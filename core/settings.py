"""What can be set, and where each value comes from.

The layers, strongest first: the command line, `FOLDMARK_*` variables, `foldmark.toml` of the project, `foldmark.toml`
of the user, the defaults.  Nothing here looks at the process's own environment: the shells hand it in.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, get_args

from pydantic import Field, PrivateAttr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from core.errors import SettingsError
from core.model import JSON

FILE_NAME = "foldmark.toml"
ENV_PREFIX = "FOLDMARK_"
DEFAULT = "default"

Tokens = Annotated[int, Field(ge=0)]
Chars = Annotated[int, Field(ge=1)]


class Settings(BaseSettings):
    """All settings, checked and unchangeable; `origin(key)` says where a value was set.

    Units are in the names.  The sizes of the tail, the restored files and the tool results are those that the
    real client works with, so that what Foldmark writes behaves like what the client wrote itself.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    claude_dir: Path
    """The client's folder, with `projects/` in it."""
    models_file: Path | None = None
    """A model table that is laid in front of the bundled one."""
    allowed_roots: tuple[Path, ...] = ()
    """Folders outside `claude_dir` from which a program, as opposed to a person, may open transcripts."""
    window_tokens: int | None = Field(default=None, ge=40_000)
    """The context window, in place of the model's own; the answer (20,000) and the
    headroom (13,000) come off, which leaves nothing to work with below 40,000."""
    keep_tokens: Tokens = 20_000
    """What a compaction keeps word for word at the end."""
    summary_tokens: int = Field(default=8_000, ge=3_000, le=12_000)
    """Size of an offline summary: below 3,000 the requests no longer fit, above 12,000 nothing was gained."""
    restore_files: int = Field(default=5, ge=0)
    """How many of the last read files come back after a compaction."""
    restore_file_tokens: Tokens = 5_000
    restore_total_tokens: Tokens = 50_000
    result_chars: Chars = 50_000
    """The largest tool result that stays in the context."""
    results_chars: Chars = 200_000
    """The most that all tool results of one message may take together."""
    preview_bytes: int = Field(default=2_000, ge=0)
    """What stays visible of a tool result that was stored."""
    summarizer: Literal["auto", "extractive"] = "auto"

    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from `load` only: it knows the layers and keeps their origins."""
        return (init_settings,)

    def origin(self, key: str) -> str:
        """Say where `key` was set: "command line", a variable's name, a file's path, or "default"."""
        return self._origins.get(key, DEFAULT)


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of one layer: what, where it was set, and the folder that relative paths start from."""

    value: JSON
    origin: str
    base: Path


def load(
    env: Mapping[str, str],
    *,
    home: Path,
    project_dir: Path,
    user_dir: Path,
    overrides: Mapping[str, JSON] = MappingProxyType({}),
) -> Settings:
    """Fold the layers into settings.

    `project_dir` is the working folder: the project's file is the nearest `foldmark.toml` there or above, within
    the home folder.  `user_dir` holds the user's file.  Overrides that are None are not set.

    Raises SettingsError for a value that cannot be, an unknown key, or a file that cannot be read.
    """
    project_file = _nearest(project_dir, home)
    layers = [
        _defaults(env, home),
        _toml(user_dir / FILE_NAME),
        _project(project_file) if project_file else {},
        _environment(env, project_dir),
        {k: _Value(v, "command line", project_dir) for k, v in overrides.items() if v is not None},
    ]
    merged = {key: value for layer in layers for key, value in layer.items()}
    try:
        settings = Settings(**{k: _with_paths(k, v, home) for k, v in merged.items()})  # type: ignore[arg-type]
    except ValidationError as error:
        raise _explained(error, merged) from None
    settings._origins = {k: v.origin for k, v in merged.items()}  # noqa: SLF001 (the same module)
    return settings


def _defaults(env: Mapping[str, str], home: Path) -> dict[str, _Value]:
    """The client's folder is where the client itself looks for it."""
    if given := env.get("CLAUDE_CONFIG_DIR"):
        return {"claude_dir": _Value(given, "CLAUDE_CONFIG_DIR", home)}
    return {"claude_dir": _Value(str(home / ".claude"), DEFAULT, home)}


def _environment(env: Mapping[str, str], base: Path) -> dict[str, _Value]:
    """Read the variables that name a setting; others with the prefix may belong to other programs."""
    found = {}
    for key in Settings.model_fields:
        name = ENV_PREFIX + key.upper()
        if text := env.get(name):
            # PATH-like: as on the command line of the system, several folders in one variable
            value: JSON = [*text.split(os.pathsep)] if key == "allowed_roots" else text
            found[key] = _Value(value, name, base)
    return found


def _nearest(folder: Path, home: Path) -> Path | None:
    """Find the project's file; the search ends at the home folder, above which nothing is a project's."""
    for parent in (folder, *folder.parents):
        if parent == home:
            return None
        if (parent / FILE_NAME).is_file():
            return parent / FILE_NAME
    return None


def _project(path: Path) -> dict[str, _Value]:
    """A project's file comes with the project, from whoever wrote it: it must not open folders of its reader."""
    values = _toml(path)
    for key in ("claude_dir", "allowed_roots"):
        if key in values:
            raise SettingsError(
                f"{path}: {key} cannot be set by a project", f"set {ENV_PREFIX}{key.upper()}, or the user's {FILE_NAME}"
            )
    return values


def _toml(path: Path) -> dict[str, _Value]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # ValueError: broken TOML, or bytes that are not UTF-8
        raise SettingsError(f"{path}: {error}", "correct the file or move it away") from None
    return {key: _Value(value, str(path), path.parent) for key, value in content.items()}


def _with_paths(key: str, given: _Value, home: Path) -> JSON | Path | tuple[Path, ...]:
    """Make paths absolute: `~` is the home folder, relative ones start where they were set."""
    match key, given.value:
        case (("claude_dir" | "models_file"), str(text)):
            return _path(text, given.base, home)
        case "allowed_roots", list(texts):
            return tuple(_path(str(text), given.base, home) for text in texts)
    return given.value


def _path(text: str, base: Path, home: Path) -> Path:
    if text == "~" or text.startswith(("~/", "~\\")):
        return home / text[2:]
    return base / text


def _explained(error: ValidationError, merged: Mapping[str, _Value]) -> SettingsError:
    """Name the place, the key and what it may be; only the first fault, the others show when it is mended."""
    first = error.errors(include_url=False)[0]
    key = str(first["loc"][0])
    given = merged[key]
    if key not in Settings.model_fields:
        return SettingsError(
            f"{given.origin}: there is no setting {key!r}", f"known: {', '.join(Settings.model_fields)}"
        )
    return SettingsError(f"{given.origin}: {key} cannot be {given.value!r}", f"allowed: {_allowed(key)}")


def _allowed(key: str) -> str:
    field = Settings.model_fields[key]
    if choices := [str(choice) for choice in get_args(field.annotation) if isinstance(choice, str)]:
        return ", ".join(choices)
    if key == "allowed_roots":
        return "a list of folders"
    if key in ("claude_dir", "models_file"):
        return "a path"
    bounds = {type(rule).__name__: rule for rule in field.metadata}
    lowest, highest = getattr(bounds.get("Ge"), "ge", 0), getattr(bounds.get("Le"), "le", None)
    return f"a whole number from {lowest:,} " + (f"to {highest:,}" if highest else "up")
