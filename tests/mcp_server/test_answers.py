"""What a caller reads of an error."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cli.errors
from core.errors import FoldmarkError
from mcp_server import answers

CORE = Path(answers.__file__).parents[1] / "core"
NAMED = re.compile(r"\{(\w+)\}")


def hints() -> Iterator[str]:
    """Every text that is written in the core; of one with values in it, the parts between."""
    for path in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_both_shells_have_a_word_for_every_way_and_for_no_other() -> None:
    named = {name for text in hints() for name in NAMED.findall(text)}

    assert set(answers.WORDS) == set(cli.errors.WORDS)
    assert set(answers.WORDS) <= named


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("name it by its id: {sessions} lists them", "It is gone. Name it by its id: list_sessions lists them"),
        ("{search} finds ids", "It is gone. search_session finds ids"),
        ("a smaller {keep} takes out more", "It is gone. A smaller keep_tokens takes out more"),
        ("take {this}", "It is gone. Take {this}"),
        ("", "It is gone"),
    ],
)
def test_a_hint_speaks_of_tools_and_is_a_sentence(hint: str, said: str) -> None:
    assert answers.explained(FoldmarkError("It is gone", hint)) == said


def test_a_fault_tells_nothing_of_what_was_worked_on(caplog: pytest.LogCaptureFixture) -> None:
    assert answers.explained(ValueError("the gate opens at nine")) == (
        "a fault in Foldmark (ValueError); nothing is known to be wrong with the call"
    )
    assert "the gate" not in caplog.text
    assert "a fault: ValueError" in caplog.text


def test_what_the_system_says_is_passed_on() -> None:
    assert answers.explained(FileNotFoundError(2, "No such file", "/srv/x")) == "No such file: /srv/x"
