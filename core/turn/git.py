"""Git in a folder that a stranger may have packed: it runs no program that the repository names, and reads no other."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from core.environment import small
from core.transcript.ordinary import open_ordinary

_LIMIT_S = 5.0
"""A status that takes longer (a huge tree, a dead network disk) is left out."""
_SET = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "fetch.bundleURI=",
    "log.showSignature=false",
    "color.ui=false",
)
_OPTIONS = ("--no-optional-locks", *(part for setting in _SET for part in ("-c", setting)))
_GIVEN = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""A missing object would be fetched, by a program that the repository names."""
_OWN_FILTER = re.compile(r"^(?:local|worktree)\t(?:filter|lfs\.extension)\.", re.MULTILINE | re.IGNORECASE)
"""A filter in the repository's own settings or in what these include, or what the one for large files (LFS) is to run;
other filters of the user are the user's."""
_LEADS = ("index", "packed-refs", "refs", "reftable", "objects")
"""Where a repository has what git shows of it: names of branches and files, and commits."""
_PATH_BYTES = 8_192

Git: TypeAlias = Callable[[Sequence[str]], str | None]
"""Runs `git` with some arguments in the working folder: what it prints, None when it failed or took too long."""


def git_in(folder: Path, env: Mapping[str, str]) -> Git:
    """Git in a folder: asks nothing, writes nothing, fetches nothing, and runs no program that a repository names.

    Everything is refused where a repository leads to another one, or to another folder; a status, where the
    repository's settings name filters: git might run them.  `env`: the process's variables, of which git gets what
    says who and where one is, and none that names another repository or settings.
    """
    given = {**small(env), **_GIVEN}

    def run(args: Sequence[str]) -> str | None:
        try:
            done = subprocess.run(
                ["git", *_OPTIONS, *args],
                cwd=folder,
                env=given,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        return done.stdout.decode("utf-8", "replace").rstrip() if done.returncode == 0 else None

    @cache
    def is_own() -> bool:
        try:
            return _is_own(folder, run)
        except (OSError, ValueError):
            return False

    def guarded(args: Sequence[str]) -> str | None:
        if not is_own():
            return None
        if args[0] == "status":
            settings = run(["config", "--list", "--show-scope", "--name-only"])
            if settings is None or _OWN_FILTER.search(settings):
                return None
        return run(args)

    return guarded


def _is_own(folder: Path, git: Git) -> bool:
    """Whether the repository lies where it was found, in or above the folder, or names that place in return.

    A file `.git`, `commondir` and `core.worktree` can lead anywhere.  Where git itself writes such files, for linked
    worktrees and for submodules, the repository that they lead to says where they are.
    """
    here = Path(os.path.realpath(folder))
    found = next((parent / ".git" for parent in (here, *here.parents) if os.path.lexists(parent / ".git")), None)
    told = (git(["rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"]) or "").split("\n")
    if len(told) != 3 or found is None or found.is_symlink():
        return False
    own, common, top = (Path(os.path.realpath(folder / path)) for path in told)
    if not top.samefile(found.parent) or _has_links(own) or _has_links(common):
        return False
    if own.samefile(common):
        return own.samefile(found) or git(["config", "core.worktree"]) is not None
    with open_ordinary(own / "gitdir") as file:
        back = own / os.fsdecode(file.read(_PATH_BYTES).strip())
    return own.parent.samefile(common / "worktrees") and back.name == ".git" and back.parent.samefile(found.parent)


def _has_links(repository: Path) -> bool:
    """Whether something that tells what is in a repository lies elsewhere."""
    leads = [str(repository / lead) for lead in _LEADS]
    walks = (os.walk(lead) for lead in leads)
    below = (os.path.join(at, name) for walk in walks for at, folders, files in walk for name in (*folders, *files))
    return any(os.path.islink(path) for path in (*leads, *below))
