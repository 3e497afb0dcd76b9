"""What stands in front of every history and changes as seldom as possible: git status, memory files, today's date.

Each part is found out once a session.  What changes later becomes an attachment: a new prefix costs a whole cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from core.attachments.base import Files
from core.attachments.memory_files import MemoryFile, of_folder, rules_of, with_imports
from core.model import REMINDER, Message, text_block
from core.redact.text import redact
from core.turn.git import Git

STATUS_CHARS = 2_000
"""Of the git status: a tree with more changes than that says no more by being listed."""
_COMMITS = 5
_WHOSE = {
    "User": "the person's own, for all projects",
    "Project": "of this project, for everybody",
    "Local": "the person's own, for this project",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session works, and what tells about it; all of it is handed in."""

    cwd: str
    """"" where that folder is not on this machine."""
    home: str
    claude_dir: str
    files: Files
    today: Callable[[], str]
    """The local date, as in 2026-11-30."""
    git: Git | None = None
    """None: no git status is wanted."""
    injected: Callable[[], Collection[str]] = tuple
    """The memory files that the model gets another way."""
    cache_breaker: str = ""
    """Any text: a new one forces a new prefix, and does nothing else."""


@dataclass(frozen=True, slots=True)
class UserContext:
    """Instructions and date: the text, the date that it says, and the memory files that need not be given again."""

    text: str
    date: str
    loaded: frozenset[str]

    def message(self) -> Message:
        """It as the first message of a request."""
        return Message("user", "meta", (text_block(REMINDER.format(self.text)),), ("user-context",))


class FixedContext:
    """The fixed context of one session; after a compaction it is found out anew (`clear`)."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @cached_property
    def system(self) -> str:
        """The system context: git status and cache breaker; "" where there is neither."""
        breaker = self.place.cache_breaker
        parts = (git_status(self.place.git) if self.place.git else "", f"[{breaker}]" if breaker else "")
        return "\n\n".join(filter(None, parts))

    @cached_property
    def user(self) -> UserContext:
        """The user context: the memory files that apply, and the date."""
        injected, date = self.place.injected(), self.place.today()
        files = [*memory_files(self.place, injected)]
        head = ["# Instructions\n\nFollow them; where they differ, the last one counts."] if files else []
        text = "\n\n".join([*head, *map(_shown, files), f"# Date\n\nToday is {date}."])
        return UserContext(text, date, frozenset([*injected, *(file.path for file in files)]))

    def clear(self) -> None:
        """Forget all of it: what is asked for next is as of then."""
        for name in ("system", "user"):
            self.__dict__.pop(name, None)


def git_status(git: Git) -> str:
    """Branch, default branch, short status and recent commits, bounded; "" outside a repository."""
    if git(["rev-parse", "--is-inside-work-tree"]) != "true":
        return ""
    branch = git(["branch", "--show-current"]) or f"none (at {git(['rev-parse', '--short', 'HEAD']) or 'no commit'})"
    status = git(["status", "--short", "--ignore-submodules=all"])
    log = git(["log", "--oneline", "--no-decorate", f"--max-count={_COMMITS}"])
    text = "\n\n".join(
        [
            f"Git, when this was looked up; it is not kept up to date.\nBranch: {branch}",
            f"Default branch: {_default_branch(git)}",
            "Status:\n" + ("not known" if status is None else status or "clean"),
            "Recent commits:\n" + (log or "none"),
        ]
    )
    text = redact(text)
    note = "\n[cut: git status says more]"
    return text if len(text) <= STATUS_CHARS else text[: STATUS_CHARS - len(note)] + note


def _default_branch(git: Git) -> str:
    if remote := git(["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]):
        return remote.removeprefix("origin/")
    known = (name for name in ("main", "master") if git(["rev-parse", "--verify", "--quiet", f"refs/heads/{name}"]))
    return next(known, "not known")


def memory_files(place: Place, injected: Collection[str] = ()) -> Iterator[MemoryFile]:
    """The person's own files, then those of each folder from the top down to the working folder, with imports."""
    done = set(injected)
    for file in _named(place):
        if not file.globs:  # rules for some paths come when such a path is touched
            yield from with_imports(file, place.files, place.home, done)


def _named(place: Place) -> Iterator[MemoryFile]:
    own = os.path.join(place.claude_dir, "CLAUDE.md")
    text = place.files.read(own)
    if text is not None:
        yield MemoryFile(own, "User", text)
    yield from rules_of(place.claude_dir, "User", place.files)
    cwd = PurePath(place.cwd)
    for folder in (*reversed(cwd.parents), cwd) if place.cwd else ():
        yield from of_folder(str(folder), place.files)


def _shown(file: MemoryFile) -> str:
    return f"Contents of {file.path} ({_WHOSE[file.level]}):\n\n{file.shown().strip()}"
