"""What each stage would free, and that looking changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from core.compaction.full import Options
from core.compaction.restore import RestoreLimits
from core.service.context import StageOutlook
from core.service.job import Choices
from core.service.operation import Target
from core.service.outlook import outlook
from core.service.session import opened
from core.service.stages import StageSettings
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import tree


def looked(path: Path) -> dict[str, StageOutlook]:
    options = Options(500, 3_000, restore=RestoreLimits(files=0))
    choices = Choices(options, Target(path.parent), settings=StageSettings(now=datetime(2026, 1, 6, tzinfo=UTC)))
    with opened(session_file(path)) as session:
        return {each.stage: each for each in outlook(session, choices)}


def test_each_stage_says_what_it_would_free_and_nothing_is_written(tmp_path: Path) -> None:
    made = Transcript().prompt("Fix the parser.")
    made.use("Bash", "line of a log\n" * 6_000, command="make")
    for _ in range(2):
        made.use("Read", "1\tdef parse():\n" * 900, file_path="/nowhere/app/p.py")
    path = made.answer("Fixed. " * 50).prompt("And now?").answer("Done.").write(tmp_path / "p" / "s.jsonl")
    before = tree(tmp_path)
    found = looked(path)

    assert [*found] == ["budget", "read-dedup", "snip", "microcompact", "collapse", "full"]
    assert found["budget"].tokens_freed > 10_000
    assert found["read-dedup"].tokens_freed > 1_000
    assert found["full"].tokens_freed > 10_000
    assert found["collapse"].tokens_freed == 0
    assert found["collapse"].reason
    assert tree(tmp_path) == before


def test_where_there_is_nothing_each_says_why(tmp_path: Path) -> None:
    found = looked(Transcript().prompt("Hello").answer("Yes.").write(tmp_path / "p" / "s.jsonl"))

    assert {each.tokens_freed for each in found.values()} == {0}
    assert found["full"].reason
