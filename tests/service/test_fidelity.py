"""A summary is verified on its way into a session: mended, written anew once, or given up for another one's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from core.compaction.claims import NOT_FOUND, NOT_RUN
from core.compaction.full import Options
from core.errors import ApiError, SummaryRejected
from core.model import block_text
from core.service.compact import compact
from core.service.job import Choices, CompactResult
from core.service.operation import Target
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.summarizers.extractive.sections import LEDGER
from core.summarizers.fallback import Fallback
from core.summarizers.repair import Fault, Repair
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import messages, rows

RULE = "Never change the table orders without asking me."
WRONG = "## Current work\nThe importer is in src/imports/fast_lane.py now. All tests pass.\n\n## Next step\nGo on."


class Scripted:
    """A summariser that says what it was told to, and mends it so, too; it remembers what it was asked to mend."""

    name = "scripted"

    def __init__(self, text: str, mends: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.mends = mends
        self.repairs: list[Sequence[Fault]] = []

    def summarize(self, request: SummaryRequest) -> Summary:
        return Summary(self.text, self.name)

    def repair(self, text: str, faults: Sequence[Fault], evidence: str) -> Repair:
        self.repairs.append(faults)
        if self.mends is None:
            raise ApiError("overloaded", "later")
        return Repair(self.mends)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    made = Transcript(cwd=str(tmp_path / "app")).prompt(f"Make the importer in src/importer.py faster. {RULE}")
    for n in range(6):
        made.use("Read", f"row = {n}\n" * 200, file_path=f"src/part{n}.py")
    made.use("Bash", "6 passed", command="pytest -q")
    made.use("Edit", "ok", file_path="src/importer.py", old_string="a", new_string="b").answer("`bulk_insert` is in.")
    made.prompt("Now measure it.").answer("It takes 4 s.")
    return made.write(tmp_path / "projects" / "-srv-app" / f"{made.session_id}.jsonl")


def done(path: Path, summarizer: Summarizer) -> tuple[CompactResult, str]:
    result = compact(session_file(path), summarizer, Choices(Options(0, 3_000), Target(path.parent / "locks")))
    summary = next(m for m in messages(Path(result.output)) if m.kind == "summary")
    return result, "\n".join(map(block_text, summary.content))


def test_what_is_wrong_is_marked_and_what_is_missing_appended(session: Path) -> None:
    result, text = done(session, Scripted(WRONG))

    assert result.fidelity is not None
    assert result.fidelity.unverifiable == ["path: src/imports/fast_lane.py"]
    assert result.fidelity.contradicted == ["tests: All tests pass."]
    assert any(RULE in line for line in result.fidelity.missing)
    assert result.fidelity.precision < 1
    assert result.fidelity.recall < 1
    assert result.fidelity.repaired
    assert result.fidelity.ledger_tokens > 0
    assert f"fast_lane.py {NOT_FOUND} now. All tests pass. {NOT_RUN}" in text
    assert RULE in text.partition(f"## {LEDGER}")[2]


def test_whoever_wrote_it_mends_it_once(session: Path) -> None:
    scripted = Scripted(WRONG, {"Current work": "The importer in src/importer.py uses `bulk_insert`."})

    result, text = done(session, scripted)

    assert [[f.text for f in faults] for faults in scripted.repairs] == [
        ["src/imports/fast_lane.py", "All tests pass."]
    ]
    assert result.fidelity is not None
    assert result.fidelity.contradicted == result.fidelity.unverifiable == []
    assert "fast_lane" not in text


def test_a_repair_that_fails_leaves_the_marks(session: Path) -> None:
    text = done(session, Fallback(Scripted(WRONG), Extractive()))[1]

    assert f"fast_lane.py {NOT_FOUND}" in text


def test_another_summary_takes_over_for_one_that_is_none(session: Path) -> None:
    result, text = done(session, Fallback(Scripted("So: <invoke name='Bash'>"), Extractive()))

    assert result.summarizer == "extractive"
    assert "the summary of scripted holds a call of a tool" in result.warnings[0]
    assert RULE in text
    assert result.fidelity is not None
    assert (result.fidelity.precision, result.fidelity.recall) == (1, 1)


def test_one_that_is_no_shorter_than_what_it_stands_for_gives_way_too(session: Path) -> None:
    long = "word " * 590
    path = Transcript().prompt("Hi there.").answer("word " * 400).prompt("More.").answer("Yes.")
    small = path.write(session.parent / "small.jsonl")

    result = compact(
        session_file(small),
        Fallback(Scripted(long), Extractive()),
        Choices(Options(0, 3_000), Target(session.parent / "locks")),
    )

    assert result.summarizer == "extractive"
    assert "no less than" in result.warnings[0]


def test_without_another_one_it_is_an_error_and_nothing_is_written(session: Path) -> None:
    before = sorted(session.parent.rglob("*"))

    with pytest.raises(SummaryRejected, match="holds a call of a tool"):
        done(session, Scripted("So: <invoke name='Bash'>"))
    assert sorted(session.parent.rglob("*")) == before


def test_files_of_the_project_need_not_be_in_the_transcript(session: Path, tmp_path: Path) -> None:
    (tmp_path / "app" / "docs").mkdir(parents=True)
    (tmp_path / "app" / "docs" / "notes.md").write_text("x", encoding="utf-8")
    (tmp_path / "other.md").write_text("x", encoding="utf-8")

    result, _ = done(session, Scripted(f"See docs/notes.md and {tmp_path}/other.md."))

    assert result.fidelity is not None
    assert result.fidelity.unverifiable == [f"path: {tmp_path}/other.md"]


def test_the_offline_summary_of_a_session_is_written_as_it_is(session: Path) -> None:
    result, text = done(session, Extractive())

    assert LEDGER not in text
    assert result.fidelity is not None
    assert result.fidelity.to_json() == {
        "precision": 1, "recall": 1, "missing": [], "unverifiable": [], "contradicted": [], "repaired": False,
        "ledger_tokens": 0,
    }  # fmt: skip
    assert rows(Path(result.output))
