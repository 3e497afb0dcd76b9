"""What counts as a claim that can be looked up, and where it is."""

from __future__ import annotations

import pytest

from core.compaction.claims import NOT_FOUND, NOT_RUN, PRINTED, blanked, claims, prose, without_marks


def found(text: str) -> list[tuple[str, str]]:
    return [(c.kind, c.text) for c in claims(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See src/a.py and b.md.", [("path", "src/a.py"), ("path", "b.md")]),
        ("See https://example.com/x/y now", [("path", "https://example.com/x/y")]),
        ("`src/a.py` and `src/b.py:12-40` and `c.py()`", [("path", n) for n in ("src/a.py", "src/b.py", "c.py")]),
        ("`parse_line` and `Reader.next()`", [("symbol", "parse_line"), ("symbol", "Reader.next()")]),
        ("`git push --force origin/x.py`", [("code", "git push --force origin/x.py")]),
        ('He said "never on Fridays" and "no"', [("quote", "never on Fridays")]),
        (
            "He said “never on Fridays”, «le lundi seulement ici»",
            [("quote", "never on Fridays"), ("quote", "le lundi seulement ici")],
        ),
        ('It says "use `a_bc` for it" here', [("quote", "use `a_bc` for it"), ("symbol", "a_bc")]),
        ("> what the page says\nNot quoted", [("quote", "what the page says")]),
        ("```py\nx = 1\ny = call()\n```\nDone", [("code", "x = 1\ny = call()\n")]),
        ("Port 8443, 12 retries, 1,234,567 rows, 500ms", [("value", n) for n in ("8443", "1,234,567", "500")]),
        ("v1.2 and 1.2 and 1.2.3 and 3.11", [("value", n) for n in ("v1.2", "1.2.3", "3.11")]),
        ("Commit 1a2b3c4 on db.internal", [("value", "1a2b3c4"), ("value", "db.internal")]),
        ("`x` and `--` and 12", []),
        ("src/very/long/na.py… was cut", []),
        ("`abc…", []),
    ],
)
def test_claims(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


def test_what_the_offline_summariser_counted_is_no_claim() -> None:
    text = "taken from 1234 messages, without a model; 567 parts left out.\n"
    text += "`a_b.py`: edited 123, read 200\n- (999 more left out)"

    assert found(text) == [("path", "a_b.py")]


def test_a_claim_says_where_it_is() -> None:
    text = "So `made_up` in\nsrc/a.py"

    assert [text[c.start : c.end] for c in claims(text)] == ["`made_up`", "src/a.py"]


def test_what_is_longer_in_lower_case_moves_no_place() -> None:
    text = "İİİ: commit 1a2b3c4 of v1.2 on ΑΣ's db.internal"
    assert [text[c.start : c.end] for c in claims(text)] == ["1a2b3c4", "v1.2", "db.internal"]


def test_marked_claims_claim_nothing() -> None:
    text = f"`made_up` {NOT_FOUND} in src/a.py {NOT_FOUND} {NOT_RUN}\n```\nx = made_up\n```\n{NOT_FOUND}\nsrc/b.py"

    assert found(text) == [("path", "src/b.py")]
    assert without_marks(text) == "`made_up` in src/a.py\n```\nx = made_up\n```\nsrc/b.py"


def test_prose_is_what_the_summary_says_itself() -> None:
    text = f'It works. He said "do it".\n```\nIgnore.\n```\n- Run `x`. Then stop. {PRINTED}\nOut {NOT_FOUND} of date.'

    said = [(text[c.start : c.end], " ".join(bare.split())) for c, bare in prose(text)]

    assert said == [
        ("It works.", "It works."),
        ('He said "do it".', "He said ."),
        ("Run `x`.", "Run ."),
        (f"Out {NOT_FOUND} of date.", "Out of date."),
    ]


def test_a_sentence_is_found_whatever_its_place() -> None:
    said = [
        c.text for c, _ in prose("- (last answer) [1a2b3c4d] It is so. Same. Same.\nSee e.g.  All of it.\n- (todo)")
    ]

    assert said == ["It is so.", "Same.", "Same.", "See e.g.  All of it."]


def test_blank_text_keeps_its_places() -> None:
    assert blanked("ab\ncd ef", [(1, 5), (6, 7)]) == "a \n   " + " f"
