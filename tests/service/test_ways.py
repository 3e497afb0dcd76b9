"""The ways to compact: which one is of use, one part only, what hooks have a say in, what is written meanwhile."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.compaction.full import Options
from core.compaction.hooks import About, Answer, NoHooks
from core.context.tokens.window import Measuring
from core.context.view import api_messages
from core.errors import CompactionError, IdNotFound, Locked, NothingToCompact, NoUsableMemory, SummaryRejected
from core.memory.files import MemoryFiles, State
from core.memory.notes import Notes, item
from core.model import JSON, Message, Usage, tool_results, tool_uses
from core.service.arguments import Arguments
from core.service.compact import compact
from core.service.history import output
from core.service.job import Choices, CompactResult, How
from core.service.operation import Target
from core.service.session import opened
from core.service.stages import StageSettings
from core.service.undo import undo
from core.service.usage import Spent
from core.stages.tool_budget import ToolBudgetSettings
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file
from tests.disk import messages, on_disk, rows, tree
from tests.service.test_compact import CASES, long_session
from tests.sessions import transcripts


class Says:
    """A summariser that says one thing, after something happened, and counts how often it was asked."""

    name = "says"

    def __init__(self, text: str = "So far.", first: Callable[[], object] = lambda: None) -> None:
        self.text, self.first = text, first
        self.asked: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> Summary:
        self.asked.append(request)
        self.first()
        return Summary(self.text, self.name, usage=Usage(5, 6, 7, 8), remarks=("It was cut.",))


def done(
    path: Path,
    how: How = "auto",
    keep: int = 0,
    *,
    says: Says | None = None,
    in_place: bool = False,
    hooks: NoHooks | None = None,
    known: StageSettings | None = None,
    up_to: str = "",
    since: str = "",
    instructions: str = "",
    dry_run: bool = False,
) -> CompactResult:
    options = Options(keep, 9_000, instructions, up_to=up_to, since=since)
    target = Target(path.parent / "locks", None, in_place, dry_run)
    choices = Choices(options, target, how, settings=known or StageSettings(), hooks=hooks or NoHooks())
    return compact(session_file(path), says or Says(), choices)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return long_session().write(tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")


def case(name: str, tmp_path: Path) -> Path:
    path = tmp_path / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl"
    path.parent.mkdir(parents=True)
    shutil.copy(CASES / f"{name}.jsonl", path)
    return path


# -- by what is of use


def test_a_long_session_is_summarised(session: Path) -> None:
    result = done(session, keep=1_000)
    assert (result.how, result.changed) == ("full", True)
    assert not done(Path(result.output), keep=1_000).changed


def test_of_one_turn_with_one_huge_result_the_result_gives_way(tmp_path: Path) -> None:
    path = case("compactfail-2", tmp_path)
    says = Says()
    result = done(path, keep=20_000, says=says)

    assert (result.how, result.changed, says.asked) == ("micro", True, [])
    assert result.tokens_before - result.tokens_after > 15_000
    shown = messages(result.output)
    assert [m.kind for m in shown[:3]] == ["prompt", "response", "results"]
    assert shown[0].content == messages(path)[0].content
    assert tool_uses(shown[1])[0]["id"] == tool_results(shown[2])[0]["tool_use_id"] == "toolu_big"
    with opened(session_file(Path(result.output))) as opened_again:
        assert output(opened_again, "toolu_big", (1, 2)).text.startswith("EEE")

    before = tree(tmp_path)
    again = done(Path(result.output), keep=20_000, says=says)
    assert (again.how, again.changed) == ("none", False)
    assert not done(path, keep=20_000, says=says).changed
    assert tree(tmp_path) == before


def test_in_place_too_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    path = case("compactfail-2", tmp_path)
    before = path.read_bytes()
    assert done(path, keep=20_000, in_place=True).how == "micro"
    after = path.read_bytes()

    assert not done(path, keep=20_000, in_place=True).changed
    assert path.read_bytes() == after
    undo(session_file(path), tmp_path, tmp_path / "locks")
    assert path.read_bytes() == before


def test_a_large_turn_behind_much_else_is_summarised_with_it(tmp_path: Path) -> None:
    made = long_session(30).prompt("And now this").use("Bash", "line of output\n" * 9_000, command="make")
    path = made.write(tmp_path / f"{SESSION_ID}.jsonl")
    assert done(path, keep=1_000).how == "full"


def test_a_context_that_is_too_full_with_all_of_it_kept_loses_results(tmp_path: Path) -> None:
    made = Transcript()
    for turn in range(12):
        made.prompt(f"Prompt {turn}").use("Bash", f"line {turn} of output\n" * 400, command=f"make {turn}")
        made.answer("Fine.")
    path = made.write(tmp_path / f"{SESSION_ID}.jsonl")
    full = StageSettings(measuring=Measuring(window_tokens=40_000))

    result = done(path, keep=100_000, known=replace(full, forced=True))
    assert (result.how, result.changed) == ("micro", True)
    assert len(messages(result.output)) == len(messages(path))
    left = done(path, keep=100_000, known=StageSettings(forced=True))
    assert left.how == "none"
    assert re.fullmatch(r"only \S+k tokens are messages, and the newest 100k stay", left.reason)


def test_where_no_result_can_give_way_there_is_nothing_to_do(tmp_path: Path) -> None:
    path = Transcript().prompt("word " * 9_000).answer("Fine.").write(tmp_path / f"{SESSION_ID}.jsonl")
    result = done(path, keep=100_000, known=StageSettings(measuring=Measuring(window_tokens=40_000)))
    assert result.how == "none"
    assert re.fullmatch(r"only \S+k tokens are messages, and the newest 100k stay", result.reason)


def test_results_in_another_clients_conversation_give_way(tmp_path: Path) -> None:
    said: JSON = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "out\n" * 30_000}]},
        {"role": "assistant", "content": "I see."},
    ]
    path = tmp_path / "messages.json"
    path.write_text(json.dumps({"messages": said}), encoding="utf-8")
    result = done(path, "auto", 20_000)
    assert (result.how, result.changed) == ("micro", True)
    assert len(str(messages(result.output))) < 10_000


# -- by the notes


def noted(path: Path, covers: str, session: str = SESSION_ID) -> MemoryFiles:
    files = MemoryFiles.beside(session_file(path))
    notes = Notes(session, 1, covers).with_items("goal", [item("g1-1", "Look at every part", "", [covers], 1)])
    owned = MemoryFiles(files.folder, session)
    with owned.locked(1):
        owned.save(owned.read(), notes, [], State())
    return files


def test_notes_stand_for_what_they_tell_of_and_no_model_is_asked(session: Path) -> None:
    shown = messages(session)
    noted(session, shown[-5].uuids[-1])
    says = Says()
    result = done(session, keep=500, says=says)

    assert (result.how, result.summarizer, result.changed, says.asked) == ("memory", "memory", True, [])
    after = messages(result.output)
    assert "Look at every part" in str(after[0].content)
    assert [m.uuids for m in after[-4:]] == [m.uuids for m in shown[-4:]]
    assert result.loss.kept + result.loss.reachable == len(shown)
    assert rows(result.output)[0]["summarizer"] == "memory"
    assert done(session, keep=500).reason == "the same was written before"
    assert not done(Path(result.output), keep=500).changed
    assert done(Path(result.output), "memory", 500).reason == "nothing was added since the last compaction"


def test_behind_notes_there_stays_what_was_asked_for(session: Path) -> None:
    shown = messages(session)
    noted(session, shown[-1].uuids[-1])
    usual = Choices(Options(20_000, 9_000), Target(session.parent / "locks"))

    def kept(keep_tokens: int | None) -> tuple[str, int]:
        choices = Arguments(keep_tokens=keep_tokens).over(usual)
        result = compact(session_file(session), Says(), choices)
        return result.output_id, result.loss.kept

    found = [kept(asked) for asked in (0, 500, 2_000)]
    assert [size for _, size in found] == [0, 1, 9]
    assert len({name for name, _ in found}) == 3


def test_other_notes_make_another_session(session: Path) -> None:
    shown = messages(session)
    noted(session, shown[-5].uuids[-1])
    first = done(session, "memory", 500)
    shutil.rmtree(MemoryFiles.beside(session_file(session)).folder)
    noted(session, shown[-9].uuids[-1])
    assert done(session, "memory", 500).output_id != first.output_id


def test_notes_that_cannot_stand_for_it_give_way_to_a_summary(session: Path) -> None:
    noted(session, "no-such-row")
    result = done(session, keep=500)

    assert (result.how, result.changed) == ("full", True)
    with pytest.raises(NoUsableMemory, match="not in the transcript"):
        done(session, "memory", 500)


def test_notes_of_another_session_are_none(session: Path) -> None:
    noted(session, messages(session)[-5].uuids[-1], "22222222-2222-4222-8222-222222222222")
    assert done(session, keep=500).how == "full"


def test_without_notes_there_is_no_way_by_them(session: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(NoUsableMemory, match="no notes"):
        done(session, "memory", 500)
    assert tree(tmp_path) == before
    other = tmp_path / "messages.json"
    other.write_text('{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}')
    with pytest.raises(NoUsableMemory, match="only Claude Code"):
        done(other, "memory")


def test_who_asks_for_something_in_words_gets_a_summary(session: Path) -> None:
    noted(session, messages(session)[-5].uuids[-1])
    assert done(session, keep=500, instructions="Mind the parts").how == "full"


def test_an_update_of_the_notes_is_waited_for(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = noted(session, messages(session)[-5].uuids[-1])

    def busy(*_: object) -> Iterator[None]:
        raise Locked("held")

    monkeypatch.setattr("core.memory.files.holding", busy)
    assert done(session, "memory", 500).how == "memory"
    assert files.read().exists


def test_hooks_have_a_say_in_notes_too(session: Path) -> None:
    noted(session, messages(session)[-5].uuids[-1])
    with pytest.raises(CompactionError, match="a hook forbids the compaction: Not now"):
        done(session, "memory", 500, hooks=Hooked(blocked="Not now"))
    result = done(session, "memory", 500, hooks=Hooked("Port 8080"))
    assert "Port 8080" in str([m.content for m in messages(result.output)])


# -- one part


def test_what_is_before_a_message_goes(session: Path) -> None:
    shown = messages(session)
    at = shown[24]
    result = done(session, "partial", up_to=at.uuid)
    after = messages(result.output)

    assert (result.how, result.changed, result.loss.reachable) == ("partial", True, 24)
    assert [m.kind for m in after[:2]] == ["summary", "prompt"]
    assert [m.uuids for m in after[1:]] == [m.uuids for m in shown[24:]]
    assert [m.content for m in after[1:]] == [m.content for m in shown[24:]]


def test_what_follows_a_message_goes_and_what_is_before_stays_as_it_was(session: Path) -> None:
    shown = messages(session)
    old = {row["uuid"]: row for row in rows(session) if "uuid" in row}
    says = Says()
    result = done(session, "partial", since=shown[24].uuid, says=says)
    after = messages(result.output)

    assert [m.kind for m in after[24:]] == ["summary"]
    assert after[:24] == shown[:24]
    assert says.asked[0].messages[0].uuid == shown[24].uuid
    for row in rows(result.output):
        before = old.get(row.get("uuid"))
        if before:
            assert row["message"] == before["message"]
    assert result.tokens_after < result.tokens_before


def test_the_client_is_told_which_part_it_was(session: Path) -> None:
    shown = messages(session)
    for part, direction, count in (({"up_to": shown[24].uuid}, "up_to", 24), ({"since": shown[24].uuid}, "from", 24)):
        written = rows(done(session, "partial", **part).output)  # type: ignore[arg-type]
        boundary = next(row for row in written if row.get("subtype") == "compact_boundary")
        summary = next(row for row in written if row.get("isCompactSummary"))
        assert summary["summarizeMetadata"] == {"messagesSummarized": count, "direction": direction}
        assert "isVisibleInTranscriptOnly" not in summary
        assert boundary["compactMetadata"]["messagesSummarized"] == count  # type: ignore[index, call-overload]


def test_a_part_in_place_is_followed_by_what_a_running_client_writes(session: Path, tmp_path: Path) -> None:
    before = session.read_bytes()
    shown = messages(session)
    last = str([row for row in rows(session) if "uuid" in row][-1]["uuid"])
    result = done(session, "partial", since=shown[24].uuid, in_place=True)
    assert result.output == str(session)
    more = Transcript("33333333-3333-4333-8333-333333333333").back_to(last).prompt("And now?")
    with session.open("ab") as file:
        file.write(more.data())

    after = messages(session)
    assert [m.kind for m in after[24:]] == ["summary", "prompt"]
    assert after[:24] == shown[:24]
    assert "And now?" in str(after[-1].content)
    undo(session_file(session), tmp_path, tmp_path / "locks")
    assert session.read_bytes() == before + more.data()


def test_older_clients_go_on_from_the_summary_in_place(session: Path) -> None:
    done(session, "partial", since=messages(session)[24].uuid, in_place=True)
    times = [str(row["timestamp"]) for row in rows(session) if "uuid" in row]
    assert times[-1] == max(times)
    assert times.count(times[-1]) == 1


def test_a_part_of_another_clients_conversation(tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    said: JSON = [
        {"role": role, "content": f"{role} {n}: " + "many words " * 200}
        for n in range(6)
        for role in ("user", "assistant")
    ]
    path.write_text(json.dumps({"messages": said}), encoding="utf-8")
    shown = messages(path)
    after = messages(done(path, "partial", since=shown[6].uuid).output)
    assert [m.content for m in after[:6]] == [m.content for m in shown[:6]]
    assert len(after) == 7
    assert len(messages(done(path, "partial", up_to=shown[6].uuid).output)) == 7


def test_parts_and_whole_are_sessions_of_their_own(session: Path) -> None:
    shown = messages(session)
    results = [done(session, "partial", up_to=shown[n].uuid) for n in (16, 25)]
    results += [done(session, "partial", since=shown[n].uuid) for n in (16, 24)]
    results.append(done(session, "full"))
    assert len({r.output_id for r in results}) == len(results)
    assert done(session, "partial", up_to=shown[26].uuid).output == results[1].output  # the same cut


def test_a_part_that_is_not_there_and_one_that_is_not_worth_it(session: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(IdNotFound):
        done(session, "partial", up_to="zzzz")
    shown = messages(session)
    assert done(session, "partial", up_to=shown[0].uuid).how == "none"
    left = done(session, "partial", since=shown[-1].uuid, says=Says("Much more than that. " * 100))
    assert left.reason.startswith("only 0 of")
    assert tree(tmp_path) == before


def test_the_whole_is_not_compacted_again_where_a_part_left_no_more(session: Path) -> None:
    result = done(session, "partial", since=messages(session)[8].uuid)
    kept = result.tokens_after
    assert done(Path(result.output), keep=kept).reason == "nothing was added since the last compaction"
    assert done(Path(result.output), keep=10).changed


@settings(max_examples=60, deadline=None)
@given(transcripts(), st.data())
def test_what_is_written_of_a_part_is_what_was_planned(made: Transcript, data: st.DataObject) -> None:
    """Before and behind the summary stands what stood there, without the thinking behind a change."""
    in_place = data.draw(st.booleans())
    with on_disk(made) as path:
        shown = messages(path)
        at = data.draw(st.integers(0, len(shown) - 1))
        part = data.draw(st.sampled_from(("up_to", "since")))
        try:
            result = done(path, "partial", in_place=in_place, says=Says("S"), **{part: shown[at].uuid})  # type: ignore[arg-type]
        except (CompactionError, NothingToCompact):
            return
        if not result.changed:
            return
        after = messages(result.output)
        place = next(i for i, m in enumerate(after) if m.kind == "summary" and "S" in str(m.content[0]["text"])[:1])
        head = api_messages(after[:place])
        assert head == api_messages(shown[:place])
        assert result.loss.kept + result.loss.reachable == len(shown)
        tail = after[place:]
        assert _answered(tail) <= _calls(tail)
        assert _calls(tail) - _answered(tail) <= _calls(shown) - _answered(shown)  # still at work


def _calls(shown: tuple[Message, ...]) -> set[JSON]:
    return {str(b["id"]) for m in shown for b in tool_uses(m)}


def _answered(shown: tuple[Message, ...]) -> set[JSON]:
    return {str(b["tool_use_id"]) for m in shown for b in tool_results(m)}


# -- hooks, and what a person is told


class Hooked(NoHooks):
    """Hooks that say something, and remember what they were told."""

    def __init__(self, text: str = "", blocked: str = "") -> None:
        self.text, self.blocked = text, blocked
        self.told: list[tuple[str, str]] = []

    def pre_compact(self, about: About, instructions: str) -> Answer:
        self.told.append(("pre", instructions))
        return Answer(self.text, self.blocked, ("pre said so",))

    def session_start(self, about: About) -> Answer:
        self.told.append(("start", about.session_id))
        return Answer(self.text, self.blocked)

    def post_compact(self, about: About, summary: str) -> Answer:
        self.told.append(("post", summary))
        return Answer(remarks=("post failed",))


def test_hooks_are_asked_in_their_order(session: Path) -> None:
    says, hooks = Says(), Hooked("Port 8080, key ghp_" + "a1B2" * 9)
    result = done(session, "full", 500, says=says, hooks=hooks, instructions="Mind the parts")

    assert [what for what, _ in hooks.told] == ["pre", "start", "post"]
    assert hooks.told[0] == ("pre", "Mind the parts")
    assert hooks.told[1] == ("start", SESSION_ID)
    assert says.asked[0].instructions.startswith("Mind the parts\n\nPort 8080")
    shown = str([m.content for m in messages(result.output)[:4]])
    assert "Port 8080" in shown
    assert "ghp_" not in shown + says.asked[0].instructions
    assert "hooks" in result.restored
    assert result.warnings[:1] == ["pre said so"]
    assert result.warnings[-1] == "post failed"


def test_a_hook_forbids_it_and_nothing_is_written(session: Path, tmp_path: Path) -> None:
    before, says = tree(tmp_path), Says()
    with pytest.raises(CompactionError, match="a hook forbids the compaction: Tests run"):
        done(session, "full", 500, says=says, hooks=Hooked(blocked="Tests run"))
    assert says.asked == []
    assert tree(tmp_path) == before


def test_when_all_is_put_back_nothing_is_forbidden_any_more(session: Path) -> None:
    class Late(Hooked):
        def pre_compact(self, about: About, instructions: str) -> Answer:
            return Answer()

    result = done(session, "full", 500, hooks=Late(blocked="Too late"))
    assert result.changed
    assert "a hook cannot forbid it now: Too late" in result.warnings


def test_a_dry_run_asks_no_hook(session: Path) -> None:
    hooks = Hooked("text")
    assert done(session, "full", 500, hooks=hooks, dry_run=True).reason == "dry run"
    assert hooks.told == []


def test_what_the_summariser_says_of_itself_is_passed_on(session: Path) -> None:
    result = done(session, "full", 500)
    assert "It was cut." in result.warnings
    assert result.usage == Spent(input_tokens=5, cache_creation_tokens=6, cache_read_tokens=7, output_tokens=8)


def test_what_was_written_before_asks_nobody(session: Path) -> None:
    first, says, hooks = done(session, "full", 500), Says(), Hooked()
    again = done(session, "full", 500, says=says, hooks=hooks)

    assert (says.asked, hooks.told) == ([], [])
    assert (again.changed, again.reason, again.output) == (False, "the same was written before", first.output)
    assert (again.tokens_before, again.tokens_after, again.loss) == (
        first.tokens_before,
        first.tokens_after,
        first.loss,
    )
    assert again.summarizer == first.summarizer


def test_no_summary_is_a_failure_and_changes_nothing(session: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    for text in ("", " \n\t"):
        for in_place in (False, True):
            with pytest.raises(SummaryRejected):
                done(session, "full", 500, says=Says(text), in_place=in_place)
    assert tree(tmp_path) == before


# -- what is written meanwhile


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("part", [{}, {"up_to": "24"}, {"since": "24"}])
def test_rows_that_come_while_a_model_writes_are_kept_behind_its_summary(
    session: Path, in_place: bool, part: dict[str, str]
) -> None:
    shown = messages(session)
    made = Transcript("33333333-3333-4333-8333-333333333333").back_to(str(rows(session)[-1]["uuid"]))
    late = [made.prompt("Late question").answer("Late answer").data()]

    def write_late() -> None:
        if late:
            with session.open("ab") as file:
                file.write(late.pop())

    says = Says(first=write_late)
    chosen = {key: shown[int(at)].uuid for key, at in part.items()}
    result = done(session, "partial" if part else "full", 500, says=says, in_place=in_place, **chosen)  # type: ignore[arg-type]
    after = messages(result.output)

    assert len(says.asked) == 1
    assert result.changed
    assert "Late question" in str(after[-2].content)
    assert "Late answer" in str(after[-1].content)
    assert sum(m.kind == "summary" for m in after) == 1
    if "since" in part:
        assert after[:24] == shown[:24]
        assert after[24].kind == "summary"
    page = Path(result.output).with_suffix("") / "tool-results" / f"compacted-{result.output_id[:8]}.md"
    assert in_place or str(page) == says.asked[0].transcript
    assert in_place or page.exists()


def test_rows_that_belong_to_what_went_have_it_summarised_anew(tmp_path: Path) -> None:
    made = long_session().prompt("Go on").call("Bash", command="make")
    path = made.write(tmp_path / "a" / f"{SESSION_ID}.jsonl")
    size = len(made.rows)
    made.result("built").answer("Done.")
    late = [b"".join(json.dumps(row).encode() + b"\n" for row in made.rows[size:])]

    def write_late() -> None:
        if late:
            with path.open("ab") as file:
                file.write(late.pop())

    says = Says(first=write_late)
    result = done(path, "full", 0, says=says)
    assert len(says.asked) == 2
    assert "built" in str([m.content for m in says.asked[1].messages])
    assert len(messages(result.output)) == 1


# -- the state that a summary does not hold


def test_the_last_request_and_what_was_queued_are_there_word_for_word(tmp_path: Path) -> None:
    made = Transcript()
    made.rows = [json.loads(line) for line in (CASES / "summary-1.jsonl").read_text("utf-8").splitlines()]
    made.rows[0]["message"] = {"role": "user", "content": "Step 0: look at module 0. " * 600}
    path = made.write(tmp_path / "a" / f"{SESSION_ID}.jsonl")
    options = Options(0, 9_000)
    result = compact(session_file(path), Extractive(), Choices(options, Target(tmp_path / "locks"), how="full"))
    text = str([b.get("text") for m in messages(result.output) for b in m.content])

    points = "(1) rename flag to --quiet, (2) do NOT touch setup.cfg, (3) bump to 1.4.2, (4) answer in German."
    assert points in text
    assert "also: keep the old flag as an alias" in text
    constraints = text.partition("## User constraints")[2].partition("\\n## ")[0]
    assert "answer in German" in constraints


def test_a_session_in_plan_mode_stays_in_it(tmp_path: Path) -> None:
    made = Transcript().prompt("Plan the refactor. " * 300, permissionMode="plan").answer("Looking. " * 300)
    path = made.prompt("Go on planning.", permissionMode="plan").write(tmp_path / "a" / f"{SESSION_ID}.jsonl")
    result = done(path, "full", 10)

    assert [row["permissionMode"] for row in rows(result.output) if row["type"] == "permission-mode"] == ["plan"]
    assert "Plan mode is on" in str([m.content for m in messages(result.output)])
    assert "plan" not in {row.get("permissionMode") for row in rows(done(path, "micro").output)} - {"plan"}


def test_results_of_tools_are_kept_whole_where_the_budget_allows(tmp_path: Path) -> None:
    path = case("compactfail-2", tmp_path)
    target, options = Target(tmp_path / "locks"), Options(20_000, 9_000)
    large = ToolBudgetSettings(result_chars=500_000, results_chars=500_000)
    result = compact(session_file(path), Says(), Choices(options, target, how="auto", budget=large))
    assert result.how in ("full", "micro")
    assert result.changed
