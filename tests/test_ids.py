"""Ids by name."""

from __future__ import annotations

import pytest

from core.errors import IdNotFound
from core.ids import one_of

KNOWN = [("aa", "aa"), ("aab", "aab"), ("note", "b1"), ("notes", "b2"), ("note", "b1"), ("two", "b1"), ("two", "b2")]


@pytest.mark.parametrize(("name", "ident"), [("aa", "aa"), ("aab", "aab"), ("note", "b1"), ("notes", "b2")])
def test_a_whole_name_wins_over_those_that_begin_with_it(name: str, ident: str) -> None:
    assert one_of(name, KNOWN, "page", "") == ident


def test_a_start_that_several_have_is_refused_with_what_they_are() -> None:
    for name in ("a", "n", "two"):
        with pytest.raises(IdNotFound, match=f"2 ids begin with {name}") as caught:
            one_of(name, KNOWN, "page", "")
        assert caught.value.hint.startswith("name one:\n  ")


@pytest.mark.parametrize(
    ("name", "listed"), [("n", ["note", "notes"]), ("two", ["b1", "b2"]), ("k", [f"k{n}" for n in range(10)])]
)
def test_what_is_listed_is_what_begins_so(name: str, listed: list[str]) -> None:
    with pytest.raises(IdNotFound) as caught:
        one_of(name, [*KNOWN, *((f"k{n}", f"id {n}") for n in range(12))], "page", "")

    more = ["and 2 more"] if name == "k" else []
    assert caught.value.hint.split("\n  ")[1:] == [*listed, *more]


def test_as_many_are_listed_as_are_counted() -> None:
    """Of an id with several spellings, the first."""
    with pytest.raises(IdNotFound, match="2 ids begin with b") as caught:
        one_of("b", [("b1", "x"), ("b2", "x"), ("b3", "y")], "page", "")

    assert caught.value.hint.split("\n  ")[1:] == ["b1", "b3"]


@pytest.mark.parametrize("name", ["", "x" * 1_000])
def test_what_is_no_id_is_refused_in_short(name: str) -> None:
    with pytest.raises(IdNotFound, match="no page has the id") as caught:
        one_of(name, KNOWN, "page", "they are listed")
    assert (caught.value.hint, len(str(caught.value)) < 120) == ("they are listed", True)
