"""One compaction: what it needs, what it writes, what it leaves when it fails."""

from __future__ import annotations

import errno
import json
import os
import stat
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from core.compaction.full import Options
from core.compaction.hooks import About, Answer, NoHooks
from core.context.tokens.models import lookup
from core.context.tokens.words import tokens
from core.errors import Changed, Damaged, InputError, SummaryRejected, UnknownFormat, WriteFailed, WrongFormat
from core.model import tool_uses
from core.service.automatic import Guards
from core.service.by_summary import NOTHING_KEPT
from core.service.compact import CompactResult, compact
from core.service.history import output, search
from core.service.job import Choices
from core.service.operation import Target
from core.service.session import opened, size_of
from core.service.undo import undo
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.summarizers.extractive.sections import split_ledger
from core.testing import SESSION_ID, Transcript
from core.transcript.backwards import WHOLE_BYTES
from core.transcript.listing import describe
from core.transcript.projects import session_file
from core.transcript.store import Store
from core.transcript.writer import write_new
from tests.disk import compacted, messages, rows, tree
from tests.faults import outcomes

DATA = Path(__file__).parents[1] / "data"
CASES = DATA / "cases"


def long_session(turns: int = 12) -> Transcript:
    made = Transcript().beside("permission-mode", permissionMode="acceptEdits")
    for turn in range(turns):
        made.prompt(f"Prompt {turn}: look at part {turn}. " * 10)
        made.use("Read", f"line of part {turn}\n" * 100, file_path=f"part{turn}.py").answer(f"Part {turn} is fine.")
    return made


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session in a project folder."""
    return long_session().write(tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")


def case(name: str) -> Transcript:
    """The rows of a case, without its usage figures, which are all the same."""
    made = Transcript()
    made.rows = [json.loads(line) for line in (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in made.rows:
        if isinstance(message := row.get("message"), dict):
            message.pop("usage", None)
    return made


def test_the_result_says_what_was_done(session: Path) -> None:
    before = messages(session)
    result = compacted(session, 1_000)

    assert result.changed
    assert (result.how, result.summarizer, result.reason) == ("full", "extractive", "")
    assert result.session.id == SESSION_ID
    assert result.session.format == "claude-code"
    assert Path(result.output) == session.parent / f"{result.output_id}.jsonl"
    assert [(s.stage, s.tokens_freed) for s in result.stages] == [("full", result.tokens_before - result.tokens_after)]
    assert (result.loss.kept + result.loss.reachable, result.loss.gone) == (len(before), 0)
    assert result.tokens_after < result.tokens_before


def test_every_choice_makes_a_session_of_its_own(session: Path) -> None:
    def planned(options: Options) -> str:
        target = Target(session.parent / "locks", dry_run=True)
        return compact(session_file(session), Extractive(), Choices(options, target)).output_id

    plain = Options(500, 3_000)
    limits = plain.restore
    choices = [
        plain,
        replace(plain, keep_tokens=400),
        replace(plain, summary_chars=2_000),
        replace(plain, instructions="x"),
    ]
    changed = replace(limits, files=9), replace(limits, file_tokens=9), replace(limits, total_tokens=9)
    choices += [replace(plain, restore=new) for new in changed]
    assert len({planned(options) for options in choices}) == len(choices)
    assert planned(plain) == planned(plain)


def test_the_new_files_are_for_their_owner_only(session: Path) -> None:
    result = compacted(session)
    made = [path for path in session.parent.rglob("*") if path != session]

    assert Path(result.output) in made
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}


def test_the_summary_says_where_all_of_it_can_be_read(session: Path) -> None:
    result = compacted(session)
    page = Store.beside(Path(result.output)).page(result.output_id[:8])
    assert str(page) in str(messages(result.output)[0].content[0]["text"])
    assert "Prompt 3" in page.read_text(encoding="utf-8")

    in_place = compacted(session, in_place=True)
    assert in_place.output == str(session)
    assert str(session) in str(messages(session)[0].content[0]["text"])


def test_the_mode_that_the_session_was_in_goes_along(session: Path) -> None:
    modes = [row for row in rows(compacted(session).output) if row["type"] == "permission-mode"]
    assert [row["permissionMode"] for row in modes] == ["acceptEdits"]


def test_the_cut_moves_back_to_the_call_of_five_results(tmp_path: Path) -> None:
    path = case("pairs-2").write(tmp_path / f"{SESSION_ID}.jsonl")
    with opened(session_file(path)) as found:
        sizes = size_of(found, lookup("")).item_tokens
    # one token short of the calls: their results and the answer alone would fit
    for keep, kept in ((sum(sizes[-3:]) - 1, 1), (sum(sizes[-3:]), 3)):
        result = compact(session_file(path), Says("So far."), Choices(Options(keep, 3_000), Target(tmp_path)))
        assert result.loss.kept == kept
    after = messages(result.output)

    assert [m.kind for m in after] == ["summary", "response", "results", "response"]
    assert len(tool_uses(after[1])) == 5
    assert len(after[2].content) == 5


def test_an_interrupted_call_is_never_written_as_if_it_had_happened(tmp_path: Path) -> None:
    made = long_session().prompt("Run the tests.").call("Bash", text="Running.", command="pytest")
    path = made.write(tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    result = compacted(path, 400)

    assert result.loss.kept >= 2
    contents = str([row.get("message") for row in rows(result.output)])
    assert "no result was recorded" not in contents
    assert f"'id': '{made.calls[-1]}'" not in contents
    assert path.read_bytes() == made.data()


def test_a_finished_plan_is_not_entered_again(tmp_path: Path) -> None:
    made = case("restore-2")
    made.rows[0]["message"] = {"role": "user", "content": "Plan the refactor. " * 100}
    made.beside("permission-mode", permissionMode="plan").beside("permission-mode", permissionMode="acceptEdits")
    path = made.write(tmp_path / "a" / f"{SESSION_ID}.jsonl")
    result = compact(
        session_file(path), Says("The typo in README is next."), Choices(Options(70, 3_000), Target(tmp_path))
    )

    kept = rows(result.output)
    assert [row["permissionMode"] for row in kept if "permissionMode" in row] == ["acceptEdits", "acceptEdits"]
    assert "ExitPlanMode" not in str([row.get("message") for row in kept])


class Says:
    """A summariser that says one thing, after something happened."""

    name = "says"

    def __init__(self, text: str, first: object = None) -> None:
        self.text, self.first = text, first

    def summarize(self, request: SummaryRequest) -> Summary:
        if callable(self.first):
            self.first()
        return Summary(self.text, "another")


def test_who_wrote_the_summary_is_whoever_did(session: Path, tmp_path: Path) -> None:
    result = compact(session_file(session), Says("So far."), Choices(Options(0, 3_000), Target(tmp_path)))
    assert result.summarizer == "another"
    assert rows(result.output)[0]["summarizer"] == "another"


@pytest.mark.parametrize("in_place", [False, True])
def test_without_a_summary_nothing_is_written(session: Path, tmp_path: Path, in_place: bool) -> None:
    before = tree(tmp_path)
    with pytest.raises(SummaryRejected):
        compact(
            session_file(session),
            Says(""),
            Choices(Options(0, 3_000), Target(tmp_path / "l", in_place=in_place)),
        )
    assert tree(tmp_path) == before


@pytest.mark.parametrize("in_place", [False, True])
def test_a_dry_run_writes_nothing_and_says_the_same(session: Path, tmp_path: Path, in_place: bool) -> None:
    before = tree(tmp_path)
    planned = compacted(session, 500, in_place=in_place, dry_run=True)

    assert tree(tmp_path) == before
    assert not (session.parent.parent / "locks").exists()
    assert (planned.changed, planned.reason) == (False, "dry run")
    done = compacted(session, 500, in_place=in_place)
    assert done == msgspec.structs.replace(planned, changed=True, reason="")


def test_the_same_compaction_is_the_same_bytes(session: Path, tmp_path: Path) -> None:
    def run(folder: str, keep: int) -> CompactResult:
        return compact(
            session_file(session), Says("So far."), Choices(Options(keep, 3_000), Target(tmp_path, tmp_path / folder))
        )

    first, second, other = run("a", 500), run("b", 500), run("b", 2_000)
    assert tree(Path(first.output).parent) == {
        name: data for name, data in tree(Path(second.output).parent).items() if other.output_id not in name
    }
    assert other.output_id != second.output_id


def test_what_was_written_before_is_left_alone(session: Path) -> None:
    compacted(session)
    before = tree(session.parent)
    again = compacted(session)

    assert (again.changed, again.reason) == (False, "the same was written before")
    assert tree(session.parent) == before


@pytest.mark.parametrize("in_place", [False, True])
def test_a_session_that_grew_is_compacted_again(session: Path, in_place: bool) -> None:
    made = long_session()
    first = compacted(session, 1_000, in_place=in_place)
    path = Path(first.output)
    more = Transcript("33333333-3333-4333-8333-333333333333").back_to(
        str([row["uuid"] for row in rows(path) if "uuid" in row][-1])
    )
    for turn in range(12, 24):
        more.prompt(f"Prompt {turn}: look at part {turn}. " * 10)
        more.use("Read", f"line of part {turn}\n" * 100, file_path=f"part{turn}.py").answer(f"Part {turn} is fine.")
    with path.open("ab") as file:
        file.write(more.data())
    second = compacted(path, 1_000, in_place=in_place)

    assert made.calls
    assert second.changed
    kinds = [m.kind for m in messages(second.output)]
    assert kinds.count("summary") == 1
    assert "Part 23 is fine." in str(messages(second.output)[-1].content)


def test_who_asked_for_a_tail_is_told_where_there_can_be_none(tmp_path: Path) -> None:
    made = long_session().prompt("Look again.").use("Read", "text", thinking="Where is it?", file_path="part0.py")
    path = made.write(tmp_path / f"{SESSION_ID}.jsonl")
    for keep, said in ((500, [NOTHING_KEPT]), (0, [])):
        for result in (compacted(path, keep), compacted(path, keep)):  # the second one finds it written
            assert (result.loss.kept, [*result.warnings]) == (0, said)


def test_less_is_kept_when_less_is_asked_for(session: Path) -> None:
    first = compacted(session, 2_000)
    same = compacted(Path(first.output), 2_500)
    less = compacted(Path(first.output), 500)

    assert (same.changed, same.reason) == (False, "nothing was added since the last compaction")
    assert less.loss.kept < first.loss.kept


def test_empty_files_and_files_without_conversation_need_nothing(tmp_path: Path) -> None:
    for name, data in (("empty", b""), ("metadata", (CASES / "boundary-6.jsonl").read_bytes())):
        path = tmp_path / name / f"{SESSION_ID}.jsonl"
        path.parent.mkdir()
        path.write_bytes(data)
        for in_place in (False, True):
            result = compacted(path, in_place=in_place)
            assert (result.changed, result.how, result.summarizer) == (False, "none", "")
            assert result.output == str(path)
        assert tree(path.parent) == {path.name: data}


def test_guards_leave_sessions_alone(session: Path) -> None:
    size = compacted(session, dry_run=True).tokens_before
    mtime = session.stat().st_mtime

    assert compacted(session, guards=Guards(over_tokens=size)).reason == f"it has no more than {tokens(size)} tokens"
    assert compacted(session, guards=Guards(idle_since=mtime - 1)).reason == "its file was written a short time ago"
    assert compacted(session, guards=Guards(size - 1, mtime), dry_run=True).reason == "dry run"


def test_files_that_came_back_are_named(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "a.py").write_text("now", encoding="utf-8")
    made = Transcript(cwd=str(app)).prompt("Look " * 4_000).use("Read", "then", file_path="a.py")
    made.use("Read", "then", file_path="gone.py").answer("Done.")
    result = compacted(made.write(tmp_path / f"{SESSION_ID}.jsonl"))

    assert result.restored == ["a.py"]
    shown = messages(result.output)
    assert [m.kind for m in shown] == ["summary", "meta", "meta"]
    assert "now" in str(shown[2].content)


def test_a_subagents_file_becomes_a_session_that_clients_find(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-srv-app"
    path = project / SESSION_ID / "subagents" / "agent-a0ad4f4.jsonl"
    made = Transcript(agent_id="a0ad4f4")
    for turn in range(9):
        made.prompt(f"Review {turn} " * 50).answer("Fine.")
    result = compacted(made.write(path))

    assert result.changed
    assert Path(result.output).parent == project
    twin = Transcript(agent_id="a0ad4f4")
    twin.rows = made.rows
    other = compacted(twin.write(project / "another" / "subagents" / path.name), dry_run=True)
    assert other.output_id != result.output_id  # ids of agents collide across sessions


def test_a_subagents_own_compaction_is_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / SESSION_ID / "subagents" / "agent-a0ad4f4.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes((CASES / "sidechain-2.jsonl").read_bytes())

    assert [m.kind for m in messages(path)] == ["summary", "response"]
    assert not compacted(path, 1_000).changed
    one_row = Transcript(agent_id="acompact").prompt("Summarise").write(path.parent / "agent-acompact.jsonl")
    assert not compacted(one_row).changed


FOREIGN = [
    "codex/sample.jsonl",
    "gemini-json/session-2026-01-10T10-00-0a0a0a0a.json",
    "gemini-jsonl/session-2026-05-01T10-00-0a0a0a0a.jsonl",
    "messages-api/request.json",
    "opencode-export/ses_demo.json",
]


def foreign(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes((DATA / "foreign" / name).read_bytes())
    return path


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("keep", [0, 20, 100_000])
def test_other_clients_files_are_compacted_to_messages_json(tmp_path: Path, name: str, keep: int) -> None:
    path = foreign(tmp_path, name)
    before = path.read_bytes()
    result = compact(session_file(path), Says("So far."), Choices(Options(keep, 3_000), Target(tmp_path)))
    assert path.read_bytes() == before
    if not result.changed:
        assert tree(path.parent) == {path.name: before}
        return

    output = Path(result.output)
    assert output.name == f"{path.stem}.compacted-{result.output_id[:8]}.json"
    document = json.loads(output.read_bytes())
    assert "So far." in str(document["messages"][0])
    shown = messages(output)
    assert shown[0].kind == "summary"
    assert split_ledger(str(shown[0].content[0]["text"]))[0] == "So far."
    assert len(Store.beside(output).bodies()) > 0
    again = compact(session_file(output), Says("So far."), Choices(Options(keep, 3_000), Target(tmp_path)))
    assert not again.changed


def test_or_to_markdown(tmp_path: Path) -> None:
    path = foreign(tmp_path, "codex/sample.jsonl")
    result = compact(session_file(path), Says("So far."), Choices(Options(0, 3_000), Target(tmp_path, markdown=True)))

    assert result.output.endswith(".md")
    text = Path(result.output).read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "## Summary\n\nSo far." in text


def test_two_files_of_one_name_have_two_results(tmp_path: Path) -> None:
    outputs = []
    for name in ("codex/sample.jsonl", "gemini-jsonl/session-2026-05-01T10-00-0a0a0a0a.jsonl"):
        path = foreign(tmp_path, name).rename(tmp_path / name.partition("/")[0] / "full.jsonl")
        result = compact(session_file(path), Says("x"), Choices(Options(0, 3_000), Target(tmp_path, tmp_path / "out")))
        assert result.changed
        outputs.append(result.output)
    assert len(set(outputs)) == 2


def test_in_place_is_for_claude_codes_own_files(tmp_path: Path) -> None:
    path = foreign(tmp_path, "codex/sample.jsonl")
    before = tree(tmp_path)
    with pytest.raises(WrongFormat, match="looks like a Codex rollout, and only a Claude Code"):
        compacted(path, in_place=True)
    assert tree(tmp_path) == before


def test_of_a_large_file_only_what_is_behind_the_last_boundary_counts(tmp_path: Path) -> None:
    made = Transcript().prompt("Old " * (WHOLE_BYTES // 4)).answer("Yes.").boundary("So far, so good.")
    for turn in range(12):
        made.prompt(f"Prompt {turn}").use("Bash", "out\n" * 500, command=f"run {turn}").answer(f"Answer {turn}")
    path = made.write(tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    assert path.stat().st_size > WHOLE_BYTES

    for in_place in (False, True):
        result = compacted(path, 500, in_place=in_place)
        assert (result.changed, result.loss.kept + result.loss.reachable) == (True, 1 + 12 * 4)
        assert not compacted(Path(result.output), 500, in_place=in_place).changed
        with opened(session_file(Path(result.output)), whole=True) as session:
            assert output(session, made.calls[0]).text == "out\n" * 500
        undo(session_file(Path(result.output)), tmp_path, tmp_path / "locks")
        assert path.read_bytes() == made.data()


def test_what_is_no_transcript_is_refused_by_name(tmp_path: Path) -> None:
    for name, data in (("a.jsonl", b'{"x": 1}\n'), ("b.jsonl", (DATA / "foreign/cases/foreign-1.jsonl").read_bytes())):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises((UnknownFormat, WrongFormat, Damaged)):
            compacted(path, in_place=True)
    assert tree(tmp_path).keys() == {"a.jsonl", "b.jsonl"}


@pytest.mark.parametrize(
    ("error", "half"), [(errno.ENOSPC, True), (errno.EDQUOT, False), (errno.EACCES, False), (errno.EROFS, False)]
)
def test_whatever_the_disk_refuses_the_source_stays_and_nothing_else_is_left(
    session: Path, tmp_path: Path, error: int, half: bool
) -> None:
    before = tree(tmp_path)
    failures = 0
    target = Target(tmp_path / "locks", tmp_path / "out")
    for outcome in outcomes(
        lambda: compact(session_file(session), Says("So far."), Choices(Options(0, 3_000), target)), error, half
    ):
        assert tree(session.parent) == {session.name: before[f"projects/-srv-app/{session.name}"]}
        out = {name: data for name, data in tree(tmp_path).items() if name.startswith("out/")}
        if outcome is None:  # what failed was not needed
            for name in out:
                (tmp_path / name).unlink()
            continue
        failures += 1
        assert isinstance(outcome, (WriteFailed, InputError))
        assert str(tmp_path) in str(outcome)
        assert os.strerror(error) in str(outcome) or "bytes were written" in str(outcome)
        assert out == {}
    assert failures > 5


@pytest.mark.parametrize("half", [False, True])
def test_a_full_disk_leaves_a_transcript_as_it_was_in_place(session: Path, half: bool) -> None:
    before = session.read_bytes()
    for outcome in outcomes(lambda: compacted(session, in_place=True), errno.ENOSPC, half):
        if outcome is None:
            undo(session_file(session), session.parents[2], session.parents[1] / "locks")
        assert session.read_bytes() == before
        assert tree(session.parent).keys() == {session.name}


def test_the_store_of_another_process_that_did_the_same_is_left(session: Path) -> None:
    planned = compacted(session, dry_run=True)
    store = Store.beside(Path(planned.output))

    class Meanwhile(Extractive):
        def summarize(self, request: SummaryRequest) -> Summary:
            if not self.done:
                self.done = True
                compacted(session)
            return super().summarize(request)

        done = False

    # the other process is done between the look and the write
    real = Path.exists
    seen: list[Path] = []

    def exists(path: Path, **kwargs: bool) -> bool:
        seen.append(path)
        return real(path, **kwargs) and not (str(path) == planned.output and seen.count(path) < 5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "exists", exists)
        with pytest.raises(WriteFailed, match="File exists"):
            compact(session_file(session), Meanwhile(), Choices(Options(0, 3_000), Target(session.parent / "locks")))
    assert len(store.bodies()) > 0
    assert len(messages(planned.output)) == 1


def test_rows_that_come_while_the_summary_is_written_are_part_of_it(session: Path, tmp_path: Path) -> None:
    more = Transcript("33333333-3333-4333-8333-333333333333").back_to(str(rows(session)[-1]["uuid"])).prompt("Late")
    late = [more.data()]

    def write_late() -> None:
        if late:
            with session.open("ab") as file:
                file.write(late.pop())

    in_place = Target(tmp_path / "locks", in_place=True)
    result = compact(session_file(session), Says("So far.", write_late), Choices(Options(10, 3_000), in_place))
    assert result.changed
    assert "Late" in str(messages(session)[-1].content)


def test_in_place_it_gives_up_when_rows_come_all_the_time(session: Path, tmp_path: Path) -> None:
    def write_on() -> None:
        with session.open("ab") as file:
            file.write(b'{"type":"mode","mode":"x"}\n')

    class Writing(NoHooks):
        def session_start(self, about: About) -> Answer:
            write_on()
            return Answer()

    in_place = Target(tmp_path / "locks", in_place=True)
    options = Options(10, 3_000)
    with pytest.raises(Changed):
        compact(session_file(session), Extractive(), Choices(options, in_place, hooks=Writing()))
    assert b"compact_boundary" not in session.read_bytes()


def test_undo_takes_a_new_session_away_with_its_store(session: Path, tmp_path: Path) -> None:
    before = tree(session.parent)
    result = compacted(session)
    undone = undo(session_file(Path(result.output)), tmp_path, tmp_path / "locks")

    assert tree(session.parent) == before
    assert undone.to_json() == {"path": result.output, "op": "compact", "removed": True, "source_path": str(session)}


def test_undo_in_place_takes_back_one_compaction_at_a_time(session: Path, tmp_path: Path) -> None:
    states: list[bytes] = []
    for keep in (4_000, 1_500, 0):
        states.append(session.read_bytes())
        assert compacted(session, keep, in_place=True).changed
    for state in reversed(states):
        undone = undo(session_file(session), tmp_path, tmp_path / "locks")
        assert session.read_bytes() == state
        assert (undone.removed, undone.source_path) == (False, str(session))


def test_results_have_the_keys_that_programs_rely_on() -> None:
    keys = {"session", "output", "output_id", "how", "summarizer", "tokens_before", "tokens_after", "stages", "loss"}
    assert keys | {"restored", "changed", "reason"} <= {*CompactResult.__struct_fields__}


def test_idle_counts_from_the_later_of_the_files_time_and_the_last_rows(session: Path) -> None:
    last = datetime.fromisoformat(str(rows(session)[-1]["timestamp"])).timestamp()
    os.utime(session, (last - 9_000, last - 9_000))
    assert compacted(session, guards=Guards(idle_since=last - 1)).reason == "it was written to a short time ago"
    assert compacted(session, guards=Guards(idle_since=last), dry_run=True).reason == "dry run"
    os.utime(session, (last + 9_000, last + 9_000))
    assert compacted(session, guards=Guards(idle_since=last)).reason == "its file was written a short time ago"


def test_what_the_summary_names_is_found_from_any_folder(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(session.parent)
    (session.parent / "out").mkdir()
    result = compacted(session, out_dir=Path("out"))
    page = Store.beside(session.parent / "out" / f"{result.output_id}.jsonl").page(result.output_id[:8])
    assert result.output == str(session.parent / "out" / f"{result.output_id}.jsonl")
    assert str(page) in str(messages(result.output)[0].content[0]["text"])


@pytest.mark.parametrize("markdown", [False, True])
def test_a_document_is_taken_back_with_its_store_and_record(tmp_path: Path, markdown: bool) -> None:
    path = foreign(tmp_path, "codex/sample.jsonl")
    before = tree(tmp_path)
    results = [
        compact(session_file(path), Says("So far."), Choices(Options(0, 3_000), Target(tmp_path, markdown=form)))
        for form in (markdown, not markdown)
    ]
    assert len({Store.beside(Path(r.output)) for r in results}) == 2
    for result in results:
        undone = undo(session_file(Path(result.output)), tmp_path, tmp_path / "locks")
        assert (undone.op, undone.removed, undone.source_path) == ("compact", True, str(path))
    assert {name: data for name, data in tree(tmp_path).items() if not name.startswith("locks")} == before


def test_what_a_document_left_out_is_found_from_it(tmp_path: Path) -> None:
    path = foreign(tmp_path, "codex/sample.jsonl")
    with opened(session_file(path)) as found:
        ids = [str(b["tool_use_id"]) for m in found.messages for b in m.content if b["type"] == "tool_result"]
        texts = [output(found, ident).text for ident in ids]
    result = compact(session_file(path), Says("So far."), Choices(Options(0, 3_000), Target(tmp_path)))
    with opened(session_file(Path(result.output)), whole=True) as found:
        assert [output(found, ident).text for ident in ids] == texts
        assert {output(found, ident).where for ident in ids} == {"stored"}
        assert [hit.id for hit in search(found, texts[0].split("\n")[0]).hits]


def test_what_came_from_standard_input_can_be_taken_back(session: Path) -> None:
    piped = replace(session_file(session), piped=True)
    result = compact(piped, Says("So far."), Choices(Options(0, 3_000), Target(session.parent / "locks")))
    assert '"source":{"path":"-",' in Path(result.output).read_text(encoding="utf-8")
    session.unlink()
    assert undo(session_file(Path(result.output)), session.parent, session.parent / "locks").source_path == "-"
    assert not Path(result.output).exists()


def test_undo_in_place_gives_the_time_back_unless_the_session_went_on(session: Path) -> None:
    for went_on in (False, True):
        os.utime(session, ns=(1, 1767603605000000003))
        compacted(session, in_place=True)
        if went_on:
            with session.open("ab") as file:
                file.write(b'{"type":"mode"}\n')
        undo(session_file(session), session.parent, session.parent / "locks")
        assert (session.stat().st_mtime_ns == 1767603605000000003) is not went_on


def test_in_place_a_session_keeps_its_line_in_the_list(tmp_path: Path) -> None:
    made = long_session(30).beside("ai-title", aiTitle="The parts")
    path = made.write(tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    before = describe(session_file(path))
    assert compacted(path, 15_000, in_place=True).loss.kept > 60
    after = describe(session_file(path))
    assert (before.title, after.title) == ("The parts", "The parts")
    assert (before.state, after.state) == ("ready", "compacted")
    assert after.updated == before.updated


def test_of_two_that_compact_the_same_at_once_the_second_finds_it_done(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> CompactResult:
        target = Target(tmp_path / "locks", tmp_path / "out")
        return compact(session_file(session), Says("So far."), Choices(Options(0, 3_000), target))

    def write(path: Path, pieces: list[bytes]) -> None:
        monkeypatch.undo()
        second.append(pool.submit(run))
        with suppress(TimeoutError):
            second[0].result(0.1)  # it waits for the store
        write_new(path, pieces)

    monkeypatch.setattr("core.service.operation.write_new", write)
    second: list[Future[CompactResult]] = []
    with ThreadPoolExecutor(1) as pool:
        first = run()
    again = second[0].result()

    assert (first.changed, again.changed, again.output) == (True, False, first.output)
    assert again.reason == "the same was written before"
    assert Store.beside(Path(first.output)).bodies()


def test_in_place_a_row_that_is_being_written_is_not_cut_in_two(session: Path, tmp_path: Path) -> None:
    with session.open("ab") as file:
        file.write(b'{"type":"user","uu')
    before, written = session.read_bytes(), session.stat().st_mtime
    target = Target(tmp_path / "locks", in_place=True, clock=lambda: written + 0.5)
    with pytest.raises(Changed, match="is being written"):
        compact(session_file(session), Says("So far."), Choices(Options(0, 3_000), target))
    assert session.read_bytes() == before

    target = Target(tmp_path / "locks", in_place=True, clock=lambda: written + 5)
    assert compact(session_file(session), Says("So far."), Choices(Options(0, 3_000), target)).changed
