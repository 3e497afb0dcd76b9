"""Notes as a model reads them: short, without origins, and never cut without a word about it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.memory.brief import brief, notes_in
from core.memory.notes import SECTIONS, Notes, SectionKey, item, tokens_of

PATH = "/p/notes.md"


def test_an_item_stands_there_without_its_origin_and_empty_sections_do_not() -> None:
    notes = Notes("s", 1, "u").with_items("constraints", [item("c1-1", "Never push", "", ["u1"], 1)])

    assert brief(notes, 8_000, PATH, ["Notes."]) == (
        "# Session memory\nNotes.\nThey tell of the session up to message u.\n\n"
        "## User constraints\n- [c1-1] Never push\n"
    )


def test_the_newest_items_stay_and_the_others_are_counted() -> None:
    notes = Notes("s").with_items("log", [item(f"l1-{n}", f"line {n} " * 30) for n in range(40)])
    text = brief(notes, 8_000, PATH)

    assert "[l1-39]" in text
    assert "[l1-0]" not in text
    assert f"({40 - text.count('- [l1-')} more in {PATH})" in text


def test_constraints_take_the_room_that_others_leave() -> None:
    rules = [item(f"c1-{n}", f"Never do {n} " * 10) for n in range(100)]

    assert brief(Notes("s").with_items("constraints", rules), 8_000, PATH).count("- [c1-") == 100


def test_what_a_person_added_is_read_too_and_what_was_archived_is_named() -> None:
    notes = Notes("s", prose={"": "In front.", "goal": "Mind the dog."}, others=(("Mine", "Text."),))
    text = brief(replace(notes, archived={"log": 3}), 8_000, PATH)

    assert text == (
        "# Session memory\n\nIn front.\n\n## Goal\nMind the dog.\n\n## Log\n"
        f"(3 older ones in archive.md beside {PATH})\n\n## Mine\nText.\n"
    )


@given(
    st.dictionaries(
        st.sampled_from([s.key for s in SECTIONS]),
        st.lists(st.tuples(st.sampled_from("x漢é "), st.integers(1, 9_000)), min_size=1, max_size=6),
    ),
    st.integers(1_600, 12_000),
    st.booleans(),
)
def test_it_fits_its_room(sizes: dict[SectionKey, list[tuple[str, int]]], budget: int, prose: bool) -> None:
    notes = Notes("s", others=(("Mine", "y" * 90_000),))
    for key, each in sizes.items():
        entries = [item(f"{key[0]}1-{n}", "z" + char * size) for n, (char, size) in enumerate(each)]
        notes = notes.with_items(key, entries)
        if prose:
            notes = replace(notes, prose={**notes.prose, key: "y" * 9_000})

    assert tokens_of(brief(notes, budget, PATH)) <= budget + 1


def test_a_session_goes_on_with_the_notes_that_its_summary_was_made_of() -> None:
    notes = (
        Notes("s", 7, "u", prose={"": "In front.", "goal": "Mind the dog."}, archived={"log": 3})
        .with_items("tasks", [item("t5-2", "Fix it\n\nsoon", "open", ["u1"], 5)])
        .with_items("log", [item(f"l1-{n}", "line " * 100) for n in range(40)])
    )
    again = notes_in("Before.\n" + brief(notes, 8_000, PATH, ["Notes."]), "new")

    assert again is not None
    assert (again.session, again.update, again.covers) == ("new", 5, "u")
    assert again.of("tasks") == (item("t5-2", "Fix it\n\nsoon", "open"),)
    assert again.prose == {"goal": "Mind the dog."}
    assert 0 < len(again.of("log")) < 40


def test_another_summary_holds_no_notes() -> None:
    assert notes_in("# Summary of the conversation so far", "s") is None
    fresh = notes_in("# Session memory\n\n## Goal\n- Mine", "s")
    assert fresh is not None
    assert (fresh.update, fresh.covers) == (1, "")
