"""What is said of results."""

from __future__ import annotations

import pytest

from core.report.words import count, whereabouts


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("full", "1 message kept word for word, 7 summarised and stored"),
        ("partial", "1 message kept word for word, 7 summarised and stored"),
        ("memory", "1 message kept word for word, the notes stand for 7, which are stored"),
        ("micro", "all messages stay, large and old tool results are shortened and stored whole"),
    ],
)
def test_of_each_way_it_is_said_what_stands_for_what_went(how: str, said: str) -> None:
    assert whereabouts(how, 1, 7) == said


def test_one_thing_is_no_things() -> None:
    assert [count(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
