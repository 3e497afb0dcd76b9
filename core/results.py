"""The base of what operations give back: the command line prints it as JSON, the server returns it."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, cast, dataclass_transform

import msgspec
from msgspec.structs import fields

from core.model import JSON


class _KeywordsAlone(msgspec.StructMeta):
    """Makes results take keywords alone: a class does not inherit that, as it does `frozen`."""

    def __new__(mcs, *parts: Any, **config: Any) -> _KeywordsAlone:
        return super().__new__(mcs, *parts, kw_only=True, **config)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Result(msgspec.Struct, metaclass=_KeywordsAlone, frozen=True):
    """Base of all results.  Types are for the type checker: what is handed in is not looked at."""

    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that are printed too, behind all fields."""

    def to_json(self, defaults: bool = True) -> dict[str, JSON]:
        """What is printed: all keys, in their order; without `defaults` only what is not as always, in parts too."""
        usual = {} if defaults else _usual(type(self))
        values = {name: getattr(self, name) for name in (*self.__struct_fields__, *self.derived)}
        return {k: _json(v, defaults) for k, v in values.items() if k not in usual or v != usual[k]}


@cache
def _usual(kind: type[Result]) -> dict[str, object]:
    """The defaults of its fields."""
    made = {f.name: f.default_factory() for f in fields(kind) if f.default_factory is not msgspec.NODEFAULT}
    return made | {f.name: f.default for f in fields(kind) if f.default is not msgspec.NODEFAULT}


def _json(value: object, defaults: bool) -> JSON:
    match value:
        case Result():
            return value.to_json(defaults)
        case list():
            return [_json(item, defaults) for item in value]
        case dict() if any(isinstance(item, Result) for item in value.values()):  # others may be nested deeply
            return {key: _json(item, defaults) for key, item in value.items()}
    return cast("JSON", value)
