"""What is said of results."""

from __future__ import annotations

from typing import get_args

import pytest

from core.model import Kind
from core.report.words import KINDS, PARTS, count, part_name, whereabouts


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("full", "1 message kept word for word, 7 summarised and stored"),
        ("partial", "1 message kept word for word, 7 summarised and stored"),
        ("memory", "made from the notes: 1 message kept word for word, 7 stored"),
        ("micro", "all messages stay, large and old tool results are shortened and stored whole"),
    ],
)
def test_of_each_way_it_is_said_what_stands_for_what_went(how: str, said: str) -> None:
    assert whereabouts(how, 1, 7) == said


def test_one_thing_is_no_things() -> None:
    assert [count(n, "line") for n in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]


@pytest.mark.parametrize(
    ("kind", "tool", "name"),
    [
        ("results", "Bash", "Bash result"),
        ("result", "", "tool result"),
        ("response", "Bash", "Bash call"),
        ("response", "", "answer"),
        ("summary", "", "summary"),
        ("new kind", "", "new kind"),
    ],
)
def test_one_part_is_named_as_one(kind: str, tool: str, name: str) -> None:
    assert part_name(kind, tool) == name


def test_all_kinds_of_messages_have_names_for_one_and_for_many() -> None:
    kinds = {*get_args(Kind)}

    assert {*PARTS} >= kinds
    assert {*KINDS} >= kinds - {"response"}, "of a response the blocks are counted"
