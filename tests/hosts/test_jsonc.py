"""One member more or less, and every other byte as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Damaged
from core.hosts.jsonc import value_at, with_member, without_member
from core.model import JSON

PATH = ("servers", "mine")
VALUE: JSON = {"command": "run", "args": ["a", "ä"]}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(), values, max_size=4)


@given(objects, st.sampled_from([None, 2, 4, "\t"]))
def test_what_is_set_is_there_and_all_else_is_as_it_was(settings: dict[str, JSON], indent: int | str | None) -> None:
    text = json.dumps(settings, indent=indent)
    after = with_member(text, ("mine",), VALUE)

    assert json.loads(after) == {**settings, "mine": VALUE}
    assert value_at(after, ("mine",)) == VALUE


@given(objects.filter(bool), st.sampled_from([None, 2, 4, "\t"]))
def test_what_was_added_beside_others_is_taken_out_to_the_byte(
    settings: dict[str, JSON], indent: int | str | None
) -> None:
    settings.pop("mine", None)
    text = json.dumps({"servers": {"other": 1, **settings}}, indent=indent)
    text = text.replace('"mine"', '"yours"')

    assert without_member(with_member(text, PATH, VALUE), PATH) == text


@given(objects)
def test_setting_it_twice_changes_nothing(settings: dict[str, JSON]) -> None:
    once = with_member(json.dumps(settings), ("mine",), VALUE)

    assert with_member(once, ("mine",), VALUE) == once


COMMENTED = """// mine
{
    "theme": "dark", /* as ever */
    "servers": {
        "a": {"url": "http://x//y"} // keep
    },
}
"""


def test_comments_and_trailing_commas_stay() -> None:
    after = with_member(COMMENTED, PATH, VALUE)

    assert after.splitlines()[4] == '        "a": {"url": "http://x//y"}, // keep'
    assert after.startswith("// mine\n")
    assert "/* as ever */" in after
    assert after.endswith("    },\n}\n")
    assert value_at(after, PATH) == VALUE
    assert value_at(after, ("servers", "a")) == {"url": "http://x//y"}
    assert without_member(after, PATH) == COMMENTED


def test_line_ends_are_those_of_the_file() -> None:
    text = '{\r\n  "a": 1\r\n}\r\n'
    after = with_member(text, ("b",), {"c": 2})

    assert after == '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n'
    assert without_member(after, ("b",)) == text


def test_where_commas_trail_the_new_one_has_one_too() -> None:
    after = with_member('{\n  "a": 1, // one\n}', ("b",), 2)

    assert after == '{\n  "a": 1, // one\n  "b": 2,\n}'
    assert without_member(after, ("b",)) == '{\n  "a": 1, // one\n}'


@pytest.mark.parametrize("text", ["", " \n", "{}", "\ufeff{}", "{ /* none */ }", '{"servers": {}}'])
def test_missing_objects_are_made(text: str) -> None:
    after = with_member(text, PATH, VALUE)

    assert value_at(after, PATH) == VALUE
    assert value_at(without_member(after, PATH), PATH) is None
    assert ("/*" in after) == ("/*" in text)


def test_the_first_and_the_only_member_can_go() -> None:
    assert without_member('{"mine": 1, "b": 2}', ("mine",)) == '{"b": 2}'
    assert without_member('{\n  "mine": 1\n}', ("mine",)) == "{}"
    assert without_member('{ /* a */ "mine": 1, }', ("mine",)) == "{ /* a */ }"
    assert without_member('{"b": 2}', ("mine",)) == '{"b": 2}'
    assert without_member("{}", PATH) == "{}"


def test_of_two_of_a_name_the_last_counts() -> None:
    assert with_member('{"a": 1, "a": 2}', ("a",), 3) == '{"a": 1, "a": 3}'


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[]", "line 1, column 1"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{\n"a" 1}', "line 2, column 5"),
        ("{a: 1}", "line 1, column 2"),
        ('{"a": }', "line 1, column 7"),
        ('{"a": [1 2]}', "line 1, column 10"),
        ('{"a": wrong}', "line 1, column 7"),
        ('{"a": "', "line 1, column 7"),
        ('{"a": 1', "line 1, column 8"),
        ('{"servers": []}', "line 1, column 13"),
        ("{" + '"a": {' * 200, "nested too deep"),
    ],
)
def test_what_is_no_json_is_refused_by_place(text: str, where: str) -> None:
    with pytest.raises(Damaged, match=where):
        with_member(text, PATH, VALUE)


def test_nothing_is_no_value() -> None:
    assert value_at("", PATH) is None
