"""What can be set, and where each value comes from.

The layers, strongest first: the command line, `FOLDMARK_*` variables, `foldmark.toml` of the project, `foldmark.toml`
of the user, the defaults.  Nothing here looks at the process's own environment: the shells hand it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

from core import defaults
from core.errors import SettingsError
from core.layers import COMMANDS, DEFAULT, ENV_PREFIX, TOKEN, Value, layers
from core.model import JSON

_SHOWN_CHARS = 80
"""Of a value that cannot be, in what is said about it."""


Count = Annotated[int, Meta(ge=0, le=defaults.MOST)]
Positive = Annotated[int, Meta(ge=1, le=defaults.MOST)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, unchangeable, as `load` checked them; `origin(key)` says where a value was set.

    Units are in the names.  The sizes of the tail, the restored files and the tool results are those that the
    real client works with, so that what Foldmark writes behaves like what the client wrote itself.
    """

    claude_dir: Path
    """The client's folder, with `projects/` in it."""
    models_file: Path | None = None
    """A model table that is laid in front of the bundled one."""
    allowed_roots: tuple[Path, ...] = ()
    """Folders outside `claude_dir` from which a program, as opposed to a person, may open transcripts."""
    window_tokens: Annotated[int, Meta(ge=defaults.LEAST_WINDOW_TOKENS, le=defaults.MOST)] | None = None
    """The context window, in place of the model's own."""
    keep_tokens: Count = defaults.KEEP_TOKENS
    """What a compaction keeps word for word at the end."""
    summary_tokens: Annotated[int, Meta(ge=3_000, le=12_000)] = defaults.SUMMARY_TOKENS
    """Size of an offline summary: below 3,000 the requests no longer fit, above 12,000 nothing was gained."""
    restore_files: Count = defaults.RESTORE_FILES
    """How many of the last read files come back after a compaction."""
    restore_file_tokens: Count = defaults.RESTORE_FILE_TOKENS
    restore_total_tokens: Count = defaults.RESTORE_TOTAL_TOKENS
    result_chars: Positive = defaults.RESULT_CHARS
    """The largest tool result that stays in the context."""
    results_chars: Positive = defaults.RESULTS_CHARS
    """The most that all tool results of one message may take together."""
    preview_bytes: Count = defaults.PREVIEW_BYTES
    """What stays visible of a tool result that was stored."""
    summarizer: Literal["auto", "extractive", "anthropic", "claude", "api"] = "extractive"
    """Who writes summaries: nothing leaves the machine unless that was asked for."""
    summary_model: str = ""
    """The id of the model that writes them; the cheapest one where there is none."""
    api_deadline_s: Positive = 600
    """What one call of a model may take, all tries and waits together: what the vendor's own client gives it."""
    claude_program: str = "claude"
    """The name or the path of the program that is asked by the summariser `claude`."""
    memory_tokens: Annotated[int, Meta(ge=1_600, le=defaults.MOST)] = defaults.MEMORY_TOKENS
    """The most that the notes of a session take in a context, where 4 % of its window are no less."""
    memory_first_tokens: Count = defaults.MEMORY_FIRST_TOKENS
    """Of messages, before a session gets notes at all."""
    memory_update_tokens: Count = defaults.MEMORY_UPDATE_TOKENS
    """Of new messages, at which a model brings notes up to date; at half of it where the work pauses."""
    memory_update_responses: Positive = defaults.MEMORY_UPDATE_RESPONSES
    """The same in responses."""
    memory_keep_tokens: Count = defaults.MEMORY_KEEP_TOKENS
    """What a compaction from the notes keeps word for word at least, and five messages with text."""
    memory_keep_most_tokens: Count = defaults.MEMORY_KEEP_MOST_TOKENS
    """The most that it keeps: what is newer than the notes must fit."""
    pre_compact: tuple[str, ...] = ()
    """Shell commands that may add to the instructions of a compaction, or forbid it."""
    session_start: tuple[str, ...] = ()
    """Shell commands whose output the model gets after a compaction."""
    post_compact: tuple[str, ...] = ()
    """Shell commands that are told of a compaction."""

    _origins: Mapping[str, str] = MappingProxyType({})

    def origin(self, key: str) -> str:
        """Say where `key` was set: "command line", a variable's name, a file's path, or "default"."""
        return self._origins.get(key, DEFAULT)


KEYS = tuple(key for key in Settings.__struct_fields__ if key != "_origins")
"""The names of all settings."""


def load(
    env: Mapping[str, str],
    *,
    home: Path,
    project_dir: Path,
    user_dir: Path,
    overrides: Mapping[str, JSON] = MappingProxyType({}),
    faults: list[SettingsError] | None = None,
) -> Settings:
    """Fold the layers (`core.layers`) into settings.

    Raises SettingsError for a value that cannot be, an unknown key, or a file that cannot be read; with `faults`, all
    that is left out, and said there.
    """
    wrong: list[SettingsError] = [] if faults is None else faults
    given = layers(KEYS, env, home=home, project_dir=project_dir, user_dir=user_dir, overrides=overrides, faults=wrong)
    kinds = get_type_hints(Settings, include_extras=True)
    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key in KEYS:
        values = (layer[key] for layer in reversed(given) if key in layer)
        if chosen := _first_that_can_be(key, values, home, kinds[key], wrong):
            found[key], origins[key] = chosen
    wrong += [_unknown(key, value) for layer in given for key, value in layer.items() if key not in KEYS]
    if faults is None and wrong:
        raise wrong[0]
    return Settings(**found, _origins=origins)


def _first_that_can_be(
    key: str, values: Iterable[Value], home: Path, kind: Any, faults: list[SettingsError]
) -> tuple[object, str] | None:
    """The value and where it was set; those in front of it go to `faults`."""
    for value in values:
        try:
            return _checked(key, value, home, kind), value.origin
        except SettingsError as fault:
            faults.append(fault)
    return None


def _checked(key: str, given: Value, home: Path, kind: Any) -> object:
    """The value as what it has to be."""
    value = _with_paths(key, given, home)
    try:
        _refuse_nul(given.value)
        if given.is_text and isinstance(value, str) and _bounds(kind) and value.isascii() and value.isdigit():
            value = int(value)
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError):
        said = f"{given.origin}: {key} cannot be {_shown(given.value)}"
        raise SettingsError(said, f"allowed: {_allowed(key, kind)}{_written(given.value, kind)}", key) from None


def _refuse_nul(value: JSON) -> None:
    """Raises ValueError for a text that is no path, and that no command can be given."""
    if any("\0" in text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)):
        raise ValueError("a NUL byte")


def _with_paths(key: str, given: Value, home: Path) -> JSON | Path | list[Path]:
    """Make paths absolute: `~` is the home folder, relative ones start where they were set."""
    match key, given.value:
        case (("claude_dir" | "models_file"), str(text)):
            return _path(text, given.base, home)
        case "allowed_roots", list(texts):
            return [_path(str(text), given.base, home) for text in texts]
    return given.value


def _path(text: str, base: Path, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return base / text


def unknown_variables(env: Mapping[str, str]) -> list[SettingsError]:
    """The variables with the prefix that mean nothing here: typing errors, or those of another program."""
    known = [TOKEN, *(ENV_PREFIX + key.upper() for key in KEYS)]
    names = sorted(name for name in env if name.startswith(ENV_PREFIX) and name not in known)
    return [SettingsError(f"there is no variable {name}", _meant(name, known, ENV_PREFIX), name) for name in names]


def _unknown(key: str, given: Value) -> SettingsError:
    return SettingsError(f"{given.origin}: there is no setting {_shown(key)}", _meant(key, KEYS), key)


def _meant(name: str, known: Sequence[str], prefix: str = "") -> str:
    """What may have been meant; that all have one prefix makes none like another."""
    from difflib import get_close_matches

    near = get_close_matches(name.removeprefix(prefix), [each.removeprefix(prefix) for each in known], n=1)
    return f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(known)}"


def _shown(value: JSON) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "that"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _allowed(key: str, kind: Any) -> str:
    if choices := [str(choice) for choice in get_args(kind) if isinstance(choice, str)]:
        return ", ".join(choices)
    if key == "allowed_roots":
        return "a list of folders"
    if key in COMMANDS:
        return "a list of shell commands"
    if key in ("claude_dir", "models_file"):
        return "a path"
    if bounds := _bounds(kind):
        return f"a whole number from {bounds.ge:,} to {bounds.le:,}"
    return "a text"


def _written(given: JSON, kind: Any) -> str:
    """How a number is written, where somebody wrote a text."""
    bounds = _bounds(kind) if isinstance(given, str) else None
    return f", in digits alone, like {min(60_000, bounds.le or defaults.MOST)}" if bounds else ""


def _bounds(kind: Any) -> Meta | None:
    """Those of a number, also of one that may be none."""
    return next((part for each in (kind, *get_args(kind)) for part in get_args(each) if isinstance(part, Meta)), None)
