"""Notes of many sessions: only what is due is opened, one bad session ends no other, a cap ends the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from core.errors import ApiError, FailureKind
from core.memory.cadence import FREE, Cadence
from core.memory.extract import ByRule, Extracted
from core.memory.files import MemoryFiles
from core.memory.limits import MemoryLimits
from core.memory.part import Part
from core.service import memory
from core.service.memory import MemoryUpdate
from core.service.memory_refresh import ALL, Refreshed, Which, refresh
from core.testing import Transcript
from core.transcript.projects import SessionFile, session_file
from core.transcript.records import Record, Source

LIMITS = MemoryLimits(wait_s=0.0, cadence=Cadence(200, 200, 99, 1, 1))


class Costly(ByRule):
    """Rules under another name, which fail as they are told to."""

    name = "anthropic"

    def __init__(self, *kinds: FailureKind | None) -> None:
        self.kinds = [*kinds]
        self.calls = 0

    def extract(self, part: Part) -> Extracted:
        self.calls += 1
        kind = self.kinds.pop(0) if self.kinds else None
        if kind:
            raise ApiError(kind, "no")
        return super().extract(part)


@pytest.fixture
def sessions(tmp_path: Path) -> list[Path]:
    return [written(tmp_path, number) for number in range(3)]


def written(folder: Path, number: int, turns: int = 3) -> Path:
    made = Transcript(f"{number:08x}-0000-4000-8000-000000000000")
    for turn in range(turns):
        made.prompt(f"Step {turn}").use("Read", "line\n" * 400, file_path=f"/m{turn}.py").answer("Fine.")
    return made.write(folder / "p" / f"{made.session_id}.jsonl")


def run(
    paths: Sequence[Path],
    extractor: ByRule | None = None,
    which: Which = ALL,
    out_of_time: Callable[[], bool] = lambda: False,
    limits: MemoryLimits = LIMITS,
) -> list[Refreshed]:
    return [*refresh(map(session_file, paths), extractor or ByRule(), limits, which, out_of_time)]


def done(found: Refreshed) -> MemoryUpdate:
    assert isinstance(found.outcome, MemoryUpdate)
    return found.outcome


def test_the_second_run_opens_no_transcript_and_calls_nobody(
    sessions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(sessions)

    def never(file: SessionFile, *_args: object) -> None:
        raise AssertionError(file)

    monkeypatch.setattr(memory, "opened", never)
    assert [done(r).changed for r in first] == [True] * 3
    assert run(sessions) == []


def test_only_a_session_that_changed_is_updated(sessions: list[Path]) -> None:
    run(sessions)
    written(sessions[1].parent.parent, 1, turns=4)
    again = run(sessions)

    assert [done(r).messages for r in again] == [4]
    assert again[0].file.path == sessions[1]


def test_a_session_that_is_not_due_is_not_opened_again_by_whom_it_was_not_due_for(sessions: list[Path]) -> None:
    late = MemoryLimits(wait_s=0.0, cadence=Cadence(9_000, 9_000, 99, 9_000, 99))
    big = [written(sessions[0].parent.parent, 9, turns=10)]
    costly = Costly()

    assert run(big, costly, limits=MemoryLimits(cadence=Cadence(100_000, 1, 1, 1, 1))) == []
    assert not (big[0].with_suffix("") / "session-memory").exists()  # too small a file for a look
    assert run(big, costly, limits=late) == []
    assert MemoryFiles.beside(session_file(big[0])).state().waits_for == "anthropic"
    assert run(big, costly, limits=late) == []
    assert costly.calls == 0
    assert len(run(big, ByRule())) == 1


def test_a_look_is_taken_again_where_the_notes_are_gone(sessions: list[Path]) -> None:
    run(sessions)
    MemoryFiles.beside(session_file(sessions[0])).notes_path.unlink()

    assert [r.file.path for r in run(sessions)] == sessions[:1]
    assert MemoryFiles.beside(session_file(sessions[0])).notes_path.exists()


def test_sessions_are_chosen_by_when_they_were_written(sessions: list[Path]) -> None:
    for path, time in zip(sessions, (1_000, 2_000, 3_000), strict=True):
        os.utime(path, (time, time))

    assert [r.file.path for r in run(sessions, which=Which(before=2_500, since=1_500))] == [sessions[1]]


def test_a_session_that_another_process_works_on_is_left_to_it(sessions: list[Path]) -> None:
    with MemoryFiles.beside(session_file(sessions[1])).locked(0):
        assert [r.file.path for r in run(sessions)] == [sessions[0], sessions[2]]


def test_a_copy_that_foldmark_made_is_left_alone_until_somebody_goes_on_there(sessions: list[Path]) -> None:
    source = sessions[0]
    rows = source.read_bytes()
    copy = source.with_name("copy.jsonl")
    copy.write_bytes(
        Record(op="compact", id="1", session_id="copy", source=Source(str(source), "s", 1)).row(rows) + rows
    )
    assert run([copy]) == []

    with copy.open("ab") as file:
        file.write(b'{"type":"mode"}\n')
    assert [one.file.path for one in run([copy])] == [copy]


def test_what_is_wrong_with_one_session_ends_no_other(sessions: list[Path]) -> None:
    (sessions[0].with_suffix("")).mkdir()
    (sessions[0].with_suffix("") / "session-memory").symlink_to("/", target_is_directory=True)
    found = run(sessions, Costly("network"))

    assert [type(r.outcome).__name__ for r in found] == ["Damaged", "ApiError", "MemoryUpdate"]
    assert [r.is_cap for r in found] == [False] * 3


@pytest.mark.parametrize(("kind", "is_cap"), [("spend", True), ("deadline", True), ("auth", False)])
def test_a_cap_ends_the_run_and_the_next_one_goes_on(sessions: list[Path], kind: FailureKind, is_cap: bool) -> None:
    found = run(sessions, Costly(None, kind))

    assert [(isinstance(r.outcome, MemoryUpdate), r.is_cap) for r in found] == [(True, False), (False, is_cap)]
    assert [r.file.path for r in run(sessions, Costly())] == sessions[1:]


def test_no_session_is_begun_when_the_time_is_over(sessions: list[Path]) -> None:
    looks = iter([False, True])

    assert [r.file.path for r in run(sessions, out_of_time=lambda: next(looks))] == sessions[:1]


def test_a_session_that_goes_away_meanwhile_is_an_error_of_its_own(sessions: list[Path]) -> None:
    files = [session_file(path) for path in sessions]
    sessions[0].unlink()
    found = [*refresh(files, ByRule(), LIMITS)]

    assert [isinstance(r.outcome, MemoryUpdate) for r in found] == [False, True, True]


def test_what_is_no_session_of_the_client_is_an_error_only_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n' * 20_000, encoding="utf-8")

    named = [*refresh([session_file(path)], ByRule(), LIMITS)]
    assert [type(r.outcome).__name__ for r in named] == ["UnknownFormat"]
    assert [*refresh([session_file(path)], ByRule(), LIMITS, named=False)] == []


def test_without_a_cadence_of_its_own_the_extractors_counts(sessions: list[Path]) -> None:
    assert FREE.first_tokens == 12_000
    assert run(sessions, limits=MemoryLimits()) == []
