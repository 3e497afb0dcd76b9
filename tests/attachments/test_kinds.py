"""Each kind by itself: when it is due, what it says, and that it is said once."""

from __future__ import annotations

import pytest

from core.attachments import scan
from core.attachments.base import Attachment, KnownFile, Planning, Queued, Task, World
from core.attachments.changed_files import DIFF_CHARS, MOST_FILES, TOTAL_CHARS, ChangedFiles, diff_of
from core.attachments.context_efficiency import ContextEfficiency
from core.attachments.date_change import DateChange
from core.attachments.dynamic_skill import DynamicSkill
from core.attachments.plan_mode import EVERY_RESPONSES, FULL_EVERY, PlanMode
from core.attachments.queued_command import QueuedCommand
from core.attachments.task_reminder import IDLE_RESPONSES, TaskReminder
from core.model import Block
from tests.attachments.build import FakeFiles

IMAGE: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}


def test_a_date_is_said_when_it_is_not_the_one_said_last() -> None:
    before = World(date="2026-11-30", prefix_date="2026-11-30")
    after = World(date="2026-12-01", prefix_date="2026-11-30")

    assert scan(before, ()).attachments == ()
    said = scan(after, ()).attachments
    assert said == (DateChange("2026-12-01"),)
    assert said[0].text() == "The date has changed. Today is 2026-12-01."
    assert scan(after, said).attachments == ()
    assert scan(World(date="2026-12-02", prefix_date="2026-11-30"), said).attachments == (DateChange("2026-12-02"),)


@pytest.mark.parametrize("world", [World(date="2026-11-30"), World(prefix_date="2026-11-30"), World()])
def test_a_date_that_is_not_known_is_not_said(world: World) -> None:
    assert scan(world, ()).attachments == ()


def test_input_that_arrived_is_shown_once_as_a_prompt_with_its_images() -> None:
    world = World(queued=[Queued("q1", ({"type": "text", "text": "and the docs"}, {**IMAGE}))])

    found = scan(world, ()).attachments

    assert len(found) == 1
    assert isinstance(found[0], QueuedCommand)
    assert found[0].blocks()[0]["text"] == found[0].text()
    assert "and the docs" in found[0].text()
    assert found[0].blocks()[1] == IMAGE
    assert scan(world, found).attachments == ()


def test_a_text_of_a_client_is_an_input_too() -> None:
    assert "\n\nstop\n\n" in QueuedCommand("stop").text()


def test_a_proposal_that_is_due_is_carried_as_it_is() -> None:
    found = scan(World(nudge="Take out abc123."), ()).attachments

    assert found == (ContextEfficiency("Take out abc123."),)
    assert found[0].text() == "Take out abc123."


def test_planning_is_said_in_full_first_then_briefly_and_in_full_again() -> None:
    earlier: list[Attachment] = []
    for responses in range(EVERY_RESPONSES * FULL_EVERY + 1):
        earlier += scan(World(responses=responses, planning=Planning("/p/plan.md", True)), earlier).attachments

    kinds = [a.reminder_type for a in earlier if isinstance(a, PlanMode)]
    assert kinds == ["full", *["sparse"] * (FULL_EVERY - 1), "full"]
    assert "/p/plan.md (it is there" in earlier[0].text()
    assert earlier[1].text() == "Still planning: change nothing but the plan file, /p/plan.md."
    assert "does not exist yet" in PlanMode("full", "/p", False).text()


def test_without_planning_nothing_is_said_about_it() -> None:
    assert scan(World(responses=100), ()).attachments == ()


def test_the_task_list_is_brought_to_mind_when_it_was_idle_for_long() -> None:
    tasks = [Task(str(n), f"task {n}", "pending") for n in range(40)]
    early = World(responses=IDLE_RESPONSES + 2, tasks=tasks, last_task_response=3)
    due = World(responses=IDLE_RESPONSES + 3, tasks=tasks, last_task_response=3)

    assert scan(early, ()).attachments == ()
    found = scan(due, ()).attachments
    assert isinstance(found[0], TaskReminder)
    assert "- #1 [pending] task 1\n" in found[0].text()
    assert found[0].text().endswith("- and 10 more")
    assert scan(World(responses=IDLE_RESPONSES + 12, tasks=tasks, last_task_response=3), found).attachments == ()
    assert scan(World(responses=99, last_task_response=3), ()).attachments == ()


def test_a_short_list_is_shown_whole() -> None:
    found = scan(World(responses=50, tasks=[Task("1", "x" * 500, "pending")]), ()).attachments

    assert found[0].text().endswith("[pending] " + "x" * 200)


class TestChangedFiles:
    def world(self, files: FakeFiles, known: dict[str, KnownFile]) -> World:
        return World(files=files, known_files=known)

    def test_the_content_is_looked_at_only_when_the_time_changed(self) -> None:
        files = FakeFiles({"/w/a.py": "new"})
        assert scan(self.world(files, {"/w/a.py": KnownFile("old", 1)}), ()).attachments == ()
        assert files.reads == []

    def test_the_same_content_at_another_time_is_no_change(self) -> None:
        files = FakeFiles({"/w/a.py": "old"})
        files.times["/w/a.py"] = 2
        assert scan(self.world(files, {"/w/a.py": KnownFile("old", 1)}), ()).attachments == ()

    def test_a_change_is_told_once_as_a_diff_and_the_next_one_again(self) -> None:
        files = FakeFiles({"/w/a.py": "one\ntwo\nthree\n"})
        files.times["/w/a.py"] = 2
        world = self.world(files, {"/w/a.py": KnownFile("one\nzwei\nthree\n", 1)})

        first = scan(world, ()).attachments
        assert "/w/a.py:\n@@ -1,3 +1,3 @@\n one\n-zwei\n+two\n three" in first[0].text()
        assert scan(world, first).attachments == ()
        files.times["/w/a.py"] = 3
        assert scan(world, first).attachments == ()  # touched, not changed
        files.texts["/w/a.py"] = "one\n2\nthree\n"
        second = scan(world, first).attachments
        assert "-zwei\n+2" in second[0].text()
        assert scan(world, [*first, *second]).attachments == ()

    def test_a_deleted_file_is_told_once_and_when_it_is_back(self) -> None:
        files = FakeFiles({})
        world = self.world(files, {"/w/a.py": KnownFile("old", 1)})

        gone = scan(world, ()).attachments
        assert "/w/a.py was deleted." in gone[0].text()
        assert scan(world, gone).attachments == ()
        files.texts["/w/a.py"] = "old"
        back = scan(world, gone).attachments
        assert "/w/a.py: read it again if you need it." in back[0].text()

    def test_secrets_are_never_shown_neither_whole_files_nor_in_a_diff(self) -> None:
        key = "AKIA" + "Q7XWZP3M5N8R2T4V"
        files = FakeFiles({"/w/.env": "A=2", "/w/conf.py": f'aws = "{key}"\n'})
        files.times |= {"/w/.env": 2, "/w/conf.py": 2}
        known = {"/w/.env": KnownFile("A=1", 1), "/w/conf.py": KnownFile("", 1)}

        found = scan(self.world(files, known), ()).attachments

        assert ".env" not in found[0].text()
        assert "/w/.env" not in files.reads
        assert "/w/conf.py" in found[0].text()
        assert key not in found[0].text()

    def test_what_is_no_text_is_passed_over(self) -> None:
        class Binary(FakeFiles):
            def read(self, path: str) -> str | None:
                return None

        files = Binary({"/w/a.bin": ""})
        files.times["/w/a.bin"] = 2
        assert scan(self.world(files, {"/w/a.bin": KnownFile("", 1)}), ()).attachments == ()

    def test_diffs_are_bounded_each_and_all_together_and_so_are_the_files(self) -> None:
        paths = [f"/w/{n}.txt" for n in range(MOST_FILES + 5)]
        files = FakeFiles({path: "\n".join(f"line {n}" for n in range(1_000)) for path in paths})
        files.times = dict.fromkeys(paths, 2)
        world = self.world(files, {path: KnownFile("", 1) for path in paths})

        found = scan(world, ()).attachments

        assert isinstance(found[0], ChangedFiles)
        diffs = [change.diff for change in found[0].files]
        assert len(diffs) == MOST_FILES
        assert max(map(len, diffs)) <= DIFF_CHARS
        assert sum(map(len, diffs)) <= TOTAL_CHARS
        assert diffs[0].endswith("\n[more changes: read the file]")
        rest = scan(world, found).attachments
        assert isinstance(rest[0], ChangedFiles)
        assert len(rest[0].files) == 5

    def test_of_huge_texts_no_diff_is_made(self) -> None:
        assert diff_of("a\n" * 9_000, "b\n", 1_000) == ""


class TestDynamicSkill:
    def test_skills_below_the_working_folder_are_found_by_what_was_touched(self) -> None:
        files = FakeFiles(
            {
                "/w/.claude/skills/top/SKILL.md": "",
                "/w/sub/.claude/skills/lint/SKILL.md": "",
                "/w/sub/.claude/skills/draft/notes.txt": "",
                "/w/sub/deep/a.py": "",
            }
        )
        world = World(files=files, cwd="/w", touched=["/w/sub/deep/a.py", "/elsewhere/a.py", "/w/b.py"])

        found = scan(world, ()).attachments

        assert found == (DynamicSkill("/w/sub/.claude/skills", ("lint",), "sub/.claude/skills"),)
        assert found[0].text() == "sub/.claude/skills brings skills that can be used: lint."
        assert scan(world, found).attachments == ()
        files.texts["/w/sub/.claude/skills/test/SKILL.md"] = ""
        assert scan(world, found).attachments == (
            DynamicSkill("/w/sub/.claude/skills", ("test",), "sub/.claude/skills"),
        )
