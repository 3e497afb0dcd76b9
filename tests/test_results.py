"""Results: what is printed of them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import ClassVar, get_origin

import msgspec
import pytest
from msgspec.structs import fields

import scripts.json_docs  # noqa: F401 (with the next, it loads all modules that have results)
from core.results import Result
from core.service import inline, pages  # noqa: F401


class Part(Result, frozen=True, kw_only=True):
    size: int = 0


class Whole(Result, frozen=True, kw_only=True):
    parts: list[Part] = msgspec.field(default_factory=list)
    name: str
    derived: ClassVar = ("loud",)

    @property
    def loud(self) -> str:
        return self.name.upper()


class More(Whole, frozen=True, kw_only=True):
    count: int


def test_properties_are_printed_behind_all_fields_and_follow_them() -> None:
    more = More(parts=[Part(size=1)], name="a", count=2)

    assert [*more.to_json().items()] == [("parts", [{"size": 1}]), ("name", "a"), ("count", 2), ("loud", "A")]
    assert msgspec.structs.replace(more, name="b").to_json()["loud"] == "B"


def test_a_result_comes_back_from_another_process() -> None:
    more = More(name="a", count=2)

    assert pickle.loads(pickle.dumps(more)) == more


def all_results(kind: type[Result] = Result) -> Iterator[type[Result]]:
    yield kind
    for under in kind.__subclasses__():
        yield from all_results(under)


@pytest.mark.parametrize("kind", [*all_results()], ids=lambda kind: kind.__name__)
def test_no_result_can_be_changed_or_holds_a_sequence_that_is_no_list(kind: type[Result]) -> None:
    """Secrets are looked for in lists and objects: what JSON has."""
    assert kind.__struct_config__.frozen
    assert {get_origin(field.type) for field in fields(kind)} & {tuple, set, frozenset} == set()
