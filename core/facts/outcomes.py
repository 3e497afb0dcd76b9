"""How tool calls ended: exit codes, the line that says why, which failures were mended and by what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.facts.scan import Call
from core.facts.text import code, cut, one_line

_EXIT = re.compile(r"(?:\bExit code|exit status|\"exit_code\":) ?(\d{1,3})\b")
_ERROR_LINE = re.compile(
    r"\b\w*(?:Error|Exception|error|panic|FAIL(?:ED|URE)?|fatal|denied|not found|refused|cannot|undefined|timed out)\b",
    re.ASCII,
)
_REASON = re.compile(
    r"FAILED \S|--- FAIL: |E {2,}\S|fatal: |(?:\w{1,60}\.){0,8}\w{0,60}(?:[Ee]rror|Exception)(?:\[\w{1,20}\])?: ",
    re.ASCII,
)
"""How a line begins that is there to say why; others only have such a word in them."""
_FINE = re.compile(r"\b(?:PASS(?:ED)?|SKIPPED|XFAIL)\b|^ok\b|\bok$|^[✓✔]")
"""Of a test that did not fail, whatever its name says."""
_REFUSED = ("The user doesn't want", "[Request interrupted", "Permission to use")
_MARKUP = re.compile(r"</?(?:tool_use_error|error)>")
_CD = re.compile(r"^\s*cd [^&;|\n]{1,300}(?:&&|;)\s*")


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed, and what was done before the same call worked; `between` is None where it never did."""

    call: Call
    between: Sequence[Call] | None
    mended: Call | None = None
    """The run of the same call that worked."""


def failures(calls: Sequence[Call]) -> Iterator[Failure]:
    """The last failure of each run of failures of one call, grouped by call."""
    for places in _runs(calls):
        for n, following in zip(places, [*places[1:], -1], strict=True):
            if not is_error(calls[n]) or (following >= 0 and is_error(calls[following])):
                continue
            if following < 0:
                yield Failure(calls[n], None)
            else:
                yield Failure(calls[n], calls[n + 1 : following], calls[following])


def working(calls: Sequence[Call]) -> list[Call]:
    """The last run of each call that did not fail at last."""
    return [calls[places[-1]] for places in _runs(calls) if not is_error(calls[places[-1]])]


def _runs(calls: Sequence[Call]) -> list[list[int]]:
    runs: dict[str, list[int]] = {}
    for n, call in enumerate(calls):
        runs.setdefault(normal(call.command) or f"{call.name} {call.path}", []).append(n)
    return [*runs.values()]


def outcome(call: Call) -> str:
    """How a call ended, in a few words, with the line that says why when it failed."""
    status = exit_code(call)
    if status is None:
        return "no result yet"
    if not status:
        return "ok"
    return f"exit {status}: {code(error_line(call, 100))}" if status > 0 else f"failed: {code(error_line(call, 100))}"


def exit_code(call: Call) -> int | None:
    """The exit code of a call: 0 for success, -1 for a failure without a number, None without a result."""
    if call.result is None:
        return None
    stated = _EXIT.search(call.result[:200]) or _EXIT.search(call.result[-200:])
    if stated and (call.failed or call.command):
        return int(stated[1])
    return -1 if call.failed else 0


def is_error(call: Call) -> bool:
    """Whether a call failed by itself: what a person refused or broke off is no error."""
    return exit_code(call) not in (0, None) and not (call.result or "").lstrip().startswith(_REFUSED)


def normal(command: str) -> str:
    """A command on one line, without the change of folder in front of it: what makes two runs the same command."""
    return one_line(_CD.sub("", command, count=1))


def error_line(call: Call, limit: int) -> str:
    """The line of a result that says what went wrong, in at most `limit` characters."""
    lines = [line for raw in _MARKUP.sub("", call.result or "").splitlines() if (line := raw.strip())]
    lines = [line for line in lines if not _EXIT.fullmatch(line)] or lines
    telling = [line for line in lines if _ERROR_LINE.search(line[:400]) and not _FINE.search(line[:400])]
    best = next(filter(_REASON.match, lines), next(iter(telling), lines[-1] if lines else "no output"))
    return cut(one_line(best), limit)
