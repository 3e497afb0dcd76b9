"""The summarisers, by name: a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import SettingsError
from core.summarizers.base import Summarizer

AUTO = "auto"


def _extractive() -> Summarizer:
    from core.summarizers.extractive import Extractive

    return Extractive()


SUMMARIZERS: dict[str, Callable[[], Summarizer]] = {"extractive": _extractive}
"""Name -> how to make one; what a summariser imports is paid for by those who use it."""


def make(name: str) -> Summarizer:
    """The summariser of a name; `auto` is the best there is without a key: the extractive one.

    Raises `SettingsError` for any other name.
    """
    maker = SUMMARIZERS.get("extractive" if name == AUTO else name)
    if maker is None:
        raise SettingsError(f"there is no summariser {name!r}", f"known: {', '.join((AUTO, *SUMMARIZERS))}")
    return maker()
