"""What a session's reader is told about compactions that do not help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import run
from core.compaction.full import Options
from core.errors import ApiError, SummaryRejected, WriteFailed
from core.service.automatic import Guards, warnings_of
from core.service.compact import CompactResult, compact
from core.service.context import context_report
from core.service.job import Choices
from core.service.operation import Target
from core.service.session import opened
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.testing import ScriptedApi, Transcript
from core.testing.answers import prompt_too_long
from core.transcript.projects import session_file

CASES = Path(__file__).parent.parent / "data" / "cases"
ATTACHMENT = "the nested_memory attachment (/srv/app/.claude/rules/big.md)"


def test_the_report_of_a_context_warns_of_thrash_and_names_what_fills_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = CASES / "thrash-1.jsonl"
    with opened(session_file(path)) as session:
        report = context_report(session)

    assert len(report.warnings) == 1
    assert ATTACHMENT in report.warnings[0]
    assert run(["context", str(path)]) == 0
    assert f"warning: {report.warnings[0]}" in capsys.readouterr().out


def test_a_session_in_order_gets_no_warning(tmp_path: Path) -> None:
    with opened(session_file(Transcript().prompt("Hi.").answer("Hello.").write(tmp_path / "s.jsonl"))) as session:
        assert context_report(session).warnings == []


def test_another_clients_session_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}')
    with opened(session_file(path)) as session:
        assert warnings_of(session) == ()


def test_of_a_large_file_the_compactions_before_the_last_one_are_looked_for(tmp_path: Path) -> None:
    made = Transcript().prompt("A long beginning.").use("Read", "x" * (6 << 20), file_path="big.py").answer("Read.")
    for number in range(3):
        made.boundary(f"Summary {number}.").prompt(f"On {number}.").answer("Yes.")
    made.boundary("The last.").prompt("And?").answer("So.")
    with opened(session_file(made.write(tmp_path / "s.jsonl"))) as session:
        assert session.claude is not None
        assert not session.claude.log.whole
        assert "full 4 times" in warnings_of(session)[0]


class Failing:
    """A summariser that gives nothing."""

    name = "failing"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or SummaryRejected("the summary is empty")
        self.asked = 0

    def summarize(self, request: SummaryRequest) -> Summary:
        self.asked += 1
        raise self.error


def compacted(path: Path, summarizer: Summarizer, automatic: bool = True, dry_run: bool = False) -> CompactResult:
    state = path.parent / "state"
    guards = Guards(100 if automatic else None, failures_dir=state / "failures")
    target = Target(state / "locks", dry_run=dry_run)
    return compact(session_file(path), summarizer, Choices(Options(1_000, 9_000), target, guards=guards))


def long(tmp_path: Path) -> Path:
    made = Transcript()
    for number in range(30):
        made.prompt(f"Request {number}: " + "word " * 200).answer(f"Answer {number}.")
    return made.write(tmp_path / "s.jsonl")


def test_after_three_failures_automatic_compaction_stops_until_one_by_hand_succeeds(tmp_path: Path) -> None:
    path, failing = long(tmp_path), Failing()
    before = path.read_bytes()
    for _ in range(3):
        with pytest.raises(SummaryRejected, match="the summary is empty"):
            compacted(path, failing)
    assert path.read_bytes() == before
    assert [*tmp_path.glob("*.jsonl")] == [path]

    stopped = compacted(path, Extractive())
    assert (stopped.how, stopped.changed) == ("none", False)
    assert stopped.reason == "automatic compaction failed 3 times in a row, at last: the summary is empty"
    assert failing.asked == 3

    assert compacted(path, Extractive(), automatic=False).changed
    assert "failed" not in compacted(path, Extractive()).reason


def test_a_success_in_between_begins_the_count_anew(tmp_path: Path) -> None:
    path = long(tmp_path)
    for _ in range(2):
        with pytest.raises(SummaryRejected):
            compacted(path, Failing())
    first = compacted(path, Extractive())
    Path(first.output).unlink()
    for _ in range(2):
        with pytest.raises(SummaryRejected):
            compacted(path, Failing())

    assert compacted(path, Extractive()).changed


def test_the_failures_of_runs_by_hand_count_too_those_of_nobodys_fault_do_not(tmp_path: Path) -> None:
    path = long(tmp_path)
    errors: list[Exception] = [ApiError("cancelled", "not wanted"), WriteFailed("no room")]
    for error in errors * 2:
        with pytest.raises(type(error)):
            compacted(path, Failing(error), automatic=False)
    for _ in range(3):
        with pytest.raises(ApiError):
            compacted(path, Failing(ApiError("overloaded", "later")), automatic=False)

    assert "failed 3 times" in compacted(path, Extractive()).reason


def test_a_dry_run_counts_nothing(tmp_path: Path) -> None:
    path = long(tmp_path)
    for _ in range(3):
        with pytest.raises(SummaryRejected):
            compacted(path, Failing(), dry_run=True)

    assert not (tmp_path / "state" / "failures").exists()


def thrashing(tmp_path: Path) -> Path:
    made = Transcript()
    for number in range(3):
        made.prompt(f"Look {number}.").use("Read", "x" * 9_000, file_path="big.py").answer("So.").boundary("What was.")
    for number in range(4):
        made.prompt(f"Request {number}: " + "word " * 900).answer(f"Answer {number}.")
    return made.write(tmp_path / "s.jsonl")


def test_a_session_that_thrashes_is_left_alone_automatically_and_the_cause_is_named(tmp_path: Path) -> None:
    result = compacted(thrashing(tmp_path), Extractive())

    assert not result.changed
    assert "full 3 times" in result.reason
    assert "a prompt (4," in result.reason


def test_by_hand_it_is_compacted_all_the_same_and_warned_of(tmp_path: Path) -> None:
    result = compacted(thrashing(tmp_path), Extractive(), automatic=False)

    assert result.changed
    assert "automatic compaction does not help" in result.warnings[-1]


def test_the_command_counts_in_the_folder_of_its_state(
    tmp_path: Path, scratch_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compact", str(thrashing(tmp_path)), "--if-over", "100", "--json"]) == 0

    assert "full 3 times" in json.loads(capsys.readouterr().out)["reason"]


def test_when_every_try_fails_the_command_says_so_once_and_counts_it(
    tmp_path: Path, scratch_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "compactfail-1.jsonl"
    path.write_bytes((CASES / path.name).read_bytes())
    before = path.read_bytes()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    with ScriptedApi(lambda _request: prompt_too_long(40_000, 20_000)) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        command = ["compact", str(path), "--how", "full", "--keep", "0", "--summarizer", "anthropic", "--no-fallback"]
        assert run(command) == 1

    assert len(capsys.readouterr().err.splitlines()) == 2  # the error and what to do
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.glob("*.jsonl")] == [path.name]
    (counter,) = (scratch_home / ".local" / "state" / "foldmark" / "failures").iterdir()
    assert len(counter.read_bytes().splitlines()) == 1
