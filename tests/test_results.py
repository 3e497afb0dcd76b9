"""Results: what is printed of them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

import msgspec
import pytest
from msgspec.structs import fields

import scripts.json_docs  # noqa: F401 (with the next, it loads all modules that have results)
from core.results import Result
from core.service import inline, pages  # noqa: F401


class Part(Result):
    size: int = 0


class Whole(Result):
    parts: list[Part] = msgspec.field(default_factory=list)
    name: str
    derived: ClassVar = ("loud",)

    @property
    def loud(self) -> str:
        return self.name.upper()


class More(Whole):
    count: int


def test_properties_are_printed_behind_all_fields_and_follow_them() -> None:
    more = More(parts=[Part(size=1)], name="a", count=2)

    assert [*more.to_json().items()] == [("parts", [{"size": 1}]), ("name", "a"), ("count", 2), ("loud", "A")]
    assert msgspec.structs.replace(more, name="b").to_json()["loud"] == "B"


class Tree(Result):
    name: str
    size: int = 0
    by_name: dict[str, Part] = msgspec.field(default_factory=dict)
    wholes: list[Whole] = msgspec.field(default_factory=list)
    note: str | None = None


def test_parts_are_printed_as_results_are_with_or_without_what_is_as_always() -> None:
    tree = Tree(name="", by_name={"a": Part(), "b": Part(size=2)}, wholes=[Whole(name="c"), Whole(name="d", parts=[])])

    assert tree.to_json() == {
        "name": "",
        "size": 0,
        "by_name": {"a": {"size": 0}, "b": {"size": 2}},
        "wholes": [{"parts": [], "name": "c", "loud": "C"}, {"parts": [], "name": "d", "loud": "D"}],
        "note": None,
    }
    assert tree.to_json(defaults=False) == {
        "name": "",
        "by_name": {"a": {}, "b": {"size": 2}},
        "wholes": [{"name": "c", "loud": "C"}, {"name": "d", "loud": "D"}],
    }
    assert Tree(name="x").to_json(defaults=False) == {"name": "x"}


def test_what_is_nested_deeply_is_printed_as_it_is() -> None:
    class Raw(Result):
        messages: list[dict[str, Any]]

    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}

    assert Raw(messages=[deep]).to_json()["messages"] == [deep]


def test_results_take_keywords_and_do_not_change() -> None:
    """That the type checker knows of both is what the ignored errors are for."""
    more = More(name="a", count=2)

    with pytest.raises(AttributeError, match="immutable"):
        more.count = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Part(1)  # type: ignore[call-arg]


def test_a_result_comes_back_from_another_process() -> None:
    more = More(name="a", count=2)

    assert pickle.loads(pickle.dumps(more)) == more


def all_results(kind: type[Result] = Result) -> Iterator[type[Result]]:
    yield kind
    for under in kind.__subclasses__():
        yield from all_results(under)


OF_JSON = {str, int, float, bool, NoneType, list, dict, Literal, Union, UnionType, Result, Any, object}


def made_of(kind: Any) -> Iterator[object]:
    """All that is in a type."""
    if isinstance(kind, type) and issubclass(kind, Result):
        yield Result
    else:
        yield get_origin(kind) or kind
    if get_origin(kind) is not Literal:
        for inner in get_args(kind):
            yield from made_of(inner)


def test_what_is_no_json_is_found_wherever_it_stands() -> None:
    for kind in (tuple[str, ...], tuple[str] | None, dict[str, tuple[int]], list[set[str]], Path | None):
        assert not {*made_of(kind)} <= OF_JSON
    assert {*made_of(dict[str, list[Part] | None])} == {dict, str, list, Result, NoneType, UnionType}


@pytest.mark.parametrize("kind", [*all_results()], ids=lambda kind: kind.__name__)
def test_no_result_can_be_changed_or_holds_what_json_has_not(kind: type[Result]) -> None:
    """Secrets are looked for in lists and objects: what JSON has."""
    assert kind.__struct_config__.frozen
    assert {made for field in fields(kind) for made in made_of(field.type)} <= OF_JSON
