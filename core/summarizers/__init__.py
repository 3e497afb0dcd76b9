"""The summarisers, by name: a new one is one file, one line here, and a value of the setting `summarizer`.

Whoever wants a model hands in what that needs (`Resources`); without it, `auto` is the offline summariser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from core.errors import ApiError, SettingsError

if TYPE_CHECKING:
    from core.api.endpoint import Endpoint, Reply
    from core.context.tokens.models import Models
    from core.model import JSON
    from core.summarizers.base import Summarizer

AUTO = "auto"
SUMMARY_MODEL = "claude-haiku-5-5"
"""The cheapest that there is, with a window that holds any session: a summary of 100,000 tokens costs about a cent."""
PROGRAM_MODEL = "haiku"
"""What the program calls its cheapest, whoever provides it."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What summarisers that ask a model need, each made only when it is used.

    `endpoint` is None without a key, `program` where there is no `claude` program; `model` is the id for both ("":
    their cheapest).  With `fallback` the offline summariser takes over from one that fails for good.
    """

    endpoint: Callable[[], Endpoint] | None = None
    program: Callable[[], Endpoint] | None = None
    model: str = ""
    fallback: bool = True
    models: Models | None = None


def _extractive(_: Resources) -> Summarizer:
    from core.summarizers.extractive import Extractive

    return Extractive()


def _anthropic(resources: Resources) -> Summarizer:
    from core.summarizers.model import ModelSummarizer

    return ModelSummarizer(*asked("anthropic", resources), "anthropic", resources.models)


def _claude(resources: Resources) -> Summarizer:
    from core.summarizers.model import ModelSummarizer

    return ModelSummarizer(*asked("claude", resources), "claude", resources.models)


def _api(resources: Resources) -> Summarizer:
    from core.summarizers.api_compaction import ApiCompaction

    return ApiCompaction(*asked("anthropic", resources), resources.models)


def asked(name: Literal["anthropic", "claude"], resources: Resources) -> tuple[Endpoint, str]:
    """The endpoint of a summariser that asks a model, and the id of the model; one that is missing fails when asked."""
    factory = _factory(name, resources)
    cheapest = PROGRAM_MODEL if name == "claude" else SUMMARY_MODEL
    return factory() if factory else _Missing(*_LACKING[name]), resources.model or cheapest


_LACKING = {
    "anthropic": (
        "there is no key for the model API",
        "set ANTHROPIC_API_KEY, or name another summariser: claude, extractive",
    ),
    "claude": ("there is no claude program", "install Claude Code (claude_program names it)"),
}
"""What is wrong where there is no endpoint, and what to do."""


def _factory(name: str, resources: Resources) -> Callable[[], Endpoint] | None:
    return resources.program if name == "claude" else resources.endpoint


SUMMARIZERS: dict[str, Callable[[Resources], Summarizer]] = {
    "extractive": _extractive,
    "anthropic": _anthropic,
    "claude": _claude,
    "api": _api,
}
"""Name -> how to make one; what a summariser imports is paid for by those who use it."""


def make(name: str, resources: Resources | None = None) -> Summarizer:
    """The summariser of a name; `auto` is the best there is: a model by a key, or by the program, else by rule.

    The summary says which it was.  One that has nobody to ask is the offline one from the start, where that takes over
    at all.  Raises `SettingsError` for any other name.
    """
    given = resources or Resources()
    chosen = _best(given) if name == AUTO else name
    maker = SUMMARIZERS.get(chosen)
    if maker is None:
        raise SettingsError(f"there is no summariser {name!r}", f"known: {', '.join((AUTO, *SUMMARIZERS))}")
    if chosen == "extractive":
        return maker(given)
    if given.fallback and (why := lacking(chosen, given)):
        from core.summarizers.fallback import Instead

        return Instead(_extractive(given), chosen, why)
    return rescued(maker(given), given)


def lacking(name: str, resources: Resources) -> str:
    """Why the summariser of a name cannot be asked; "" where it can, or asks nobody."""
    if name in (AUTO, "extractive") or _factory(name, resources):
        return ""
    return _LACKING["claude" if name == "claude" else "anthropic"][0]


def rescued(summarizer: Summarizer, resources: Resources) -> Summarizer:
    """The summariser with the offline one behind it, unless that is not wanted."""
    if not resources.fallback:
        return summarizer
    from core.summarizers.fallback import Fallback

    return Fallback(summarizer, _extractive(resources))


def _best(resources: Resources) -> str:
    if resources.endpoint is not None:
        return "anthropic"
    return "claude" if resources.program is not None else "extractive"


class _Missing:
    """An endpoint that is not there: it fails when it is asked, so that another summariser can take over."""

    def __init__(self, message: str, hint: str) -> None:
        self._message, self._hint = message, hint

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        raise ApiError("auth", self._message, self._hint)

    def count(self, body: Mapping[str, JSON]) -> int:
        raise ApiError("auth", self._message, self._hint)
