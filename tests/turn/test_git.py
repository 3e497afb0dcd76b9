"""Git in a hostile or broken repository: what it runs, and what it reads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from core.turn.fixed import git_status
from core.turn.git import git_in


def run(folder: Path, *args: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def made(folder: Path, subject: str) -> Path:
    """A repository with one commit."""
    folder.mkdir()
    run(folder, "init", "-q", "-b", "main")
    run(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return made(tmp_path / "repo", "first thing")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A repository that is nobody's business, with a linked worktree and a submodule."""
    folder = made(tmp_path / "private", "secret plan")
    (folder / "secret.txt").write_text("x")
    run(folder, "add", ".")
    run(folder, "worktree", "add", "-q", str(tmp_path / "linked"))
    run(folder, "submodule", "--quiet", "add", str(made(tmp_path / "part", "secret part")), "sub")
    return folder


def test_a_real_repository(repository: Path) -> None:
    (repository / "new.txt").write_text("x")

    text = git_status(git_in(repository, os.environ))

    assert "Branch: main\n\nDefault branch: main\n\nStatus:\n?? new.txt\n\nRecent commits:\n" in text
    assert text.endswith(" first thing")


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = touch {0}/ran; false\n",
        '[filter "own"]\n\tclean = touch {0}/ran; cat\n',
        '[filter "own"]\n\tprocess = touch {0}/ran\n',
        "[include]\n\tpath = {0}/more\n",
        "[extensions]\n\tworktreeConfig = true\n",
        '[LFS "Extension.own"]\n\tclean = touch {0}/ran; cat\n',
    ],
    ids=["monitor", "filter", "process", "included", "worktree", "lfs"],
)
def test_no_program_of_the_repository_runs(repository: Path, settings: str) -> None:
    (repository / "more").write_text(f'[filter "own"]\n\tclean = touch {repository}/ran; cat\n')
    (repository / ".git" / "config.worktree").write_text((repository / "more").read_text())
    (repository / ".gitattributes").write_text("* filter=own\n")
    (repository / "a.txt").write_text("a\n")
    run(repository, "add", ".")
    with (repository / ".git" / "config").open("a") as config:
        config.write(settings.format(repository))
    (repository / "a.txt").write_text("b\n")

    text = git_status(git_in(repository, os.environ))

    assert not (repository / "ran").exists()
    assert ("Status:\nnot known" in text) == ("fsmonitor" not in settings)
    assert "first thing" in text


def test_nothing_that_is_missing_is_fetched(repository: Path, scratch_home: Path) -> None:
    run(repository, "commit", "-q", "--allow-empty", "-m", "second")
    first = run(repository, "rev-parse", "HEAD~1")
    (repository / ".git" / "objects" / first[:2] / first[2:]).unlink()
    trace = scratch_home / "trace"
    (scratch_home / ".gitconfig").write_text(f"[trace2]\n\teventTarget = {trace}\n")
    (repository / ".git" / "config").write_text(
        '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = o\n[protocol "file"]\n'
        f'\tallow = always\n[remote "o"]\n\turl = {repository}\n\tpromisor = true\n'
        f"\tuploadpack = touch {repository}/ran; false\n"
    )

    text = git_status(git_in(repository, os.environ))

    assert not (repository / "ran").exists()
    assert '"log"' in trace.read_text()
    assert '"fetch"' not in trace.read_text()
    assert "Branch: main" in text


def test_a_filter_of_the_user_is_the_users(repository: Path, scratch_home: Path) -> None:
    (scratch_home / ".gitconfig").write_text('[filter "own"]\n\tclean = cat\n')

    assert "Status:\nclean" in git_status(git_in(repository, os.environ))


def test_no_variable_leads_to_another_repository(repository: Path, tmp_path: Path) -> None:
    env = {**os.environ, "GIT_DIR": str(tmp_path / "none")}

    assert "Branch: main" in git_status(git_in(repository, env))


def test_no_repository_and_no_folder(tmp_path: Path) -> None:
    assert git_status(git_in(tmp_path, os.environ)) == ""
    assert git_in(tmp_path / "none", os.environ)(["log"]) is None


def test_in_a_folder_of_a_repository_it_is_that_one(repository: Path) -> None:
    (repository / "src").mkdir()

    assert "first thing" in git_status(git_in(repository / "src", os.environ))


def test_a_linked_worktree_is_its_own(private: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "linked")

    for folder in (tmp_path / "linked", tmp_path / "link"):
        assert "Branch: linked\n" in git_status(git_in(folder, os.environ))


def test_a_submodule_is_its_own(private: Path) -> None:
    assert "secret part" in git_status(git_in(private / "sub", os.environ))
    run(private / "sub", "worktree", "add", "-q", "../of-sub")
    assert "Branch: of-sub\n" in git_status(git_in(private / "of-sub", os.environ))


@pytest.mark.parametrize(
    "target", ["private/.git", "private/.git/worktrees/linked", "private/.git/modules/sub", "linked/.git", "none"]
)
@pytest.mark.parametrize("how", ["file", "link"])
def test_no_file_or_link_leads_to_another_repository(private: Path, tmp_path: Path, target: str, how: str) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    if how == "link":
        (hostile / ".git").symlink_to(tmp_path / target)
    else:
        (hostile / ".git").write_text(f"gitdir: {tmp_path / target}\n")

    assert git_status(git_in(hostile, os.environ)) == ""


def test_no_worktree_of_its_own_making_leads_to_another_repository(
    repository: Path, private: Path, tmp_path: Path
) -> None:
    run(repository, "worktree", "add", "-q", str(tmp_path / "hostile"))
    (repository / ".git" / "worktrees" / "hostile" / "commondir").write_text(str(private / ".git"))

    assert git_status(git_in(tmp_path / "hostile", os.environ)) == ""


@pytest.mark.parametrize("back", [False, True])
def test_a_common_folder_does_not_lead_to_another_repository(repository: Path, private: Path, back: bool) -> None:
    (repository / ".git" / "commondir").write_text(str(private / ".git"))
    if back:
        (repository / ".git" / "gitdir").write_text(str(repository / ".git"))

    assert git_status(git_in(repository, os.environ)) == ""


@pytest.mark.parametrize("bare", [False, True])
def test_no_setting_leads_to_another_folder(repository: Path, tmp_path: Path, bare: bool) -> None:
    (tmp_path / "secret.txt").write_text("x")
    if bare:  # the folder is a repository itself
        (repository / ".git").rename(tmp_path / "moved")
        repository.rmdir()
        (tmp_path / "moved").rename(repository)
        run(repository, "config", "core.bare", "false")
    run(repository, "config", "core.worktree", str(tmp_path))

    assert git_status(git_in(repository, os.environ)) == ""


@pytest.mark.parametrize("lead", ["index", "refs", "refs/heads/main", "objects", "objects/pack", "packed-refs"])
@pytest.mark.parametrize("linked", [False, True])
def test_no_link_in_a_repository_leads_to_another_one(
    repository: Path, private: Path, tmp_path: Path, lead: str, linked: bool
) -> None:
    hostile, own = repository, repository / ".git"
    if linked:
        hostile = tmp_path / "hostile"
        run(repository, "worktree", "add", "-q", str(hostile))
        own = own / "worktrees" / "hostile" if lead == "index" else own
    if (own / lead).exists():
        (own / lead).rename(tmp_path / "away")
    (own / lead).symlink_to(private / ".git" / lead)

    assert git_status(git_in(hostile, os.environ)) == ""
