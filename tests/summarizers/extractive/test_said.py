"""What persons and the model said: rules, messages, findings, concepts."""

from __future__ import annotations

import pytest

from core.facts.statements import units
from core.summarizers.extractive.findings import concepts, findings
from core.summarizers.extractive.items import Item
from tests.summarizers.build import answer, said, section, summary_of, talk


@pytest.mark.parametrize(
    "text",
    [
        "Never touch vendor/.",
        "The tenant is called blue-77 and the port is 4711.",
        "I prefer small commits.",
        "Please answer in Polish.",
        "Antworte bitte nur auf Deutsch.",
        "テストは必ず実行してください。",
        "FACT: Ada owns the schema.",
        "Show every time in Europe/Berlin.",
        "Grace Murray now owns the release.",
        "Later, clean the fixtures.",
    ],
)
def test_a_sentence_that_goes_on_to_hold_is_a_statement(text: str) -> None:
    assert units(text) == [text]


@pytest.mark.parametrize("text", ["Look at module 2.", "yes", "What does it do?", "The design is in draft.", "A. Only"])
def test_anything_else_is_none(text: str) -> None:
    assert units(text) == []


def test_of_a_long_line_only_the_sentences_that_matter_count() -> None:
    line = f"Never touch vendor/. {'This is how it came about. ' * 12}"

    assert units(line) == ["Never touch vendor/."]


def test_pasted_code_holds_no_statements_and_a_long_paste_only_the_first() -> None:
    assert units("```\nnever do this\n```") == []
    assert len(units("- never do that\n" * 100)) == 40


def test_a_message_that_is_all_rules_is_listed_once() -> None:
    text = summary_of(said("Begin."), said("- Never push.\n- Always test."), said("Look at the parser."), said("End."))

    assert text.count("Never push.") == 1
    assert section(text, "Other user messages") == ["- [11112222] Look at the parser."]


def test_a_message_that_comes_again_and_again_is_listed_once() -> None:
    text = summary_of(said("Begin."), *[said("go on") for _ in range(5)], said("End."))

    assert section(text, "Other user messages") == ["- [11112222] go on"]


def test_a_replaced_statement_is_gone_and_the_new_one_stands() -> None:
    messages = (said("Begin."), said("The tag is v-1."), said("The tag is now v-2."), said("End."))

    text = summary_of(*messages)

    assert "v-1" not in text
    assert section(text, "User constraints and stated facts") == ["- [11112222] The tag is now v-2."]


def test_a_long_message_is_cut_in_the_middle_and_says_so() -> None:
    long = "Look here. " + "words and words. " * 400 + "The very end."

    lines = section(summary_of(said("Begin."), said(long), said("End.")), "Other user messages")

    assert len(lines[0]) < 2_500
    assert "chars left out]" in lines[0]
    assert lines[0].endswith("The very end.")


def test_findings_are_the_sentences_with_a_cue_or_names_in_order_of_time() -> None:
    prose = talk(
        answer("Let me look at the parser. Root cause found: the cache in a.py is stale. Nice."),
        answer("```\nfixed = confirmed_by(x_value)\n```\nI tried pinning lib-9-1 and it did not help. Confirmed."),
        answer("The failing commit is 0a1b2c3d4e on topic-12."),
    )

    assert [i.text for i in findings(prose, [Item("Decision: old.")], frozenset())] == [
        "Decision: old.",
        "Root cause found: the cache in a.py is stale.",
        "I tried pinning lib-9-1 and it did not help.",
        "The failing commit is 0a1b2c3d4e on topic-12.",
    ]


def test_a_finding_that_is_repeated_is_kept_once() -> None:
    prose = talk(*[answer("Decision: we use arena-3 here.") for _ in range(4)])

    assert len(findings(prose, [], frozenset())) == 1


def test_concepts_are_the_terms_that_come_again() -> None:
    prose = talk(*[answer("We use `arena` with the Borrow Checker, and Once.") for _ in range(2)], answer("Only Now."))

    assert [i.text for i in concepts(prose, [Item("Tokio, Serde")])] == ["Tokio, Serde, Borrow Checker, Once, arena"]
    assert concepts(talk(), []) == []


def test_concepts_stay_on_a_short_line() -> None:
    prose = [answer(" ".join(f"`{'x' * 36}{n:02d}`" for n in range(9))) for _ in range(2)]

    (line,) = concepts(talk(*prose), [])
    assert len(line.text) <= 150
