"""How calls ended: the line of a result that says why one failed."""

from __future__ import annotations

import pytest

from core.facts.outcomes import error_line, normal
from core.facts.scan import Call


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("test_it_is_refused PASSED [ 2%]\ntest_split FAILED [ 4%]\n>  x\nE   assert 3 == 4", "E assert 3 == 4"),
        ("a.py::test_not_found PASSED\na.py::test_b FAILED", "a.py::test_b FAILED"),
        ("test is refused ... ok\ntest is cut ... FAILED", "test is cut ... FAILED"),
        ("ok 1 - it cannot\nnot ok 2 - undefined", "not ok 2 - undefined"),
        ("✓ is denied\nwhat came last", "what came last"),
        ("    raise ValueError('x')\nValueError: x is none", "ValueError: x is none"),
        ("raise source.error(x)\nre.error: bad escape", "re.error: bad escape"),
        ("warning: cannot read\nerror[E0308]: mismatched types", "error[E0308]: mismatched types"),
        ("permission denied\ntwo", "permission denied"),
        ("Exit code 1\n\none\ntwo", "two"),
        ("", "no output"),
    ],
)
def test_the_line_that_says_why(result: str, line: str) -> None:
    assert error_line(Call(0, "Bash", {}, result=result, failed=True), 100) == line


def test_a_line_or_a_command_that_is_cut_says_how_much_of_all_of_it() -> None:
    call = Call(0, "Bash", {"command": "cd /srv && echo " + "x" * 5_000}, result="Error: " + "y" * 5_000, failed=True)

    assert error_line(call, 100) == "Error: " + "y" * 68 + " …[4932 chars left out]…"
    assert normal(call.command) == "echo " + "x" * 5_000
