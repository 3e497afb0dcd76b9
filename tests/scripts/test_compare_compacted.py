"""The comparison of compactions with the real client: what it calls a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.testing import Transcript
from scripts.compare_client import comparer
from scripts.compare_compacted import Outcome, compacted, copied, foldmark, main, resumed, undone
from tests.scripts.client import answers, shared_folder


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """One sample, long enough to be compacted."""
    folder = shared_folder(tmp_path / "shared")
    made = Transcript().prompt("Fix the parser").answer("Done. " * 3_000).prompt("And the lexer").answer("Done.")
    made.write(folder / "real" / "claude-1.jsonl")
    return folder


def run(shared: Path, *more: str) -> int:
    return main(["--shared", str(shared), "--clients", "new", "--jobs", "1", "--keep", "0", *more])


@pytest.mark.parametrize("more", [(), ("--in-place",)])
def test_what_is_as_promised_is_counted(
    shared: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    assert run(shared, *more) == 0
    assert capsys.readouterr().out == "1 transcripts: 1 written, 1 resumed, 0 not as promised\n"


def test_what_a_client_makes_of_a_result_is_a_fault_where_it_is_not_the_view(shared: Path, tmp_path: Path) -> None:
    outcome = compacted(shared / "real" / "claude-1.jsonl", tmp_path, ["--keep", "0"])

    for how, fault in (
        ("else", "new sends something else: "),
        ("again", "new compacts it again"),
        ("not", "new does not resume it: no such session"),
    ):
        answers(shared, how)
        assert [line[: len(fault)] for line in resumed(outcome, "new", shared, comparer(shared), False)] == [fault]


def test_a_fault_is_told_and_counted(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers(shared, "again")

    assert run(shared) == 1
    assert capsys.readouterr().out.splitlines() == [
        "real/claude-1.jsonl: new compacts it again",
        "1 transcripts: 1 written, 1 resumed, 1 not as promised",
    ]


def test_what_cannot_be_compacted_is_a_fault(shared: Path, tmp_path: Path) -> None:
    path = shared / "real" / "claude-1.jsonl"
    path.write_bytes(b"<html></html>")
    outcome = compacted(path, tmp_path, [])

    assert outcome.compacted is None
    assert outcome.faults[0].startswith("error: ")


def test_what_undo_does_not_give_back_is_a_fault(shared: Path, tmp_path: Path) -> None:
    file = copied(shared / "real" / "claude-1.jsonl", tmp_path)
    before = file.read_bytes()
    output = Path(foldmark(tmp_path, "compact", str(file), "--keep", "0")["output"])
    written = output.read_bytes()

    assert [*undone(file, output, before, written, tmp_path)] == []
    assert output.read_bytes() == written
    (output.parent / output.stem / "left").mkdir(parents=True)
    assert [*undone(file, output, b"something else", written, tmp_path)] == [
        "undo did not give the bytes back",
        "undo left something behind",
    ]


def test_nothing_compared_is_no_success(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shared, "--only", "nothing has this name") == 1
    assert capsys.readouterr().out == "0 transcripts: 0 written, 0 resumed, 0 not as promised\n"


def test_a_copy_has_what_is_stored_beside_it(shared: Path, tmp_path: Path) -> None:
    source = shared / "real" / "claude-1.jsonl"
    (source.with_suffix("") / "tool-results").mkdir(parents=True)
    (source.with_suffix("") / "tool-results" / "a.txt").write_text("x")

    copy = copied(source, tmp_path)
    assert copy.read_bytes() == source.read_bytes()
    assert (copy.with_suffix("") / "tool-results" / "a.txt").read_text() == "x"
    assert Outcome(source).faults == []
