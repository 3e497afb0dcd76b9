"""The names index: what counts as a name, which ones come first."""

from __future__ import annotations

import pytest

from core.facts.names import Names, names_in
from tests.summarizers.build import answer, call, result, said, section, summary_of, talk


@pytest.mark.parametrize(
    ("text", "paths", "symbols"),
    [
        pytest.param("/w/src/a.py:12: x", ["/w/src/a.py"], [], id="absolute"),
        pytest.param("see src/a.py, ./b.sh and notes.md.", ["src/a.py", "./b.sh", "notes.md"], [], id="relative"),
        pytest.param(r"C:\Users\me\a.ts-3-", [r"C:\Users\me\a.ts"], [], id="windows"),
        pytest.param("https://example.org/x?y=1)", ["https://example.org/x?y=1"], [], id="url"),
        pytest.param(
            "getItem MAX_SIZE load_page ReadFile", [], ["getItem", "MAX_SIZE", "load_page", "ReadFile"], id="symbols"
        ),
        pytest.param("------- __init__ ________ __x __init__x", [], ["__init__x"], id="no names"),
        pytest.param("--- a/s/x.py\n+++ b/s/x.py\n a/y.py", ["s/x.py", "s/x.py", "y.py"], [], id="diff"),
        pytest.param("diff --git a/a/x.py b/a/x.py", ["a/x.py", "a/x.py"], [], id="diff of a folder a"),
        pytest.param("in a/x.py", ["a/x.py"], [], id="no diff"),
        pytest.param("version 3.11, and so on. Word", [], [], id="none"),
    ],
)
def test_names_in_a_text(text: str, paths: list[str], symbols: list[str]) -> None:
    assert names_in(text) == (paths, symbols)


def test_names_of_calls_come_before_names_of_results_and_recent_before_old() -> None:
    conversation = talk(
        answer("", call("a", "Grep", pattern="oldName_x")),
        result("a", "seenName_x seenName_x"),
        answer("", call("b", "Grep", pattern="newName_x")),
        result("b", "lateName_x"),
    )

    assert conversation.names.ranked()[1] == ["newName_x", "oldName_x", "lateName_x", "seenName_x"]


def test_changed_files_lead_whatever_else_was_used() -> None:
    names = Names()
    for _ in range(50):
        names.add("often/used.py", 1.0, own=True)
    names.add_path("once/changed", 0.0, changed=True)

    assert names.ranked()[0] == ["once/changed", "often/used.py"]


def test_urls_and_numbered_ids_that_only_tools_printed_are_no_names() -> None:
    names = Names()
    names.add("https://example.org/a ch_90210 toolu_01Xg2b by_rule_1", 0.5, own=False)
    names.add("https://example.org/b ch_90223", 0.5, own=True)

    assert names.ranked() == (["https://example.org/b"], ["ch_90223", "by_rule_1"])
    assert names.size_chars() == len("https://example.org/b, ch_90223, by_rule_1, ") + 24


def test_the_index_holds_what_stands_nowhere_else() -> None:
    calls = [call(f"c{n}", "Grep", pattern=f"walkTree{n}", path="/w") for n in range(30)]

    text = summary_of(said("Look at /w/a.py."), answer("Looked.", *calls), result("c1", "x /w/src/b.py y"))

    index = section(text, "Names index")
    assert index[0] == "- paths: /w/src/b.py"
    assert index[1].startswith("- symbols: walkTree")
    assert text.count("/w/a.py") == 1


def test_the_index_of_an_earlier_summary_goes_on() -> None:
    first = summary_of(
        said("Go."),
        answer("", call("c", "Grep", pattern="walkTree leafNode sortedLeaf " * 20)),
        result("c", "x/y.py " * 30),
    )

    second = summary_of(said(first, kind="summary"), said("On."), answer("Yes."))

    assert (
        section(first, "Names index")
        == section(second, "Names index")
        == ["- paths: x/y.py", "- symbols: walkTree leafNode sortedLeaf"]
    )
