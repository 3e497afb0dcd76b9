"""What is known of each model: window, output limit, prices, tokenizer, how it counts pictures.

The figures are in `models.json` (the vendor's list of 29 Nov 2026).  A file of the same shape, given by the user,
goes in front of it: it may add models, correct some, or set another default.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from core.errors import SettingsError
from core.model import UNDECODABLE

Tokenizer: TypeAlias = Literal["old", "new"]
"""new: Claude 4.7 and later, all 5.x and Mythos Preview; some 30 % more tokens for the same text."""
ImageRule: TypeAlias = Literal["standard", "high"]
"""The size that pictures are shrunk to: 1568 pixels and 1,568 tokens, or 2576 pixels and 4,784 tokens."""

SYNTHETIC = "<synthetic>"
"""The model of a message that the client made up itself; it was never sent and cost nothing."""

LONG_WINDOW_TOKENS = 1_000_000
"""What an id that ends in `[1m]` asks for."""
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
"""What figures may be: a price below zero would lift every cap on spending, a huge one gives no number any more."""


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens, for requests whose whole prompt has at most `up_to_tokens` (None: any)."""

    input: Dollars
    output: Dollars
    write_5m: Dollars
    write_1h: Dollars
    read: Dollars
    up_to_tokens: Tokens | None = None


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model; a table may give the same figures to several `ids` (without dates: those are understood)."""

    ids: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    window_tokens: Tokens
    max_output_tokens: Tokens
    tokenizer: Tokenizer
    image: ImageRule
    cache_min_tokens: Tokens
    """The shortest prefix that is cached."""
    prices: tuple[Prices, ...] = ()
    """By rising `up_to_tokens`; empty where they are not known."""
    client_window_tokens: Tokens | None = None
    """What the client fills of the window unless the id says `[1m]`, where that is less than all of it."""
    known: bool = True

    @property
    def id(self) -> str:
        """The name of the model, as the vendor writes it without a date."""
        return self.ids[0]

    def prices_for(self, prompt_tokens: int) -> Prices | None:
        """The prices of a request whose whole prompt (uncached, written and read) has this size."""
        for prices in self.prices:
            if prices.up_to_tokens is None or prompt_tokens <= prices.up_to_tokens:
                return prices
        return self.prices[-1] if self.prices else None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[Model, ...] = ()
    aliases: dict[str, str] = {}
    default: Model | None = None


class Models:
    """The models by every name they go by."""

    def __init__(self, *tables: _Table) -> None:
        """Of two tables that name the same model, the first counts."""
        self._by_id: dict[str, Model] = {}
        self._aliases: dict[str, str] = {}
        for table in reversed(tables):
            for model in table.models:
                self._by_id.update({name: msgspec.structs.replace(model, ids=(name,)) for name in model.ids})
            self._aliases.update(table.aliases)
        self._default = next(table.default for table in tables if table.default)

    def lookup(self, model_id: str) -> Model:
        """The model of an id as logs write it; the default, with `known` false and the id kept, if it is none of ours.

        Understood are `[1m]`, dates (`-20250929`, `@20250929`), Bedrock (`us.anthropic.X-v1:0`, also as an ARN),
        OpenRouter (`anthropic/claude-opus-4.5:beta`), `-latest`, `-fast`, `-thinking` and `claude-4-opus`.
        """
        name, long = _split_long(model_id.strip().lower())
        found = self._named(name) or self._named(_plain(name))
        if found is None:
            found = msgspec.structs.replace(self._default, ids=(model_id,), known=False)
        if long:
            return msgspec.structs.replace(found, window_tokens=LONG_WINDOW_TOKENS, client_window_tokens=None)
        return found

    @property
    def ids(self) -> list[str]:
        """The names of all models, as the vendor writes them without a date."""
        return [*self._by_id]

    def _named(self, name: str) -> Model | None:
        return self._by_id.get(self._aliases.get(name, name))


def _split_long(name: str) -> tuple[str, bool]:
    return name.removesuffix("[1m]"), name.endswith("[1m]")


_PREFIX = re.compile(r"^.*/|^(?:[a-z-]+\.)?anthropic\.")
_SUFFIX = re.compile(r"(?::.*|@.*|-v\d+|-latest|-fast|-thinking|-\d{8})$")
_TURNED = re.compile(r"^claude-(\d+(?:-\d+)?)-(opus|sonnet|haiku|fable|mythos)$")


def _plain(name: str) -> str:
    """The id without what clouds, resellers and dates put around it."""
    name = _stripped(_PREFIX, name)
    name = _stripped(_SUFFIX, name).replace(".", "-")
    turned = _TURNED.match(name)
    if turned and turned[1] >= "4":
        return f"claude-{turned[2]}-{turned[1]}"
    return name


def _stripped(pattern: re.Pattern[str], name: str) -> str:
    while (shorter := pattern.sub("", name)) != name:
        name = shorter
    return name


def load(path: Path | None = None) -> Models:
    """The built-in table, with the models of the file at `path` in front of it.

    Raises `SettingsError` if the file cannot be read or does not have the shape of `models.json`.
    """
    if path is None:
        return _built_in()
    return Models(_read(path), _built_in_table())


def lookup(model_id: str) -> Model:
    """`Models.lookup` in the built-in table."""
    return _built_in().lookup(model_id)


@cache
def _built_in_table() -> _Table:
    return _read(Path(__file__).with_name("models.json"))


@cache
def _built_in() -> Models:
    return Models(_built_in_table())


def _read(path: Path) -> _Table:
    if not path.is_file():  # a project may name it, and a pipe or a device never ends
        raise SettingsError(f"cannot read the model table {path}: there is no such file")
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Table)
    except OSError as error:
        raise SettingsError(f"cannot read the model table {path}: {error.strerror}") from None
    except UNDECODABLE as error:
        hint = 'write it as {"models": [...]}, each with the keys of core/context/tokens/models.json'
        raise SettingsError(f"the model table {path} is not usable: {error}", hint) from None
