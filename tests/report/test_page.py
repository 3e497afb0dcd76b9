"""The page: complete in itself, readable without a script, safe to open."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.report.data import Fidelity, NameCoverage, PartLine, PlaceCount, Report, Said, Side
from core.report.page import render
from core.report.words import change, dollars, share

HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror='alert(2)'> \"quoted\" & $title ${body} {0}"
VOID = {"meta", "br", "img", "link", "input"}


def side(**fields: Any) -> Side:
    given: dict[str, Any] = {
        "id": "before-id", "path": "/p", "format": "claude-code", "title": "A title", "model": "m", "messages": 10,
        "tokens": 1000, "by_kind": {"results": 600, "system": 400}, "window_tokens": 2000,
        "auto_threshold_tokens": 1800, "next_request_usd": {"warm": 0.0125, "cold": 1.5},
    }  # fmt: skip
    return Side(**{**given, **fields})


def worth(**found: list[str]) -> Fidelity:
    given: dict[str, Any] = {"missing": [], "unverifiable": [], "contradicted": [], **found}
    wrong = sum(map(len, found.values()))
    return Fidelity(precision=1 - 0.005 * wrong, recall=1.0, repaired=False, ledger_tokens=0, **given)


def made(hostile: str = "text", **fields: Any) -> Report:
    given: dict[str, Any] = {
        "before": side(title=hostile, id=hostile, model=hostile, by_kind={"results": 500, hostile: 100, "system": 400}),
        "after": side(id=hostile, tokens=500, by_kind={"system": 400, "summary": 100}),
        "places": {p: PlaceCount(messages=n, tokens=n) for n, p in enumerate(("kept", "changed", "stored", "gone"))},
        "largest": [PartLine(id=hostile, kind=hostile, tool=hostile, tokens=9, tokens_after=1, place="changed")],
        "requests": [Said(id=hostile, text=hostile, standing="verbatim"), Said(id="x", text="y", standing="gone")],
        "constraints": [Said(id=hostile, text=hostile, standing="in part")],
        "names": NameCoverage(paths=2, paths_named=1, symbols=10, symbols_named=9, missing=[hostile]),
        "reachable": [hostile],
        "gone": [hostile],
        "warnings": [hostile],
        "fidelity": worth(missing=[hostile], unverifiable=[hostile], contradicted=[hostile]),
    }
    return Report(**{**given, **fields})


class Seen(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_needs_nothing_else() -> None:
    seen = Seen(render(made()))

    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in seen.attributes}
    assert "default-src 'none'" in dict(seen.attributes)["content"] or "default-src 'none'" in str(seen.attributes)
    assert "url(" not in render(made())
    assert "@import" not in render(made())


def test_a_page_follows_light_and_dark_and_narrow_screens() -> None:
    page = render(made())

    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert "max-width: 36rem" in page


def test_tables_are_tables_and_bars_are_said_in_words() -> None:
    page = render(made())
    seen = Seen(page)

    assert seen.tags.count("table") == 7
    assert {v for n, v in seen.attributes if n == "scope"} == {"col", "row"}
    bars = [v for n, v in seen.attributes if n == "aria-label"]
    assert bars[1] == ("after: 500 tokens: system prompt, tools, memory files 400, summaries 100")
    assert 'lang="en"' in page


def test_what_a_transcript_says_is_text() -> None:
    page = render(made(HOSTILE))
    seen = Seen(page)

    assert seen.open == []
    assert "script" not in seen.tags
    assert "img" not in seen.tags
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert seen.text.count(HOSTILE) >= 10
    assert seen.tags == Seen(render(made())).tags


@given(st.text("<>&\"'$/{}=ab \n-!`\x00\u202e", min_size=1, max_size=40))
def test_no_text_makes_an_element(said: str) -> None:
    assert Seen(render(made(said))).tags == Seen(render(made())).tags


def test_what_stands_least_well_is_shown_first_and_the_rest_counted() -> None:
    said = [Said(id="u", text=f"said {n}", standing="verbatim") for n in range(60)]
    said.append(Said(id="u", text="lost words", standing="gone"))

    page = render(made(requests=said))

    assert page.index("lost words") < page.index("said 0<")
    assert "60 of 61 stand word for word in the context; 40 are shown, those that do not first" in page
    assert "said 50<" not in page


def test_long_lists_of_ids_are_cut() -> None:
    page = render(made(reachable=[f"id{n}" for n in range(500)]))

    assert "500 ids can be read on demand" in page
    assert "and 100 more" in page


def test_what_is_no_before_and_after_is_said_on_top() -> None:
    assert '<p class="bad">both hold &lt;the same&gt;</p>\n<dl' in render(made(warnings=["both hold <the same>"]))
    assert '<p class="bad">' not in render(made(warnings=[]))


def test_what_there_is_not_is_left_out() -> None:
    none = NameCoverage(paths=0, paths_named=0, symbols=0, symbols_named=0, missing=[])
    nothing = {p: PlaceCount(messages=0, tokens=0) for p in ("kept", "changed", "stored", "gone")}
    empty = side(tokens=0, by_kind={}, messages=0, title="", next_request_usd={"warm": None, "cold": None})

    page = render(
        made(
            before=empty,
            after=empty,
            largest=[],
            requests=[],
            constraints=[],
            names=none,
            reachable=[],
            gone=[],
            places=nothing,
        )
    )

    assert "<h1>before-id</h1>" in page
    assert "none gone" in page
    assert "- → -" in page
    for heading in ("The largest parts", "What you asked for", "What goes on to hold", "Names", "Ids"):
        assert f"<h2>{heading}" not in page


def test_names_that_are_all_there_need_no_list() -> None:
    page = render(made(names=NameCoverage(paths=1, paths_named=1, symbols=0, symbols_named=0, missing=[])))

    assert "Not named any more" not in page


def test_ids_are_shown_as_far_as_commands_need_them() -> None:
    ident = "00000000-0000-4000-8000-000000000001"
    line = PartLine(id=ident, kind="prompt", tool="", tokens=9, tokens_after=1, place="kept")

    assert f'title="{ident}">00000000</code>' in render(made(largest=[line]))


@pytest.mark.parametrize(
    ("before", "after", "said"), [(100, 29, "−71%"), (100, 104, "+4%"), (100, 100, "0%"), (0, 5, "new"), (0, 0, "0%")]
)
def test_a_change_is_said_in_per_cent(before: int, after: int, said: str) -> None:
    assert change(before, after) == said


def test_shares_and_prices_are_said_shortly() -> None:
    assert (share(1, 4), share(1, 0)) == ("25%", "-")
    assert (dollars(2.5112), dollars(0.0588), dollars(None)) == ("$2.51", "$0.059", "-")


def test_bars_are_never_longer_than_the_whole() -> None:
    page = render(made())
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%", page)]

    assert sum(widths[:3]) == pytest.approx(100)
    assert sum(widths[3:]) == pytest.approx(50)


def test_what_the_summary_is_worth_is_said() -> None:
    seen = Seen(render(made(fidelity=worth(missing=["constraint: no tabs"], contradicted=["tests: all pass"]))))

    assert "99% of its names, figures and quotations hold, 100% of what must be known is said" in seen.text
    assert seen.text.index("tests: all pass") < seen.text.index("constraint: no tabs")
    assert "<h2>The summary</h2>" not in render(made(fidelity=None))
    assert "<table" not in render(made(fidelity=worth())).partition("The summary</h2>")[2].partition("<h2>")[0]
    assert "; 40 of 50 faults are shown" in render(made(fidelity=worth(missing=[f"file: {n}" for n in range(50)])))
