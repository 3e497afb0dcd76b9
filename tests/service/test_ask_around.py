"""What a question is sent with beside the session: what stands in front, and what has changed since it ended."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.compaction.full import Options
from core.compaction.hooks import CommandHooks
from core.defaults import KEEP_TOKENS
from core.memory.extract import ByRule
from core.memory.files import MemoryFiles
from core.model import JSON
from core.service.ask import AskOptions, AskResult, Voice, ask
from core.service.job import Choices
from core.service.memory import update
from core.service.operation import Target
from core.service.surroundings import Workstation
from core.summarizers.base import DEFAULT_BUDGET_CHARS
from core.testing import Transcript
from core.transcript.projects import session_file
from core.turn.git import Git, git_in
from tests.turn.fake import Fake

NOW = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "work" / "app"
    (made / "src").mkdir(parents=True)
    (made / "CLAUDE.md").write_text("Use tabs. See @style.md")
    (made / "style.md").write_text("No jokes.")
    (made / "src" / "CLAUDE.md").write_text("These are drafts.")
    (made / "src" / "p.py").write_text("def parse():\n    return 1\n")
    own = tmp_path / "home" / ".claude"
    own.mkdir()
    (own / "CLAUDE.md").write_text("Be brief. @secret.txt")
    (own / "secret.txt").write_text("not for projects")
    return made


def no_git(_folder: Path) -> Git:
    return lambda args: {"rev-parse": "true", "branch": "feature-x"}.get(args[0])


def machine(project: Path, **fields: Any) -> Workstation:
    home = project.parents[1]
    return Workstation(**{"home": home, "claude_dir": home / ".claude", "git": no_git, **fields})


def asked(path: Path, fake: Fake, on: Workstation | None, save: bool = False, **choices: Any) -> AskResult:
    voice = Voice(fake, lambda: NOW, lambda: 0.0)
    options = Options(choices.pop("keep_tokens", KEEP_TOKENS), DEFAULT_BUDGET_CHARS)
    chosen = Choices(options, Target(path.parent / "locks"), **choices)
    return ask(session_file(path), "What was fixed?", chosen, voice, AskOptions(save=save), on)


def story(project: Path) -> Transcript:
    made = Transcript(cwd=str(project), model="claude-opus-4-5").prompt("Fix the parser.")
    read(made, project / "src" / "p.py", "def parse():\n    return 1\n")
    return made.answer("Fixed.")


def read(made: Transcript, path: Path, text: str, first: int = 1, of: int | None = None) -> None:
    made.use("Read", f"1\t{text}", file_path=str(path))
    lines = text.count("\n") + 1
    file: JSON = {
        "filePath": str(path), "content": text, "numLines": lines, "startLine": first, "totalLines": of or lines,
    }  # fmt: skip
    made.rows[-1]["toolUseResult"] = {"type": "text", "file": file}


def edit(made: Transcript, path: Path, old: str, new: str, **more: JSON) -> None:
    made.use("Edit", "done", file_path=str(path), old_string=old, new_string=new)
    made.rows[-1]["toolUseResult"] = {"filePath": str(path), "oldString": old, "newString": new, **more}


def body(fake: Fake) -> str:
    return str(fake.bodies[-1])


def last(fake: Fake) -> list[str]:
    """The texts of the last message: the question, and what is told behind it."""
    return [b["text"] for b in fake.bodies[-1]["messages"][-1]["content"]]


def test_in_front_stand_git_status_memory_files_and_the_date_of_the_session(project: Path, tmp_path: Path) -> None:
    asked(story(project).write(tmp_path / "s.jsonl"), fake := Fake(), machine(project))

    front = fake.bodies[0]["messages"][0]["content"][0]["text"]
    order = ["Be brief.", "Use tabs.", "No jokes.", "Today is 2026-01-05."]
    assert sorted(order, key=front.index) == order
    assert "not for projects" not in front
    assert "Branch: feature-x" in fake.bodies[0]["system"][-1]["text"]


def test_what_has_changed_since_stands_behind_the_question(project: Path, tmp_path: Path) -> None:
    path = story(project).write(tmp_path / "s.jsonl")
    (project / "src" / "p.py").write_text(
        "def parse():\n    return 2\n    token = 'ghp_0123456789abcdefABCDEF0123456789abcd'\n"
    )

    result = asked(path, fake := Fake(), machine(project, zone=timezone(timedelta(hours=2))))

    question, *told = last(fake)
    assert question == "What was fixed?"
    assert result.attachments == ["date_change", "changed_files", "nested_memory"]
    assert "Today is 2026-03-02." in told[0]
    assert "-    return 1\n+    return 2" in told[1]
    assert "ghp_0123" not in body(fake)
    assert "These are drafts." in told[2]


def test_where_nothing_has_changed_nothing_is_told(project: Path, tmp_path: Path) -> None:
    (project / "src" / "CLAUDE.md").unlink()
    made = story(project)
    day = NOW.replace(hour=9).isoformat()
    for row in made.rows:
        row["timestamp"] = day

    result = asked(made.write(tmp_path / "s.jsonl"), fake := Fake(), machine(project))

    assert result.attachments == []
    assert last(fake) == ["What was fixed?"]


def test_bare_nothing_but_the_session_is_sent(project: Path, tmp_path: Path) -> None:
    path = story(project).write(tmp_path / "s.jsonl")
    (project / "src" / "p.py").unlink()

    result = asked(path, fake := Fake(), None)

    assert result.attachments == []
    assert len(fake.bodies[0]["system"]) == 1
    assert "Use tabs." not in body(fake)


@pytest.mark.parametrize("where", ["home", "gone", ""])
def test_of_a_folder_that_is_no_project_here_nothing_is_looked_at(where: str, project: Path, tmp_path: Path) -> None:
    home = project.parents[1]
    (home / "CLAUDE.md").write_text("Of the home folder.")
    cwd = {"home": str(home), "gone": str(tmp_path / "gone"), "": ""}[where]
    made = Transcript(cwd=cwd, model="claude-opus-4-5").prompt("Hi.")
    read(made, project / "src" / "p.py", "something else")

    result = asked(made.answer("Yes.").write(tmp_path / "s.jsonl"), fake := Fake(), machine(project))

    assert result.attachments == ["date_change"]
    assert "Branch:" not in body(fake)
    assert "Of the home folder." not in body(fake)
    assert "Be brief." in body(fake)  # the person's own rules count everywhere


def test_a_file_is_known_as_it_was_written_last(project: Path, tmp_path: Path) -> None:
    src = project / "src"
    made = story(project)
    edit(made, src / "p.py", "return 1", "return 3")
    edit(made, src / "new.py", "", "x = 1\n")
    edit(made, src / "own.py", "a", "b", originalFile="a a\n", replaceAll=True)
    edit(made, src / "lost.py", "a", "b")
    made.use("Write", "done", file_path=str(src / "w.py"), content="w\n")
    made.rows[-1]["toolUseResult"] = {"type": "create", "filePath": str(src / "w.py"), "content": "w\n"}
    read(made, src / "part.py", "line 5\n", first=5, of=90)
    read(made, tmp_path / "outside.py", "outside\n")
    made.use("Bash", "ok", command="make")
    (src / "p.py").write_text("def parse():\n    return 3\n")
    (src / "new.py").write_text("x = 1\n")
    (src / "own.py").write_text("b b\n")
    (src / "w.py").write_text("w\n")

    result = asked(made.answer("Yes.").write(tmp_path / "s.jsonl"), Fake(), machine(project))
    assert "changed_files" not in result.attachments

    (src / "own.py").write_text("b c\n")
    (src / "w.py").unlink()
    result = asked(tmp_path / "s.jsonl", fake := Fake(), machine(project))
    told = next(t for t in last(fake) if "changed on disk" in t)
    assert "-b b\n+b c" in told
    assert "w.py was deleted." in told
    assert told.count(str(src)) == 2


def test_what_no_turn_took_up_the_plan_and_the_open_tasks_are_told(project: Path, tmp_path: Path) -> None:
    made = story(project)
    plan = project.parents[1] / ".claude" / "plans" / "p.md"
    tasks: JSON = [{"content": "Write the docs", "status": "pending"}, {"content": "Parse", "status": "completed"}]
    made.use("TodoWrite", "ok", todos=tasks)
    for number in range(11):
        made.use("Bash", "ok", command=f"make {number}")
    made.use("Write", "ok", file_path=str(plan), content="# Plan").answer("Planned.")
    made.beside("permission-mode", permissionMode="plan")
    made.beside("queue-operation", operation="enqueue", content="Then release it. The password is hunter2hunter2.")

    result = asked(made.write(tmp_path / "s.jsonl"), fake := Fake(), machine(project))

    assert {"queued_command", "plan_mode", "task_reminder"} <= {*result.attachments}
    assert "Then release it." in body(fake)
    assert "hunter2" not in body(fake)
    assert f"{plan} (it does not exist yet)" in body(fake)
    assert "[pending] Write the docs" in body(fake)


def test_what_the_client_announced_is_announced_again_only_once_a_compaction_ate_it(
    project: Path, tmp_path: Path
) -> None:
    made, drafts, rules = story(project), str(project / "src" / "CLAUDE.md"), str(project / "CLAUDE.md")
    announced(made, {"type": "agent_listing_delta", "addedTypes": ["tester"], "addedLines": ["tester: runs tests"]})
    content: JSON = {"path": drafts, "content": "These are drafts."}
    announced(made, {"type": "nested_memory", "path": drafts, "content": content})
    announced(made, {"type": "instructions", "files": [{"path": rules, "content": "Use tabs."}]})
    secret = "Use token=ghp_0123456789abcdefABCDEF0123456789abcd."
    announced(made, {"type": "mcp_instructions_delta", "addedNames": ["db"], "addedBlocks": [f"## db\n{secret}"]})
    announced(made, {"type": "unheard_of"})
    path = made.answer("So.").write(tmp_path / "s.jsonl")

    result = asked(path, fake := Fake(), machine(project))
    assert result.attachments == ["date_change"]
    assert "Use tabs." not in fake.bodies[0]["messages"][0]["content"][0]["text"]

    too_much(made).write(path)
    result = asked(path, fake := Fake(), machine(project), keep_tokens=10_000)
    assert "full" in {s.stage for s in result.stages}
    assert "agent_listing_delta" in result.attachments
    assert "tester: runs tests" in body(fake)
    assert "mcp_instructions_delta" in result.attachments
    assert "ghp_0123" not in body(fake)
    assert "Use tabs." in fake.bodies[-1]["messages"][0]["content"][0]["text"]


def too_much(made: Transcript) -> Transcript:
    """More than the window holds, in what only a summary can make smaller."""
    made.prompt("Read this: " + "word " * 150_000).answer("Read.")
    for number in range(20):
        made.prompt(f"Request {number}: " + "word " * 300).answer(f"Answer {number}.")
    return made


def announced(made: Transcript, data: dict[str, JSON]) -> None:
    made.attachment(str(data["type"]), f"told of {data['type']}")
    made.rows[-1]["attachment"] = data


def test_the_hooks_of_the_user_have_their_say(project: Path, tmp_path: Path) -> None:
    path = too_much(story(project)).write(tmp_path / "s.jsonl")
    log = tmp_path / "log"
    hooks = CommandHooks(started=["echo Mind the gap."], after=[f"cat > {log}; exit 1"])

    result = asked(path, fake := Fake(), machine(project), hooks=hooks, keep_tokens=10_000)

    assert "Mind the gap." in body(fake)
    assert str(path) in log.read_text()
    assert any("PostCompact hook" in warning for warning in result.warnings)


def test_a_saved_session_holds_what_was_told(project: Path, tmp_path: Path) -> None:
    path = story(project).write(tmp_path / "s.jsonl")
    (project / "src" / "p.py").write_text("def parse():\n    return 2\n")

    result = asked(path, Fake(), machine(project), save=True)

    saved = Path(result.output).read_text()
    assert "return 2" in saved
    assert "Use tabs." not in saved  # its client puts that in front of every session
    again = asked(Path(result.output), fake := Fake(), machine(project))
    assert "What was fixed?" in body(fake)
    assert "date_change" not in again.attachments


def test_git_is_asked_in_the_folder_of_the_project(project: Path, tmp_path: Path) -> None:
    result = asked(
        story(project).write(tmp_path / "s.jsonl"),
        fake := Fake(),
        machine(project, git=partial(git_in, env=os.environ)),
    )

    assert result.answer == "Done."
    assert "Branch:" not in body(fake)  # no repository


def test_the_notes_of_the_session_stand_for_what_does_not_fit(project: Path, tmp_path: Path) -> None:
    path = too_much(story(project)).write(tmp_path / "s.jsonl")
    update(session_file(path), ByRule())
    hooks = CommandHooks(before=["echo; exit 0"], started=["echo Mind the gap."])

    result = asked(path, fake := Fake(), machine(project), hooks=hooks, keep_tokens=10_000)

    assert "memory" in {s.stage for s in result.stages}
    assert "Notes on the conversation so far" in body(fake)
    assert "Mind the gap." in body(fake)


def test_notes_that_cannot_be_read_give_way_to_a_summary(project: Path, tmp_path: Path) -> None:
    path = too_much(story(project)).write(tmp_path / "s.jsonl")
    files = MemoryFiles.beside(session_file(path))
    files.notes_path.mkdir(parents=True)

    result = asked(path, Fake(), machine(project), keep_tokens=10_000)

    assert "full" in {s.stage for s in result.stages}


def test_another_clients_session_is_told_what_is_new_too(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes."}]}')

    result = asked(path, fake := Fake(), machine(project))

    assert result.attachments == []  # when it was is not known
    assert "Today is 2026-03-01." in body(fake)
