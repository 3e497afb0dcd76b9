"""The base of what operations give back: the command line prints it as JSON, the server returns it."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from core.model import JSON


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all results.  Types are for the type checker: what is handed in is not looked at."""

    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that are printed too, behind all fields."""

    def to_json(self) -> dict[str, JSON]:
        """What is printed: all keys, in their order."""
        values: dict[str, JSON] = msgspec.to_builtins(self)
        return values | {name: getattr(self, name) for name in self.derived}
