"""Where the work is in git, as the commands of a session show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.facts.outcomes import exit_code
from core.facts.scan import Call

_GIT = re.compile(r"\bgit (?:status|branch|checkout|switch|commit|merge|rebase|log)\b")
_WORD = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s"'])+"""
_COMMIT = re.compile(rf"\bgit(?:\s+-(?:[cC]\s+)?{_WORD}){{0,8}}\s+commit(?![\w-])")
"""The command, behind options of git itself."""
_ON_BRANCH = re.compile(r"^(?:On branch |\* |Switched to (?:a new )?branch ')([\w./-]{1,200})(?='?$)", re.MULTILINE)
_COMMITTED = re.compile(r"^\[([\w./-]{1,200})(?: \(root-commit\))? ([0-9a-f]{7,40})\] ", re.MULTILINE)


def branch_and_commit(calls: Sequence[Call]) -> tuple[str, str]:
    """The branch and the newest commit that the results of git commands name last, "" where none does."""
    branch = commit = ""
    for call in calls:
        if not _GIT.search(call.command) or not call.result or call.failed:
            continue
        committed = [*_COMMITTED.finditer(call.result)]
        named = _ON_BRANCH.findall(call.result)
        if committed:
            branch, commit = committed[-1].groups()
        elif named:
            branch = named[-1]
    return branch, commit


def is_commit(call: Call) -> bool:
    """Whether a commit was made."""
    return bool(_COMMIT.search(call.command)) and exit_code(call) == 0
