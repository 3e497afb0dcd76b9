"""Long texts in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.service.history import OutputText
from core.service.pages import page_of, view_page
from core.service.session import SessionRef
from core.service.view import ViewResult

REF = SessionRef(id="s", path="/s.jsonl", format="claude-code", title="")


def whole(text: str) -> OutputText:
    return OutputText(
        session=REF, id="a", kind="result", name="Read", where="active", text=text, first_line=1, total_lines=1
    )


@given(st.text("ab\n", max_size=60), st.integers(1, 20))
def test_the_pieces_come_to_the_text_and_none_is_larger_than_asked(text: str, most: int) -> None:
    pieces, offset = [], 0
    while True:
        page = page_of(whole(text), offset, most)
        pieces.append(page.text)
        assert (page.offset, page.total_chars, page.id) == (offset, len(text), "a")
        if page.next_offset is None:
            break
        assert page.next_offset > offset
        offset = page.next_offset

    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= most


def test_a_piece_ends_with_a_line_where_that_costs_no_more_than_half_of_it() -> None:
    assert page_of(whole("12345\n7890"), 0, 8).text == "12345\n"
    assert page_of(whole("1\n34567890"), 0, 8).text == "1\n345678"


def test_behind_the_end_there_is_nothing() -> None:
    page = page_of(whole("abc"), 10, 5)

    assert (page.text, page.next_offset) == ("", None)


def test_a_secret_is_not_given_away_where_a_piece_ends_within_it() -> None:
    text = "key AKIAIOSFODNN7EXAMPL3 end"
    pieces = [page_of(whole(text), at, 10).text for at in range(0, 30, 10)]

    assert "AKIA" not in "".join(pieces)
    assert "[REDACTED:" in "".join(pieces)


def test_messages_come_in_pages_of_at_least_one() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in ("a" * 500, "b", "c")]
    view = ViewResult(session=REF, messages=messages, ids=[str(n) for n in range(len(messages))], warnings=[])
    pages, offset = [], 0
    while True:
        page = view_page(view, offset, 200)
        pages.append(len(page.messages))
        assert (page.offset, page.total_messages) == (offset, 3)
        assert page.ids == ["0", "1", "2"][offset : offset + len(page.messages)]
        if page.next_offset is None:
            break
        offset = page.next_offset

    assert pages == [1, 2]
    assert view_page(view, 7, 200).messages == []


def test_messages_come_without_secrets() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "AKIAIOSFODNN7EXAMPL3"}]}]
    page = view_page(
        ViewResult(session=REF, messages=messages, ids=[str(n) for n in range(len(messages))], warnings=[]), 0, 1_000
    )

    assert "AKIA" not in str(page.messages)
