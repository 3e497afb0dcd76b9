"""The fixed context: what is in it, that it stays, and what a hostile or broken project does to it."""

from __future__ import annotations

from collections.abc import Sequence

from core.turn.fixed import STATUS_CHARS, FixedContext, Place, git_status
from core.turn.git import Git
from tests.attachments.build import FakeFiles

TEXTS = {
    "/home/me/.claude/CLAUDE.md": "be brief @~/more.md",
    "/home/me/.claude/rules/all.md": "no swearing",
    "/home/me/.claude/rules/py.md": "---\npaths: '*.py'\n---\ntabs",
    "/home/me/more.md": "and kind",
    "/home/me/w/CLAUDE.md": "project rule",
    "/home/me/w/CLAUDE.local.md": "local rule",
    "/home/AGENTS.md": "above",
}


class Asked:
    """Answers git's questions from a table, and counts them."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.count = 0

    def __call__(self, args: Sequence[str]) -> str | None:
        self.count += 1
        return next((text for key, text in self.answers.items() if " ".join(args).startswith(key)), None)


def place(
    texts: dict[str, str] = TEXTS, git: Git | None = None, injected: Sequence[str] = (), breaker: str = ""
) -> Place:
    dates = iter(["2026-11-30", "2026-12-01"])
    files = FakeFiles(texts)
    return Place(
        "/home/me/w", "/home/me", "/home/me/.claude", files, lambda: next(dates), git, lambda: injected, breaker
    )


def test_memory_files_stand_from_the_person_down_to_the_working_folder() -> None:
    text = FixedContext(place()).user.text

    order = ["be brief", "and kind", "no swearing", "above", "project rule", "local rule", "Today is 2026-11-30."]
    assert sorted(order, key=text.index) == order
    assert "tabs" not in text
    assert "Contents of /home/me/w/CLAUDE.local.md (the person's own, for this project):\n\nlocal rule" in text


def test_the_files_are_named_so_that_nobody_gives_them_again() -> None:
    loaded = FixedContext(place(injected=["/home/me/w/CLAUDE.md"])).user.loaded

    assert loaded == {*TEXTS} - {"/home/me/.claude/rules/py.md"}


def test_what_was_injected_another_way_is_left_out() -> None:
    assert "project rule" not in FixedContext(place(injected=["/home/me/w/CLAUDE.md"])).user.text


def test_it_is_found_out_once_and_anew_after_a_compaction() -> None:
    where = place()
    fixed = FixedContext(where)
    assert isinstance(where.files, FakeFiles)
    first = fixed.user
    where.files.texts["/home/me/w/CLAUDE.md"] = "new rule"

    assert fixed.user is first
    fixed.clear()
    assert "new rule" in fixed.user.text
    assert fixed.user.date == "2026-12-01"


def test_without_memory_files_there_is_the_date_alone() -> None:
    user = FixedContext(place({})).user

    assert user.text == "# Date\n\nToday is 2026-11-30."
    assert user.message().content == (
        {"type": "text", "text": "<system-reminder>\n# Date\n\nToday is 2026-11-30.\n</system-reminder>"},
    )


def test_a_breaker_is_all_that_changes_the_prefix() -> None:
    assert FixedContext(place()).system == ""
    assert FixedContext(place(breaker="one")).system == "[one]"


def test_git_is_asked_once() -> None:
    git = Asked({"rev-parse --is-inside": "true", "branch": "main"})
    fixed = FixedContext(place(git=git))

    first, count = fixed.system, git.count
    assert fixed.system == first
    assert git.count == count


def test_outside_a_repository_there_is_no_status() -> None:
    assert git_status(Asked({"rev-parse --is-inside": "false"})) == ""
    assert git_status(Asked({})) == ""


def test_a_long_status_is_cut() -> None:
    text = git_status(Asked({"rev-parse --is-inside": "true", "status": " M file\n" * 1_000}))

    assert len(text) == STATUS_CHARS
    assert text.endswith("\n[cut: git status says more]")


def test_what_git_does_not_say_is_not_known() -> None:
    text = git_status(Asked({"rev-parse --is-inside": "true"}))

    assert text.endswith(
        "Branch: none (at no commit)\n\nDefault branch: not known\n\nStatus:\nnot known\n\nRecent commits:\nnone"
    )


def test_the_default_branch_is_the_one_of_the_remote() -> None:
    text = git_status(Asked({"rev-parse --is-inside": "true", "symbolic-ref": "origin/trunk", "status": ""}))

    assert "Default branch: trunk\n\nStatus:\nclean" in text
