"""Files and folders whose names are not UTF-8: they are read, and nothing is made of them that could not name them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.compaction.full import Options
from core.errors import InputError
from core.memory.files import MemoryFiles
from core.service.compact import compact
from core.service.job import Choices, How
from core.service.operation import Target
from core.service.redact import redact_session
from core.service.session import opened
from core.service.snip import snip_proposals
from core.service.stages import NO_SETTINGS, StageSettings
from core.service.strip import strip
from core.stages.media import MediaSettings
from core.summarizers.extractive import Extractive
from core.testing import Transcript
from core.transcript.projects import SessionFile, session_file, transcripts
from core.turn.breaker import Breaker
from tests.disk import tree

ODD = os.fsdecode(b"w\xff")
LONG = "all the lines of a long output " * 4_000


@pytest.fixture(params=[f"d/{ODD}.jsonl", f"{ODD}/s.jsonl", f"{ODD}/subagents/agent-1.jsonl"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    made = Transcript().prompt("Begin.").call("Bash", command="make").result(LONG).answer("Done.").prompt("Go on.")
    return made.answer("All done.").write(tmp_path / "p" / request.param)


def target(path: Path, in_place: bool = False, dry_run: bool = False) -> Target:
    return Target(path.parents[1] / "locks", in_place=in_place, dry_run=dry_run)


def shortened(file: SessionFile, how: How = "micro", in_place: bool = False, dry_run: bool = False) -> object:
    choices = Choices(Options(0, 3_000), target(file.path, in_place, dry_run), settings=StageSettings(forced=True))
    return compact(file, Extractive(), replace(choices, how=how))


def proposed(file: SessionFile) -> object:
    with opened(file) as session:
        return snip_proposals(session, target(file.path), NO_SETTINGS)


@pytest.mark.parametrize(
    "do",
    [
        shortened,
        lambda file: shortened(file, in_place=True),
        lambda file: shortened(file, dry_run=True),
        lambda file: shortened(file, how="full"),
        proposed,
        redact_session,
        lambda file: strip(file, MediaSettings("all"), target(file.path), NO_SETTINGS),
    ],
    ids=["micro", "in place", "dry run", "full", "proposals", "redact", "strip"],
)
def test_nothing_is_made_of_it_and_the_name_is_said(path: Path, do: Callable[[SessionFile], object]) -> None:
    before = tree(path.parents[1])

    with pytest.raises(InputError, match=r"w\\xff.* is not UTF-8") as caught:
        do(session_file(path))
    assert caught.value.hint
    assert tree(path.parents[1]) == before


def test_nothing_is_written_to_such_a_folder(tmp_path: Path) -> None:
    source = Transcript().prompt("Begin.").answer("Done.").write(tmp_path / "s.jsonl")
    choices = Choices(Options(0, 3_000), Target(tmp_path / "locks", out_dir=tmp_path / ODD))

    with pytest.raises(InputError, match="is not UTF-8"):
        compact(session_file(source), Extractive(), choices)
    assert [*tree(tmp_path)] == [source.name]


def test_its_ids_are_text_and_it_is_read(path: Path) -> None:
    (listed,) = transcripts(path.parent)
    for file in (listed, session_file(path)):
        assert (file.id + file.parent).encode().isascii()
        assert r"w\xff" in file.id + file.parent or path.parent.name == ODD
    with opened(session_file(path)) as session:
        assert session.ref.title == "Begin."
    notes = MemoryFiles.beside(session_file(path))
    assert notes.read().notes.session == session_file(path).id


def test_failures_on_it_are_counted(path: Path, tmp_path: Path) -> None:
    Breaker(tmp_path / "failures", str(path)).failed("x")

    assert Breaker(tmp_path / "failures", str(path)).reasons == ["x"]
    assert Breaker(tmp_path / "failures", str(path.with_name("other"))).reasons == []
