"""What a caller says about one compaction: checked, and laid over what the user has set."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from core.errors import WrongUsage
from core.service.host import NAME
from core.service.job import Choices, How

_WRITER = ("{summarizer}", "{summary}", "{model}", "{no_fallback}")
_TAKES: Mapping[How, Set[str]] = {
    "auto": {"{keep}", "{instructions}", "{force}", *_WRITER},
    "memory": {"{keep}", "{instructions}"},
    "full": {"{keep}", "{instructions}", *_WRITER},
    "micro": {"{force}"},
    "partial": {"{up_to}", "{from}", "{instructions}", *_WRITER},
}
"""What has a meaning for each way, as hints name it; instructions are told to the user's hooks, too."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """One compaction as a caller asks for it; "" and None where it says nothing."""

    how: How = "auto"
    """With a place, auto is partial."""
    up_to: str = ""
    since: str = ""
    keep_tokens: int | None = None
    instructions: str = ""
    summarizer: str = ""
    """Who writes the summary: then notes stand for nothing by themselves.  "host" is the caller, by a call more."""
    summary: str = ""
    model: str = ""
    no_fallback: bool = False
    force: bool = False

    def over(self, usual: Choices) -> Choices:
        """The choices of a user, changed by this.  Raises WrongUsage for what would mean nothing."""
        how: How = "partial" if self.how == "auto" and (self.up_to or self.since) else self.how
        if how == "partial" and bool(self.up_to) == bool(self.since):
            raise WrongUsage(
                "partial takes one place",
                "name it with {up_to}, before which all is summarised, or with {from}, from which on all is",
            )
        if odd := [name for name in self._given if name not in _TAKES[how]]:
            raise WrongUsage(f"{how} does not take all that was given", f"leave out {' and '.join(odd)}")
        options = replace(
            usual.options,
            keep_tokens=usual.options.keep_tokens if self.keep_tokens is None else self.keep_tokens,
            instructions=self.instructions,
            up_to=self.up_to,
            since=self.since,
        )
        settings = replace(usual.settings, forced=self.force)
        notes = None if how == "auto" and self.summarizer else usual.notes
        if notes:
            notes = replace(notes, tail=replace(notes.tail, asked_tokens=self.keep_tokens))
        return replace(usual, how=how, options=options, settings=settings, notes=notes)

    @property
    def _given(self) -> list[str]:
        said = {
            "{up_to}": self.up_to,
            "{from}": self.since,
            "{keep}": self.keep_tokens is not None,
            "{instructions}": self.instructions,
            "{summarizer}": self.summarizer not in ("", NAME),
            "{summary}": self.summary,
            "{model}": self.model,
            "{no_fallback}": self.no_fallback,
            "{force}": self.force,
        }
        return [name for name, is_given in said.items() if is_given]
