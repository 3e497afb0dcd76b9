"""Text work: what was typed, where sentences end, cutting and quoting."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.facts.text import SCAN_CHARS, beginning, capped, code, cut, lowered, quoted, sentences, squeezed, typed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a <system-reminder>x</system-reminder> b", "a  b", id="one"),
        pytest.param("<command-name>/x</command-name><command-args></command-args>", "", id="nothing-else"),
        pytest.param("<system-reminder>a<bash-input>b</bash-input></system-reminder>c", "c", id="one-in-another"),
        pytest.param(
            "<system-reminder>a <system-reminder>b", "<system-reminder>a <system-reminder>b", id="never-closed"
        ),
        pytest.param("see <my-button>ok</my-button>", "see <my-button>ok</my-button>", id="the-persons-own"),
        pytest.param("[Request interrupted by user for tool use] stop", "stop", id="interruption"),
    ],
)
def test_typed_is_what_the_person_wrote(text: str, expected: str) -> None:
    assert typed(text) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("It works. Ship it.", ["It works.", "Ship it."], id="two"),
        pytest.param("See e.g. Appendix B. Then go.", ["See e.g. Appendix B. Then go."], id="abbreviations"),
        pytest.param("Version 3.11 of a.py is fine", ["Version 3.11 of a.py is fine"], id="points-inside-words"),
        pytest.param("- 1. Do it! Now?", ["1. Do it!", "Now?"], id="bullet"),
        pytest.param("終わり。次へ。", ["終わり。", "次へ。"], id="without-spaces"),
        pytest.param("   ", [], id="blank"),
    ],
)
def test_sentences_of_a_line(line: str, expected: list[str]) -> None:
    assert sentences(line) == expected


@given(st.text(max_size=300), st.integers(-3, 200), st.integers(0, 80))
def test_cut_text_is_never_longer_than_its_limit(text: str, limit: int, tail: int) -> None:
    assert len(cut(text, limit, tail)) <= max(limit, 0)


def test_cut_text_has_its_head_its_end_and_a_count() -> None:
    assert cut("a" * 500 + "z", 100, tail=10) == "a" * 66 + " …[425 chars left out]… " + "a" * 9 + "z"


@given(st.text("ab \n", max_size=12_000), st.integers(60, 200), st.integers(0, 80))
def test_the_count_is_of_all_that_is_not_shown(text: str, limit: int, tail: int) -> None:
    shown = cut(text, limit, tail)
    counted = re.search(r" …\[(\d+) chars left out\]… ?", shown)
    if counted:
        assert int(counted[1]) == len(text) - len(shown) + len(counted[0])
        assert int(counted[1]) > len(counted[0])  # the mark is shorter than what it stands for


@pytest.mark.parametrize(
    ("tail", "expected"), [(0, "a" * 99 + "…"), (10, "a" * 89 + "…" + "b" * 10)], ids=["head", "both"]
)
def test_what_is_hardly_too_long_loses_hardly_anything(tail: int, expected: str) -> None:
    assert cut("a" * 91 + "b" * 10 if tail else "a" * 101, 100, tail) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(" one\n two ", "one two", id="short"),
        pytest.param("word " * 10, "word word…", id="long"),
        pytest.param("a" + " " * 100 + "b", "a…", id="behind-a-gap"),
        pytest.param("a" + " " * 100, "a", id="nothing-but-a-gap"),
    ],
)
def test_a_beginning_says_whether_the_text_goes_on(text: str, expected: str) -> None:
    assert beginning(text, 11) == expected


def test_a_block_of_any_size_is_capped() -> None:
    assert len(capped("x" * 10**6)) == SCAN_CHARS + 1
    assert capped("x") == "x"


def test_several_lines_are_fenced_by_more_tildes_than_they_hold() -> None:
    assert quoted("a\n~~~~\nb") == "\n~~~~~\na\n~~~~\nb\n~~~~~"
    assert quoted("one line") == "one line"


def test_nothing_gets_out_of_inline_code() -> None:
    assert code("a `b`\n c") == "`a 'b' c`"


def test_in_lower_case_every_character_keeps_its_place() -> None:
    text = "".join(chr(point) for point in range(0x3000) if chr(point).isupper())
    assert len(lowered(text)) == len(text)
    assert lowered("ΑΣ") in lowered("ΑΣΑ")
    assert squeezed("ΑΣ") in squeezed("«ΑΣ Α»")
