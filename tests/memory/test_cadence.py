"""When notes are due."""

from __future__ import annotations

import pytest

from core.memory.cadence import FREE, PAID, Cadence, due
from core.memory.part import Unseen


def seen(tokens: int = 0, responses: int = 1, *, pause: bool = False, turns: int = 9) -> Unseen:
    return Unseen(0, 1, tokens, responses, turns, pause)


@pytest.mark.parametrize(
    ("what", "cadence", "expected"),
    [
        (seen(11_999, 11), PAID, ""),
        (seen(12_000, 1), PAID, "grown"),
        (seen(0, 12), PAID, "grown"),
        (seen(5_999, 5, pause=True), PAID, ""),
        (seen(6_000, 1, pause=True), PAID, "pause"),
        (seen(0, 6, pause=True), PAID, "pause"),
        (seen(6_000, 6), PAID, ""),
        (seen(99_000, 0, pause=True), PAID, ""),
        (seen(1, 1, pause=True), FREE, "pause"),
        (seen(1, 1), FREE, ""),
        (seen(5_000, 1), Cadence(tokens=5_000), "grown"),
    ],
)
def test_an_update_is_due_when_enough_happened_sooner_at_a_pause(what: Unseen, cadence: Cadence, expected: str) -> None:
    assert due(what, cadence, noted=True) == expected


@pytest.mark.parametrize("cadence", [PAID, FREE])
def test_the_first_notes_wait_until_there_is_something_to_note(cadence: Cadence) -> None:
    assert due(seen(11_999, 99, pause=True), cadence, noted=False) == ""
    assert due(seen(12_000, 1), cadence, noted=False) == "first"


def test_after_three_failures_it_pauses_until_the_user_spoke_twice() -> None:
    assert due(seen(12_000, turns=9), PAID, noted=True, failures=2, failed_turns=9) == "grown"
    assert due(seen(12_000, turns=9), PAID, noted=True, failures=3, failed_turns=9) == ""
    assert due(seen(12_000, turns=10), PAID, noted=True, failures=4, failed_turns=9) == ""
    assert due(seen(12_000, turns=11), PAID, noted=True, failures=3, failed_turns=9) == "grown"
