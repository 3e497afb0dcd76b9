"""What a session is in the middle of: read from its rows, put back behind the summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.compaction.restore import Restored, RestoreLimits
from core.compaction.restore_state import restored_state
from core.compaction.state import NO_STATE, PlanState, Running, State, state_of
from core.context.view import messages_of
from core.model import JSON, Message
from core.testing import Transcript
from core.transcript.chain import load
from tests.disk import on_disk

CASES = Path(__file__).parents[1] / "data" / "cases"
PLAN = "/home/u/.claude/plans/a.md"
SKILL = "Base directory for this skill: /home/u/.claude/skills/{}\n\n# {}\n{}"
LIMITS = RestoreLimits()


def read(made: Transcript) -> tuple[State, tuple[Message, ...]]:
    with on_disk(made) as path:
        log, chain = load(path)
        with log:
            messages = messages_of(log, chain)
            return state_of(log, chain, messages), messages


def state(made: Transcript) -> State:
    return read(made)[0]


def put_back(made: Transcript, stays: Sequence[Message] = (), limits: RestoreLimits = LIMITS) -> list[Restored]:
    found, messages = read(made)
    return [*restored_state(found, messages, stays, limits)]


def case(name: str) -> Transcript:
    made = Transcript()
    made.rows = [json.loads(line) for line in (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return made


def details(made: Transcript, value: JSON) -> Transcript:
    """Sets what the client keeps beside the newest result."""
    made.rows[-1]["toolUseResult"] = value
    return made


def planned(mode: str = "plan", text: str = "# Plan\n1. Split") -> Transcript:
    made = Transcript().prompt("Plan it.", permissionMode=mode).use("ExitPlanMode", "You can start now.", plan=text)
    return details(made, {"plan": text, "filePath": PLAN})


def test_a_session_without_any_of_it_has_no_state() -> None:
    assert state(Transcript().prompt("Hello").answer("Hi.")) == NO_STATE
    assert put_back(Transcript().prompt("Hello").answer("Hi.")) == []


def test_the_newest_mode_counts_wherever_it_is_said() -> None:
    made = Transcript().prompt("One", permissionMode="plan").answer("A").prompt("Two", permissionMode="acceptEdits")
    assert state(made).permission_mode == "acceptEdits"
    assert state(made.beside("permission-mode", permissionMode="default")).permission_mode == "default"
    assert state(made.beside("permission-mode", permissionMode=3)).permission_mode == "default"
    assert state(made.answer("B").note("x").prompt("Three", permissionMode="plan")).permission_mode == "plan"


def test_a_mode_of_a_branch_that_was_left_does_not_count() -> None:
    made = Transcript().prompt("One", permissionMode="default").answer("A")
    at = made.last
    made.prompt("Two", permissionMode="plan").answer("B").back_to(at).prompt("Other way", permissionMode="default")
    assert state(made.answer("C")).permission_mode == "default"


def test_an_approved_plan_is_gone_on_with() -> None:
    made = planned("acceptEdits")
    assert state(made).plan == PlanState(PLAN, "# Plan\n1. Split", state(made).plan.uuids, approved=True)
    (text,) = put_back(made)
    assert "go on with it" in text.text
    assert "1. Split" in text.text
    assert (text.path, text.has_content) == (PLAN, True)


def test_a_plan_that_stays_word_for_word_is_not_put_back_twice() -> None:
    _, messages = read(planned("acceptEdits"))
    assert put_back(planned("acceptEdits"), messages) == []


def test_a_plan_that_was_refused_is_none() -> None:
    made = planned("acceptEdits")
    content = made.rows[-1]["message"]
    assert isinstance(content, dict)
    assert isinstance(content["content"], list)
    assert isinstance(content["content"][0], dict)
    content["content"][0]["is_error"] = True
    assert put_back(made) == []


def test_a_plan_that_is_done_is_not_what_is_to_be_done() -> None:
    made = case("restore-2")
    assert state(made).permission_mode == "acceptEdits"
    (text,) = put_back(made)

    assert f"An earlier plan ({PLAN}) was approved" in text.text
    assert "not what is to be done now" in text.text
    assert "Split module" not in text.text
    assert "Plan mode" not in text.text
    assert not text.has_content


def test_an_approved_plan_of_which_nothing_is_known_is_not_named() -> None:
    assert put_back(details(planned("acceptEdits", text=""), "x")) == []


def test_a_plan_that_is_done_may_have_no_file() -> None:
    made = planned("acceptEdits").prompt("Now the typo.").answer("Done.")
    made.rows[2]["toolUseResult"] = "x"
    assert "An earlier plan was approved" in put_back(made)[0].text


def test_plan_mode_goes_on_with_its_file() -> None:
    made = case("restore-2")
    made.rows = made.rows[:1]
    made.last = str(made.rows[0]["uuid"])
    path = "/home/u/.claude/plans/b.md"
    made.use("Write", "ok", file_path=path, content="# Plan B\nFirst look.").answer("Shall I?")
    (text,) = put_back(made)

    assert "Plan mode is on" in text.text
    assert f"the plan file, {path} (it is there" in text.text
    assert "Change nothing" in text.text
    assert "First look." in text.text
    assert text.path == path


def test_plan_mode_without_a_plan_yet() -> None:
    (text,) = put_back(Transcript().prompt("Plan it.", permissionMode="plan").answer("Looking."))
    assert "Plan mode is on" in text.text
    assert "not named yet" in text.text
    assert not text.text.count("The plan so far")


def test_the_client_says_where_the_plan_goes() -> None:
    made = (
        Transcript().prompt("Plan it.", permissionMode="plan").attachment("date", "today").attachment("plan_mode", "x")
    )
    attachment = made.rows[-1]["attachment"]
    assert isinstance(attachment, dict)
    attachment["planFilePath"] = PLAN
    made.attachment("date", "tomorrow")
    assert state(made).plan.path == PLAN
    other = {"file_path": "/home/u/.claude/plans/other.md", "content": "x"}
    assert state(made.use("Write", "ok", **other)).plan.text == ""


def test_the_plan_on_disk_wins_where_it_is_the_clients(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    plans.mkdir()
    file = plans / "a.md"
    file.write_text("# New plan\ntoken ghp_" + "a1B2" * 9 + "\n" + "step\n" * 9_000, encoding="utf-8")
    made = planned("acceptEdits")
    details(made, {"filePath": str(file)})
    limits = RestoreLimits(plans=plans, file_tokens=500)

    (text,) = put_back(made, limits=limits)
    assert "# New plan" in text.text
    assert "ghp_a1B2" not in text.text
    assert "[cut: it has" in text.text
    assert len(text.text) < 2_000
    assert "1. Split" in put_back(made)[0].text
    assert "1. Split" in put_back(made, limits=RestoreLimits(plans=tmp_path / "elsewhere"))[0].text
    file.unlink()
    assert "1. Split" in put_back(made, limits=limits)[0].text
    file.mkdir()
    assert "1. Split" in put_back(made, limits=limits)[0].text


def launched(made: Transcript, ident: str, what: str = "Look around") -> Transcript:
    made.use("Agent", "Async agent launched successfully.", description=what, prompt="Look")
    told: JSON = {"isAsync": True, "status": "async_launched", "agentId": ident, "description": what}
    return details(made, {**told, "outputFile": f"/tmp/tasks/{ident}.output"} if isinstance(told, dict) else told)


def notified(ident: str) -> str:
    return f"<task-notification>\n<task-id>{ident}</task-id>\n<status>completed</status>\n</task-notification>"


def test_what_runs_in_the_background_is_named_until_it_reports_back() -> None:
    made = launched(launched(Transcript().prompt("Go"), "a1"), "a2", "Count")
    made.use("Bash", "Command running in background with ID: b3", command="make serve", run_in_background=True)
    details(made, {"backgroundTaskId": "b3"})
    made.use("Agent", "Done.", description="At once", prompt="x")
    details(made, {"status": "completed", "agentId": "a9"})

    assert [r.id for r in state(made).running] == ["a1", "a2", "b3"]
    assert state(made).running[0] == Running("a1", "Look around", "/tmp/tasks/a1.output")
    made.prompt(notified("a1"))
    made.use("KillShell", "Killed.", shell_id="b3")
    assert [r.id for r in state(made).running] == ["a2"]
    (text,) = put_back(made)
    assert "- a2: Count (writes to /tmp/tasks/a2.output)" in text.text
    assert "a1" not in text.text


def test_of_very_many_in_the_background_some_are_named_and_all_are_counted() -> None:
    made = Transcript().prompt("Go")
    for n in range(23):
        launched(made, f"a{n:02}")
    (text,) = put_back(made)
    assert text.text.count("writes to") == 20
    assert "- and 3 more" in text.text


def test_a_skill_comes_back_once_the_newest_first_within_its_room() -> None:
    made = Transcript().prompt("Go")
    for name, text in (("old", "Old rules."), ("review", "First."), ("long", "line\n" * 9_000), ("review", "Second.")):
        made.use("Skill", f"Launching skill: {name}", skill=name).note(SKILL.format(name, name, text))
    made.note("Another note")
    found = put_back(made)

    assert [r.path for r in found] == ["skill review", "skill long", "skill old"]
    assert "Second." in found[0].text
    assert "[cut: it has" in found[1].text
    assert len(found[1].text) < 5_000 * 3 + 200
    kept = [m for m in read(made)[1] if "Second." in str(m.content)]
    assert [r.path for r in put_back(made, kept)] == ["skill long", "skill old"]


def test_of_many_skills_the_newest_come_back() -> None:
    made = Transcript().prompt("Go")
    for name in "abcdefg":
        made.use("Skill", f"Launching skill: {name}", skill=name).note(SKILL.format(name, name, "line\n" * 9_000))

    found = put_back(made)

    assert [r.path for r in found] == [f"skill {name}" for name in "gfed"]
    assert sum(len(r.text) for r in found) <= 25_000 * 3


def test_what_the_user_typed_meanwhile_comes_back_word_for_word() -> None:
    made = case("summary-1")
    (text,) = put_back(made)
    assert "also: keep the old flag as an alias" in text.text


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([("enqueue", "a"), ("dequeue", None)], ()),
        ([("enqueue", "a"), ("enqueue", "b"), ("dequeue", None)], ("b",)),
        ([("enqueue", "a"), ("enqueue", "b"), ("remove", "b")], ("a",)),
        ([("enqueue", "a"), ("popAll", None)], ()),
        ([("dequeue", None), ("enqueue", "a")], ("a",)),
        ([("enqueue", None), ("enqueue", "a"), ("dequeue", None)], ("a",)),
        ([("enqueue", "Hello ")], ()),
        ([("enqueue", notified("a1"))], ()),
        ([("unknown", "a")], ()),
    ],
)
def test_the_queue_holds_what_no_turn_took_up(rows: list[tuple[str, str | None]], left: tuple[str, ...]) -> None:
    made = Transcript().prompt("Hello").answer("Hi.")
    for operation, content in rows:
        made.beside("queue-operation", operation=operation, **({} if content is None else {"content": content}))
    assert state(made).queued == left
