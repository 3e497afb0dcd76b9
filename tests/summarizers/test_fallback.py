"""Who takes over when, and a text that is handed in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from core.errors import ApiError, CompactionError, SummaryPending, SummaryRejected
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.summarizers.fallback import Fallback, Instead, remarks_of
from core.summarizers.host import Given
from tests.summarizers.build import answer, done, said

REQUEST = SummaryRequest(
    [said("Never push. Fix it."), *done("Edit", file_path="/w/a.py", new_string="x"), answer("Done.")]
)


@dataclass
class Chosen:
    error: Exception | None = None
    name: str = "chosen"

    def summarize(self, request: SummaryRequest) -> Summary:
        if self.error is not None:
            raise self.error
        return Summary("its own", self.name)


def test_a_summary_is_passed_on() -> None:
    fallback = Fallback(Chosen(), Extractive())

    assert fallback.name == "chosen"
    assert fallback.summarize(REQUEST) == Summary("its own", "chosen")


@pytest.mark.parametrize("error", [SummaryRejected("it is empty"), ApiError("too-long", "it is empty")])
def test_the_other_takes_over_and_says_why(error: Exception) -> None:
    summary = Fallback(Chosen(error), Extractive()).summarize(REQUEST)

    assert summary.summarizer == "extractive"
    assert summary.text == Extractive().summarize(REQUEST).text
    assert summary.remarks == ("chosen failed (it is empty); extractive took over",)


@pytest.mark.parametrize("error", [ApiError("cancelled", "no more"), SummaryPending("later"), ValueError("a bug")])
def test_nobody_takes_over_what_was_cancelled_is_still_to_come_or_is_a_bug(error: Exception) -> None:
    with pytest.raises(type(error)):
        Fallback(Chosen(error), Extractive()).summarize(REQUEST)


def test_a_text_of_the_host_is_completed() -> None:
    summary = Given("<summary>The bug is fixed.</summary>").summarize(REQUEST)

    assert summary.summarizer == "host"
    assert "The bug is fixed." in summary.text
    assert "Never push." in summary.text
    assert "/w/a.py" in summary.text


@pytest.mark.parametrize("text", ["", " ", "I can't help with that.", '<invoke name="Read">'])
def test_rubbish_of_the_host_is_rejected_too(text: str) -> None:
    with pytest.raises(SummaryRejected):
        Given(text).summarize(REQUEST)


def test_a_budget_without_room_for_text_is_an_error() -> None:
    with pytest.raises(CompactionError, match="no room"):
        Given("all is done").summarize(SummaryRequest(REQUEST.messages, budget_chars=300))


def test_who_took_over_before_is_said_again() -> None:
    fallback = Fallback(Chosen(), Extractive())
    instead = Instead(Extractive(), "chosen", "no key")

    assert remarks_of(fallback, "extractive") == ("chosen had failed; extractive took over",)
    assert remarks_of(fallback, "chosen") == remarks_of(Extractive(), "extractive") == ()
    assert remarks_of(instead, "extractive") == ("chosen failed (no key); extractive took over",)
    assert remarks_of(instead, "notes") == ()


@pytest.mark.parametrize(
    ("stands_for_chars", "text", "is_thin"),
    [(100_000, "Fixed.", True), (100_000, "Fixed. " * 100, False), (100, "Fixed.", False)],
)
def test_a_summary_that_says_next_to_nothing_is_remarked_on(stands_for_chars: int, text: str, is_thin: bool) -> None:
    request = SummaryRequest([said("x" * stands_for_chars), answer("Done.")])

    assert bool(Given(text).summarize(request).remarks) == is_thin
