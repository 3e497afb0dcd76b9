"""What is known of a host that can start an MCP server: where its settings are, and how they name a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from core.model import JSON

NAME = "foldmark"
"""What the server is called in every host."""
Syntax: TypeAlias = Literal["json", "jsonc", "toml"]
"""json: a comment breaks the file.  jsonc: comments and trailing commas are allowed."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where hosts are looked for: `platform` is `sys.platform`, `env` the process's variables."""

    platform: str
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def folder(self, variable: str, *default: str) -> Path:
        """The folder that a variable names, or one below the home folder."""
        given = self.env.get(variable)
        return Path(given) if given else self.home.joinpath(*default)

    def app_data(self) -> Path:
        """Where desktop programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_CONFIG_HOME", ".config")


@dataclass(frozen=True, slots=True)
class Launch:
    """How the server is started; paths are absolute, because desktop programs have neither a folder nor a PATH."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def entry(self) -> dict[str, JSON]:
        """As most hosts write it."""
        entry: dict[str, JSON] = {"command": self.command, "args": [*self.args]}
        return {**entry, "env": dict(self.env)} if self.env else entry


@dataclass(frozen=True, slots=True)
class Host:
    """One host."""

    name: str
    label: str
    config: Callable[[Machine], Path]
    """The file that holds the servers of a user."""
    syntax: Syntax
    key: str
    """The object that holds the servers by their names."""
    after: str
    """What a person has to do before the server is there."""
    entry: Callable[[Launch], dict[str, JSON]] = lambda launch: launch.entry
    program: str = ""
    """The host's own program, which adds a server as the host itself wants it; "" where it has none."""
    add: Callable[[Launch], tuple[str, ...]] = lambda _: ()
    """The arguments with which that program does."""
