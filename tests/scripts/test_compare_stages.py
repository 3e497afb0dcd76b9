"""The comparison of stages with the real client: each has something to do, and what it calls a fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.context.decisions import Replaced
from core.model import JSON
from core.service.stages import StageRun
from core.stages.base import Plan
from core.testing import Transcript
from scripts import compare_stages
from scripts.compare_stages import STAGES, main, staged
from tests.scripts.client import answers, shared_folder
from tests.shared import SHARED, needs_client
from tests.stages.build import image


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = shared_folder(tmp_path / "shared")
    session().write(folder / "real" / "claude-1.jsonl")
    return folder


def session() -> Transcript:
    """One in which every stage has something to do."""
    made = Transcript().prompt("Read it all")
    picture: list[JSON] = [image()]
    made.use("Read", picture, file_path="/srv/app/a.png")
    for n in range(24):
        made.use("Read", "def step(value): return value\n" * 200, file_path=f"/srv/app/{n // 2}.py")
        made.use("Bash", f"line {n}\n" * 500, command="make").answer("The parser hands it on in parts. " * 60)
        made.prompt(f"Step {n}, please")
    return made.answer("Done.").prompt("Thanks").answer("You are welcome.")


@pytest.mark.parametrize(("stage", "in_place"), [*((stage, False) for stage in STAGES), ("micro", True)])
def test_each_stage_does_something_that_holds_all_promises(
    shared: Path, tmp_path: Path, stage: str, in_place: bool
) -> None:
    outcome = staged(shared / "real" / "claude-1.jsonl", tmp_path, stage, in_place)

    assert (outcome.faults, outcome.known, outcome.how) == ([], [], stage)
    assert outcome.compacted is not None


def test_where_a_stage_has_nothing_to_do_that_is_said(shared: Path, tmp_path: Path) -> None:
    path = Transcript().prompt("Hi").answer("Hello.").write(tmp_path / "a.jsonl")

    outcomes = [staged(path, tmp_path, stage, in_place=False) for stage in STAGES]
    assert {known for o in outcomes for known in o.known} == {
        "nothing to do: nothing is to be done",
        "nothing to do: there are no images or documents",
        "nothing to do: no range may go",
        "nothing to do: too little to clear: 0 tokens",
        "nothing to do: nothing is old enough, or there is room enough",
    }
    assert not any(o.faults or o.compacted for o in outcomes)


def test_what_a_stage_does_again_is_a_fault_and_so_is_what_cannot_be_read(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(session().calls)
    again: Callable[[StageRun], Plan] = lambda _: Plan("x", (Replaced(next(calls), "[gone]", "cleared"),))  # noqa: E731
    monkeypatch.setattr(compare_stages, "STAGES", {"again": again})

    assert (
        "a second run changed something" in staged(shared / "real" / "claude-1.jsonl", tmp_path, "again", False).faults
    )
    (tmp_path / "none.jsonl").write_bytes(b"<html></html>")
    (fault,) = staged(tmp_path / "none.jsonl", tmp_path, "again", False).faults
    assert fault.startswith("error: ")


def test_the_results_are_put_before_the_client(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--shared", str(shared), "--clients", "new", "--jobs", "1", "--stages", "budget", "media"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "2 transcripts: 2 written, 2 resumed, 0 not as promised\n"

    answers(shared, "else")
    assert main(arguments) == 1
    assert "real/claude-1.jsonl media: new sends something else" in capsys.readouterr().out


@pytest.mark.client
def test_the_client_sends_what_a_stage_foresaw(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_client("new", monkeypatch)
    chosen = ["--only", "claude-2.1.29-image", "--stages", "snip", "micro", "collapse"]

    assert main(["--shared", str(SHARED), "--clients", "new", *chosen]) == 0
