"""The branch and the commit that a session is at."""

from __future__ import annotations

import pytest

from core.facts.git import branch_and_commit, is_commit
from tests.summarizers.build import done, talk


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("git status", "On branch feat/x\nnothing", ("feat/x", "")),
        ("git branch", "  dev\n* main\n", ("main", "")),
        ("git checkout -b new", "Switched to a new branch 'new'", ("new", "")),
        ("git commit -m x", "[main (root-commit) 1a2b3c4] x\n 1 file", ("main", "1a2b3c4")),
        ("git commit -m x && git commit -m y", "[main 1a2b3c4] x\n[main 5d6e7f8] y", ("main", "5d6e7f8")),
        ("git log", "* some commit\n1a2b3c4 x", ("", "")),
        ("cat notes", "On branch lies", ("", "")),
    ],
)
def test_the_last_that_git_named(command: str, output: str, expected: tuple[str, str]) -> None:
    assert branch_and_commit(talk(*done("Bash", output, command=command)).calls) == expected


def test_a_failed_command_says_nothing() -> None:
    calls = talk(*done("Bash", "On branch x", failed=True, command="git status")).calls

    assert branch_and_commit(calls) == ("", "")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git commit -m x", True),
        ("cd a && git -C . commit --amend", True),
        ("git -c user.name='A B' -c x.y=z --no-pager  commit -am x; ls", True),
        ('git -c "user.name=A B" commit', True),
        ("git --git-dir=/x/.git commit", True),
        ("git log --grep commit", False),
        ("git show | grep commit", False),
        ("git commit-graph write", False),
        ("mygit commit", False),
        ("git status", False),
    ],
)
def test_what_makes_a_commit(command: str, expected: bool) -> None:
    (call,) = talk(*done("Bash", "ok", command=command)).calls

    assert is_commit(call) is expected


def test_a_commit_that_failed_or_has_no_answer_is_none() -> None:
    (failed,) = talk(*done("Bash", "nothing to commit", failed=True, command="git commit -m x")).calls

    assert not is_commit(failed)
    failed.result = None
    assert not is_commit(failed)


def test_a_long_row_of_options_takes_no_time() -> None:
    (call,) = talk(*done("Bash", "ok", command="git " + "-c " * 20_000)).calls

    assert not is_commit(call)
