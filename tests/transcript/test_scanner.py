"""Lines that are no rows: a run of them is one finding, and costs next to nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.transcript import scanner
from core.transcript.entries import Entry, decode_entry
from core.transcript.scanner import Scan, scan

ROW = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"hello"}}'
NO_ROWS = [
    b"x",
    b"12",
    b"[1]",
    b'"s"',
    b"null",
    b'{"a":1}',
    b"{}",
    b"}",
    b"abc {",
    b'{ "x',
    b'  "type":"user",',
    b"\xff",
]


def scanned(*lines: bytes) -> Scan:
    data = b"".join(line + b"\n" for line in lines)
    return scan(data, 0, len(data), 0, last=True)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where the lines are that were decoded."""
    places: list[int] = []

    def decode(raw: bytes, offset: int) -> Entry | None:
        places.append(offset)
        return decode_entry(raw, offset)

    monkeypatch.setattr(scanner, "decode_entry", decode)
    return places


@pytest.mark.parametrize("line", [b"x", b"no row at all", b"12", b"{x}"])
def test_of_a_run_the_first_line_alone_is_decoded(decoded: list[int], line: bytes) -> None:
    found = scanned(ROW, *[line] * 1_000, ROW)

    assert len(found.entries) == 2
    assert [f.message for f in found.findings] == ["1000 lines in a row that are no rows; they are left out"]
    assert len(decoded) <= 4


@given(st.lists(st.sampled_from(NO_ROWS), min_size=2, max_size=9), st.integers(1, 3))
def test_a_run_is_one_finding_that_counts_its_lines(lines: list[bytes], runs: int) -> None:
    found = scanned(*[ROW, *lines] * runs)

    message = f"{len(lines)} lines in a row that are no rows; they are left out"
    assert [f.message for f in found.findings] == [message] * runs
    size = len(ROW) + 1 + sum(len(line) + 1 for line in lines)
    assert [f.offset for f in found.findings] == [n * size + len(ROW) + 1 for n in range(runs)]
    assert len(found.entries) == runs


@given(st.lists(st.sampled_from(NO_ROWS), max_size=5), st.sampled_from([ROW + ROW, ROW[:30] + ROW, b"\0" + ROW]))
def test_a_damaged_row_is_read_wherever_it_stands_in_a_run(lines: list[bytes], damaged: bytes) -> None:
    found = scanned(*lines, damaged, *lines)

    assert len(found.entries) == damaged.count(ROW)


def test_an_unfinished_record_counts_with_the_run_around_it() -> None:
    found = scanned(b"x", b"{", b"  1", b'{ "x', b"x", ROW)

    assert [f.message for f in found.findings] == ["5 lines in a row that are no rows; they are left out"]
