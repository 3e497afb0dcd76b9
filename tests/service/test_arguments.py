"""What a caller says about a compaction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.compaction.full import Options
from core.errors import WrongUsage
from core.service.arguments import Arguments
from core.service.job import DEFAULT_NOTES, Choices
from core.service.operation import Target

USUAL = Choices(Options(20_000, 8_000), Target(Path("locks")))


def test_what_is_said_is_laid_over_what_is_set() -> None:
    choices = Arguments("full", keep_tokens=0, instructions="names").over(USUAL)

    assert choices == replace(USUAL, how="full", options=Options(0, 8_000, "names"), notes=choices.notes)
    assert (choices.notes and choices.notes.tail.asked_tokens, DEFAULT_NOTES.tail.asked_tokens) == (0, None)
    assert Arguments("full").over(USUAL).options.keep_tokens == 20_000
    assert Arguments("micro", force=True).over(USUAL).settings.forced


@pytest.mark.parametrize("said", [{"up_to": "a"}, {"since": "a"}])
def test_a_place_means_a_part(said: dict[str, str]) -> None:
    assert Arguments(**said).over(USUAL).how == "partial"  # type: ignore[arg-type]


@pytest.mark.parametrize("said", [{"how": "partial"}, {"up_to": "a", "since": "b"}])
def test_a_part_has_one_place(said: dict[str, Any]) -> None:
    with pytest.raises(WrongUsage, match="partial takes one place"):
        Arguments(**said).over(USUAL)


@pytest.mark.parametrize(
    ("how", "said", "names"),
    [
        ("full", {"up_to": "a"}, "{up_to}"),
        ("full", {"force": True}, "{force}"),
        ("partial", {"up_to": "a", "keep_tokens": 0}, "{keep}"),
        ("micro", {"keep_tokens": 1, "instructions": "x"}, "{keep} and {instructions}"),
        ("micro", {"model": "m", "no_fallback": True}, "{model} and {no_fallback}"),
        ("memory", {"summarizer": "anthropic"}, "{summarizer}"),
        ("memory", {"summary": "It went well."}, "{summary}"),
    ],
)
def test_what_means_nothing_for_a_way_is_refused_by_name(how: Any, said: dict[str, Any], names: str) -> None:
    with pytest.raises(WrongUsage, match=f"{how} does not take") as error:
        Arguments(how, **said).over(USUAL)
    assert error.value.hint == f"leave out {names}"


def test_notes_stand_by_themselves_unless_it_is_said_who_writes() -> None:
    assert Arguments().over(USUAL).notes == USUAL.notes is not None
    assert Arguments(summarizer="extractive").over(USUAL).notes is None
    assert Arguments(summarizer="host").over(USUAL).notes is None
    assert Arguments("memory", summarizer="host").over(USUAL).notes == USUAL.notes
