"""Putting named tool results into the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import IdNotFound
from core.service.history import output
from core.service.operation import Target
from core.service.persist import persist
from core.service.session import opened
from core.service.stages import StageSettings
from core.service.view import view
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import SessionFile, session_file

TEXT = "def parse(): ...\n" * 400
FIRST, SECOND = "toolu_11111111_0001", "toolu_11111111_0002"


@pytest.fixture
def file(tmp_path: Path) -> SessionFile:
    made = Transcript().prompt("Read both.").use("Read", TEXT).use("Read", TEXT + "2").use("Read", "short")
    return session_file(made.answer("Done.").write(tmp_path / f"{SESSION_ID}.jsonl"))


def test_the_named_results_give_way_and_no_others(file: SessionFile, tmp_path: Path) -> None:
    done = persist(file, [SECOND], Target(tmp_path / "locks"), StageSettings())

    with opened(session_file(Path(done.output)), whole=True) as session:
        shown = str(view(session).messages)
        assert output(session, SECOND).text == TEXT + "2"
    assert (done.how, done.changed, done.reason) == ("micro", True, "")
    assert shown.count("def parse") >= 400
    assert shown.count("def parse") < 800


def test_a_second_run_finds_it_done(file: SessionFile, tmp_path: Path) -> None:
    target = Target(tmp_path / "locks")
    done = persist(file, [FIRST, SECOND], target, StageSettings())
    again = persist(session_file(Path(done.output)), [FIRST], target, StageSettings())

    assert not again.changed
    assert "stored already" in again.reason


def test_a_short_result_stays(file: SessionFile, tmp_path: Path) -> None:
    assert persist(file, ["toolu_11111111_0003"], Target(tmp_path / "locks"), StageSettings()).how == "none"


@pytest.mark.parametrize("ident", ["", "toolu_1111", "toolu_gone", "x" * 1_000])
def test_a_name_that_is_none_or_several_is_refused(file: SessionFile, tmp_path: Path, ident: str) -> None:
    with pytest.raises(IdNotFound) as caught:
        persist(file, [ident], Target(tmp_path / "locks"), StageSettings())

    assert len(str(caught.value)) < 200
    assert caught.value.hint
