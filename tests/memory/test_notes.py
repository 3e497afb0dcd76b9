"""Notes as data and as Markdown: what is written is read back, and what a person writes stays."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.memory.markdown import parse, render, shown
from core.memory.notes import (
    BY_KEY,
    FULL_TOKENS,
    LEAST_TOKENS,
    SECTIONS,
    Notes,
    SectionKey,
    budget_tokens,
    cap_tokens,
    cost_tokens,
    item,
    tokens_of,
)

SESSION = "11111111-1111-4111-8111-111111111111"
_TEXT = st.text("ab[]() -*#<>!\\\n\r\t`é漢", min_size=1, max_size=60) | st.sampled_from(
    ("(open) x", "[c1-1] x", "[] x", "() x", "- x", "## Open tasks", "x <!-- 7 -->", "a\n\n\nb", "# Session memory")
)
_IDS = st.from_regex(r"[a-z][0-9]{1,3}-[0-9]{1,2}", fullmatch=True)
_STATUS = st.sampled_from(("", "open", "in progress", "done"))
_SOURCES = st.lists(st.sampled_from(("a-1", "b:2", "00000000-0000-4000-8000-000000000006")), max_size=2, unique=True)
_ITEMS = st.builds(item, _IDS | st.just(""), _TEXT, _STATUS, _SOURCES, st.integers(0, 99)).filter(lambda i: i.text)
_LINE = st.text("ab .é漢>", min_size=1, max_size=20).map(str.strip).filter(bool)
_PROSE = st.lists(_LINE, min_size=1, max_size=3).map("\n".join)
_KEYS = st.sampled_from([section.key for section in SECTIONS])


@st.composite
def any_notes(draw: st.DrawFn) -> Notes:
    keys: list[SectionKey] = draw(st.lists(_KEYS, unique=True))
    items = {key: tuple(draw(st.lists(_ITEMS, min_size=1, max_size=3))) for key in keys}
    prose = draw(st.dictionaries(_KEYS | st.just(""), _PROSE, max_size=3))
    heading = _LINE.filter(lambda line: line.casefold() not in {s.heading.casefold() for s in SECTIONS})
    others = tuple(draw(st.lists(st.tuples(heading, _PROSE | st.just("")), max_size=2)))
    archived = draw(st.dictionaries(_KEYS, st.integers(1, 9), max_size=2))
    return Notes(draw(st.text(max_size=9)), draw(st.integers(0, 99)), draw(_IDS), items, prose, others, archived)


@given(any_notes())
def test_what_is_written_is_read_back(notes: Notes) -> None:
    assert parse(render(notes)) == notes


@given(st.lists(st.sampled_from(("## Log", "## Mine", "- x", "* y", "  z", "text", "", "   ", "- [t1-1] (open) q"))))
def test_a_file_that_a_person_edited_loses_no_word_and_settles_at_once(lines: list[str]) -> None:
    edited = "\n".join(lines)
    once = render(parse(edited))

    words = [word for line in lines for word in line.replace("* ", "- ").split() if word not in ("##", "-")]
    for word in set(words):
        assert once.split().count(word) >= min(1, words.count(word)), word
    assert render(parse(once)) == once


def test_an_edit_is_kept_beside_what_was_there() -> None:
    notes = Notes(SESSION, 3, "u6").with_items("tasks", [item("t3-1", "Rename it\n\nand test it", "open", ["u5"], 3)])
    text = render(notes)

    edited = text.replace("## Open tasks\n", "## Open tasks\nAsk Kim first.\n- Ship it\r\n")
    edited = edited.replace("## Log", "## My own notes\nHands off.\n\n## log").replace(
        text[:10], "Hello.\n" + text[:10]
    )
    read = parse(edited)

    assert read.of("tasks") == (item("", "Ship it"), item("t3-1", "Rename it\n\nand test it", "open", ["u5"], 3))
    assert (read.session, read.update, read.covers) == (SESSION, 3, "u6")
    assert read.prose == {"": "Hello.", "tasks": "Ask Kim first."}
    assert read.others == (("My own notes", "Hands off."),)
    assert "Hands off." in render(read)


def test_a_broken_head_is_text_and_no_error() -> None:
    read = parse('# Session memory\n<!-- foldmark {"update":"x"} -->\n\n## Goal\n- Ship')

    assert read == Notes(items={"goal": (item("", "Ship"),)}, prose={"": '<!-- foldmark {"update":"x"} -->'})


@pytest.mark.parametrize("text", ["", "\n", "# Session memory", "## Goal\n-  \n- \n"])
def test_a_file_that_says_nothing_is_the_template(text: str) -> None:
    assert parse(text).is_template


def test_headings_a_title_and_a_log_are_a_template_still() -> None:
    notes = Notes(SESSION).with_items("title", [item("h1-1", "T")]).with_items("log", [item("l1-1", "L")])

    assert parse(render(Notes(SESSION))).is_template
    assert notes.is_template
    assert not notes.with_items("goal", [item("g1-1", "G")]).is_template
    assert not Notes(prose={"goal": "x"}).is_template


def test_what_went_to_the_archive_is_pointed_at_and_counted_on() -> None:
    notes = Notes(SESSION, archived={"log": 4})

    assert "## Log\n(4 more in archive.md)" in render(notes)
    assert parse(render(notes)) == notes


def test_a_model_reads_an_item_without_where_it_comes_from() -> None:
    assert shown(item("c1-1", "Never push", "", ["u1"], 4)) == "- [c1-1] Never push"


def test_items_are_found_by_id_and_an_empty_id_finds_none() -> None:
    notes = Notes().with_items("errors", [item("", "no id"), item("e2-1", "it broke")])

    assert notes.find("e2-1") == ("errors", item("e2-1", "it broke"))
    assert notes.find("") is None
    assert notes.with_items("errors", []).items == {}


def test_ids_that_no_comment_can_hold_and_strange_states_are_left_out() -> None:
    assert item("a", "t", "Not Ours", ["ok", "a b", "-->", "ok"]).sources == ("ok",)
    assert item("a", "t", "Not Ours").status == ""


def test_the_sections_fit_the_whole_and_their_names_are_all_different() -> None:
    assert {section.key for section in SECTIONS} == {*get_args(SectionKey)}
    assert len({section.letter for section in SECTIONS}) == len(SECTIONS)
    assert sum(section.cap_tokens for section in SECTIONS) <= FULL_TOKENS


def test_no_section_is_over_2000_tokens_where_all_of_them_have_12000() -> None:
    assert max(cap_tokens(section, 12_000) for section in SECTIONS) <= 2_000
    assert cap_tokens(BY_KEY["log"], 4_000) == 250


@pytest.mark.parametrize(
    ("window", "expected"), [(200_000, 8_000), (1_000_000, 12_000), (100_000, 4_000), (10_000, LEAST_TOKENS)]
)
def test_notes_take_no_more_than_their_share_of_the_window(window: int, expected: int) -> None:
    assert budget_tokens(12_000, window) == expected


def test_room_is_counted_in_bytes_so_that_wide_characters_cost_a_token_each() -> None:
    assert tokens_of("abcdef") == 2
    assert tokens_of("漢字") == 2
    assert cost_tokens(item("c1-1", "x" * 30)) > 10
