"""A context that is full again as soon as it was compacted: found in the transcript, and what fills it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.service.session import opened
from core.testing import Transcript
from core.transcript.chain import load
from core.transcript.projects import session_file
from core.turn.thrash import Thrash, may_thrash, thrash

CASE = Path(__file__).parent.parent / "data" / "cases" / "thrash-1.jsonl"


def found(made: Transcript | Path, tmp_path: Path) -> Thrash | None:
    path = made if isinstance(made, Path) else made.write(tmp_path / "s.jsonl")
    log, chain = load(path)
    with log:
        return thrash(log, chain)


def filled(requests: int, compactions: int, trigger: str = "auto") -> Transcript:
    made = Transcript()
    for number in range(compactions):
        made.prompt(f"Look {number}.")
        for step in range(requests - 1):
            made.use("Read", "x" * 500, file_path=f"f{number}.{step}.py")
        made.answer("Fine.").boundary(f"Summary {number}.")
        next(r for r in reversed(made.rows) if r.get("subtype"))["compactMetadata"] = {"trigger": trigger}
    return made


def test_three_compactions_each_one_turn_apart_are_found(tmp_path: Path) -> None:
    loop = found(CASE, tmp_path)

    assert loop is not None
    assert loop.compactions == 3


def test_the_largest_since_the_last_one_is_the_attachment_not_a_tool_output(tmp_path: Path) -> None:
    loop = found(CASE, tmp_path)

    assert loop is not None
    name, chars = loop.largest[0]
    assert name == "the nested_memory attachment (/srv/app/.claude/rules/big.md)"
    assert 9_000 <= chars <= 9_100
    assert "9,0" in str(loop)
    assert name in str(loop)


def test_only_the_last_boundary_counts_for_the_view() -> None:
    with opened(session_file(CASE)) as session:
        texts = [str(b.get("text")) for m in session.messages for b in m.content]

    assert [n for n in range(3) if any(f"Summary {n}." in t for t in texts)] == [2]


@pytest.mark.parametrize(
    ("requests", "compactions", "more", "thrashes"),
    [(5, 3, 0, True), (6, 3, 0, False), (5, 2, 0, False), (5, 3, 5, True), (5, 3, 6, False), (1, 7, 1, True)],
)
def test_it_takes_three_in_a_row_and_none_of_them_worked(
    requests: int, compactions: int, more: int, thrashes: bool, tmp_path: Path
) -> None:
    made = filled(requests, compactions)
    for step in range(more):
        made.answer(f"Later {step}.")

    assert (found(made, tmp_path) is not None) is thrashes


def test_what_a_person_asked_for_is_no_thrash(tmp_path: Path) -> None:
    assert found(filled(2, 5, trigger="manual"), tmp_path) is None


def test_a_manual_compaction_ends_the_row(tmp_path: Path) -> None:
    made = filled(2, 4)
    boundaries = [r for r in made.rows if r.get("subtype") == "compact_boundary"]
    boundaries[1]["compactMetadata"] = {"trigger": "manual"}

    assert found(made, tmp_path) is None


def test_a_subagent_that_compacts_is_not_the_session(tmp_path: Path) -> None:
    made = filled(2, 3)
    for row in made.rows[:-1]:
        if row.get("subtype") == "compact_boundary":
            row["isSidechain"] = True

    assert found(made, tmp_path) is None


def test_results_are_named_by_their_calls(tmp_path: Path) -> None:
    made = filled(2, 3).prompt("Again.").use("Read", "y" * 5_000, file_path="/srv/app/big.py").use("Bash", "z" * 700)

    loop = found(made, tmp_path)

    assert loop is not None
    assert loop.largest[:2] == (("the result of Read (/srv/app/big.py)", 5_000), ("the result of Bash", 700))


def test_a_session_that_was_never_compacted_may_not_thrash(tmp_path: Path) -> None:
    log, chain = load(Transcript().prompt("Hi.").answer("Hello.").write(tmp_path / "s.jsonl"))
    with log:
        assert not may_thrash(chain)
        assert thrash(log, chain) is None


def test_right_behind_the_last_one_there_is_nothing_to_name(tmp_path: Path) -> None:
    loop = found(filled(2, 3), tmp_path)

    assert loop is not None
    assert loop.largest == ()
    assert "nothing yet" in str(loop)
