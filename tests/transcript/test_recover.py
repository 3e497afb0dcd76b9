"""Records on damaged lines, and what is wrong with bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.transcript import recover
from core.transcript.recover import records_in, wrong_bytes

ROW = b'{"type":"user","uuid":"u","message":{"content":[{"type":"text","text":"a {b} c"}]}}'
CUT = b'{"parentUuid":"p","message":{"content":[{"type":"text","text":"x"},{"type":"te'


def found(line: bytes) -> list[bytes]:
    return [line[start:end] for start, end in records_in(line)]


def test_records_that_follow_each_other_are_all_found() -> None:
    assert found(ROW + b" \t" + ROW + ROW) == [ROW] * 3


@given(st.integers(1, len(ROW) - 1))
def test_a_record_behind_a_cut_one_is_found_wherever_that_was_cut(at: int) -> None:
    assert found(ROW[:at] + ROW) == [ROW]


def test_whole_records_around_a_cut_one_are_found() -> None:
    assert found(ROW + CUT + ROW + ROW) == [ROW] * 3


def test_blocks_of_a_cut_record_are_no_records() -> None:
    assert found(CUT) == []
    assert found(ROW + CUT) == [ROW]


@pytest.mark.parametrize("line", [b"", b"   ", b"garbage", b"[1,2]", b'{"a":' + b"9" * 5000 + b"}", b"{" * 5000])
def test_what_is_no_record_is_none(line: bytes) -> None:
    assert found(line) == []


@pytest.mark.parametrize(
    "unit", [b'{"uuid":', b'{"uuid":[', b'{"uuid":"x"},', b'{"uuid":"', b'{"uuid"', b'{"type":"user",'], ids=range(6)
)
def test_a_hostile_line_is_gone_over_a_bounded_number_of_times(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"x" + unit * 3000 + b"{" + b"y" * 3000
    attempts = []
    scan = recover._scan

    def counted(text: str, at: int) -> tuple[object, int]:
        attempts.append(at)
        return scan(text, at)

    monkeypatch.setattr(recover, "_scan", counted)

    assert found(line) == []
    assert sum(attempts) <= (recover._PASSES + 1) * recover._ERROR_SHARE * len(line)


def test_what_is_wrong_with_bytes_is_counted() -> None:
    assert wrong_bytes(b'{"a":"\xc3\xa4 \\ud83d\\ude00 \\\\ud800 \xef\xbf\xbd"}') == ""
    assert wrong_bytes(b'"\xff\xfe \xef\xbf\xbd"') == "2 sequences that are no UTF-8, read as U+FFFD"
    assert wrong_bytes(b'"\\ud83d \\ude00"') == "2 halves of surrogate pairs, read as U+FFFD"
    assert wrong_bytes(b"\xef\xbb\xbf{}\0") == "a byte-order mark, left out; NUL bytes, left out"
