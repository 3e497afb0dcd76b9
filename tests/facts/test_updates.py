"""Which statements a later one replaces, and which stand beside each other."""

from __future__ import annotations

import pytest

from core.facts.updates import replaced, replacements


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(
            "The release is due on 2031-04-02.", "The release moved to May 9.", id="another-date-said-to-be-new"
        ),
        pytest.param(
            "Keep the hosting bill under $40.", "The hosting limit was raised to sixty dollars.", id="amounts-in-words"
        ),
        pytest.param("The upload limit is 20 files.", "The upload limit is 35 files.", id="only-a-plain-value-differs"),
        pytest.param("Ada Byron reviews the schema.", "Grace Murray now reviews the schema.", id="another-person"),
        pytest.param("We work on branch topic/parser.", "We switched to branch topic/printer.", id="another-branch"),
        pytest.param(
            "The queue is called inbox-7.", "The queue is now called inbox-9.", id="another-code-said-to-be-new"
        ),
        pytest.param("Log every date in UTC.", "Print clocks in Europe/Berlin.", id="one-time-zone"),
        pytest.param("Answer in German.", "Answer in French.", id="one-language"),
        pytest.param("Use tabs to indent.", "I would rather use spaces to indent.", id="rule-said-to-be-other"),
        pytest.param(
            "Give short replies with British spelling.", "Replies in American spelling.", id="quality-of-answers"
        ),
    ],
)
def test_a_statement_is_replaced_by(earlier: str, later: str) -> None:
    assert replaced([earlier, later], [0, 1]) == {0}


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param("Never call the x-1 endpoint.", "Never call the x-2 endpoint.", id="two-prohibitions"),
        pytest.param("The disk quota is 5 GB.", "The memory quota is 9 GB.", id="two-subjects"),
        pytest.param(
            "The api host is at port 80 in zone-1.", "The api host is at port 81 in zone-2.", id="two-values-differ"
        ),
        pytest.param("Answer in German.", "Keep answers short.", id="language-and-length"),
        pytest.param("Run the unit tests.", "Run the load tests.", id="no-value-no-change"),
        pytest.param("Later, rename it to a-1.", "Later, instead rename it to a-2.", id="tasks-for-later"),
        pytest.param("Log in UTC.", "Convert UTC to Europe/Berlin.", id="two-zones-in-one"),
        pytest.param("Only Python here.", "Only Docker here.", id="a-capital-makes-no-person"),
        pytest.param("", "The limit is now 5.", id="nothing-shared"),
    ],
)
def test_a_statement_stands_beside(earlier: str, later: str) -> None:
    assert replaced([earlier, later], [0, 1]) == set()


def test_the_closest_of_several_is_replaced() -> None:
    texts = [
        "The train budget is $10.",
        "The train ticket budget is $20.",
        "The train ticket budget was raised to $30.",
    ]

    assert replaced(texts, [0, 1, 2]) == {1}


def test_statements_of_one_message_do_not_replace_each_other() -> None:
    assert replaced(["The old port is 80.", "The port is now 81."], [3, 3]) == set()


def test_statements_of_an_earlier_summary_are_settled() -> None:
    assert replaced(["The port is 80.", "The port is 81."], [-2, -1]) == set()


def test_a_replacement_says_by_what() -> None:
    texts = ["Log every date in UTC.", "Keep it short.", "Print clocks in Europe/Berlin.", "Use Asia/Tokyo."]

    assert replacements(texts, [-2, -1, 0, 1]) == {0: 2, 2: 3}
