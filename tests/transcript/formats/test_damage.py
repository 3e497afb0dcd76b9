from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Damaged
from core.model import JSON
from core.transcript.formats.damage import Findings, document, loads, records, values, without_surrogates

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def _records(tmp_path: Path, data: bytes) -> tuple[list[tuple[int, dict[str, JSON]]], list[tuple[str, int]]]:
    path = tmp_path / "file.jsonl"
    path.write_bytes(data)
    findings = Findings()
    found = list(records(path, findings))
    return found, [(f.kind, f.line) for f in findings.done()]


@pytest.mark.parametrize(
    ("data", "expected", "kinds"),
    [
        (b'\xef\xbb\xbf{"a":1}\r\n\r\n{"b":2}', [(1, {"a": 1}), (3, {"b": 2})], []),
        (b'{"a":1}{"b":2} {"c":3}\n', [(1, {"a": 1}), (1, {"b": 2}), (1, {"c": 3})], [("joined-line", 1)]),
        (b'{"a":1}\n\0\0\0\0', [(1, {"a": 1})], []),
        (b'{"a":"x\n{"b":2}\n', [(2, {"b": 2})], [("garbage-line", 1)]),
        (b'{"a":1}\n{"b":', [(1, {"a": 1})], [("torn-tail", 2)]),
        (b'{"a":1}\nhello', [(1, {"a": 1})], [("garbage-line", 2)]),
        (b'{"a":"x\ny"}\n{"b":2}\n', [(1, {"a": "x\ny"}), (3, {"b": 2})], [("pretty-printed", 1)]),
        (
            b'{\n"a": [\n{"b": 1},\n{}\n]}\n{"c":3}',
            [(4, {}), (6, {"c": 3})],
            [("garbage-line", 1), ("garbage-line", 5)],
        ),
        (b'{\n"a": [\n{"b": 1},\n2\n]\n}\n', [(1, {"a": [{"b": 1}, 2]})], [("pretty-printed", 1)]),
        (b'{"a":1}{"b":\n{"c":3}\n', [(1, {"a": 1}), (2, {"c": 3})], [("garbage-line", 1)]),
        (b'{\n}}\n{"a":1}', [(3, {"a": 1})], [("garbage-line", 1)]),
        (b'null\n[]\n7\n"x"\n{"a":1}\n', [(5, {"a": 1})], []),
        (b'{"a":"\xff"}\n', [(1, {"a": "\ufffd"})], [("bad-bytes", 1)]),
        (b'{"a":"\xe2\x80\xa8"}\n', [(1, {"a": "\u2028"})], []),
        (b'{"a":NaN,"b":-Infinity,"c":1e999,"d":1.5}\n', [(1, {"a": None, "b": None, "c": None, "d": 1.5})], []),
        (b'{"a":"\\ud83d\\ude00\\ud800","\\udfff":"\\\\ud800"}', [(1, {"a": "😀\ufffd", "\ufffd": "\\ud800"})], []),
        (b'{"a":"\x00\x01"}\n', [(1, {"a": "\0\1"})], []),
        (b'{"a":' * 500 + b"1" + b"}" * 500 + b'\n{"b":2}', [(2, {"b": 2})], [("garbage-line", 1)]),
        (b'{"a":' * 9_000 + b"1" + b"}" * 9_000, [], [("torn-tail", 1)]),
        (b'{"a":' + b"9" * 5_000 + b"}", [], [("torn-tail", 1)]),
    ],
)
def test_records_are_read_around_damage(
    tmp_path: Path, data: bytes, expected: list[tuple[int, JSON]], kinds: list[tuple[str, int]]
) -> None:
    assert _records(tmp_path, data) == (expected, kinds)


def test_a_record_is_not_looked_for_over_any_number_of_lines(tmp_path: Path) -> None:
    found, kinds = _records(tmp_path, b'{"a":[\n' + b"1,\n" * 1_000 + b'2]}\n{"b":2}\n')
    assert found == [(1003, {"b": 2})]
    assert {kind for kind, _ in kinds} == {"garbage-line"}


def test_findings_of_one_kind_are_counted_when_they_are_many() -> None:
    findings = Findings()
    for line in range(1, 1_001):
        findings.add("garbage-line", line, "m")
    findings.add("torn-tail", 1, "m")
    done = findings.done()
    assert len(done) == 52
    assert done[-1].message.startswith("950 more")


def test_a_value_nested_to_the_limit_is_read_and_one_deeper_is_not() -> None:
    assert loads("[" * 200 + "]" * 200)
    with pytest.raises(ValueError, match="deep"):
        loads("[" * 202 + "1," * 400 + "1" + "]" * 202)
    with pytest.raises(ValueError, match="behind"):
        loads("[] []")


def test_lone_surrogates_are_replaced() -> None:
    assert without_surrogates("a\ud800b😀") == "a\ufffdb😀"


@pytest.mark.parametrize(
    ("text", "keep", "expected"),
    [
        ('{"a": [{"b": 1}, {"b": 2', 1, {"a": [{"b": 1}]}),
        ('{"a": [{"b": 1}, {"b": 2', 9, {"a": [{"b": 1}, {}]}),
        ('{"a": [{"b": 1}, {"b": 2, "c": "x', 9, {"a": [{"b": 1}, {"b": 2}]}),
        ('[{"b": 1}, {"b": ', 0, [{"b": 1}]),
        ('[{"b": 1}, {"b": 2]] more', 0, [{"b": 1}]),
        ('[{"b": 1}, ?', 0, [{"b": 1}]),
    ],
)
def test_what_stands_before_a_break_is_given(text: str, keep: int, expected: JSON) -> None:
    ((value, at, whole),) = values(text, {"{": keep, "[": keep})
    assert (value, at, whole) == (expected, 0, False)


@given(VALUES.filter(lambda v: isinstance(v, (dict, list)) and v), st.data())
def test_any_cut_of_a_document_gives_a_part_of_it(value: JSON, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text)))
    for part, _, whole in values(text[:cut]):
        assert whole == (cut == len(text))
        assert type(part) is type(value)
        if isinstance(value, dict) and isinstance(part, dict):
            assert list(part) == list(value)[: len(part)]


def test_a_document_that_holds_nothing_wanted_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"[1, 2]")
    with pytest.raises(Damaged) as caught:
        document(path, lambda v: isinstance(v, dict), {"{": 1, "[": 1}, Findings())
    assert caught.value.hint
