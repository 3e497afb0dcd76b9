"""Which commands were run with what outcome, which calls failed, and what mended them.

Commands and error lines are data of tools: they are shown as inline code and never as sentences of the summary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.summarizers.extractive.items import Item
from core.summarizers.extractive.scan import Call, Conversation
from core.summarizers.extractive.text import code, cut, one_line

_EXIT = re.compile(r"(?:\bExit code|exit status|\"exit_code\":) ?(\d{1,3})\b")
_ERROR_LINE = re.compile(
    r"\b\w*(?:Error|Exception|error|panic|FAIL(?:ED|URE)?|fatal|denied|not found|refused|cannot|undefined|timed out)\b",
    re.ASCII,
)
_REFUSED = ("The user doesn't want", "[Request interrupted", "Permission to use")
_MARKUP = re.compile(r"</?(?:tool_use_error|error)>")
_CD = re.compile(r"^\s*cd [^&;|\n]{1,300}(?:&&|;)\s*")
_OPEN = "not mended yet"
COMMAND_CHARS = 120
ERROR_CHARS = 240


def commands(talk: Conversation, earlier: Sequence[Item]) -> list[Item]:
    """The latest outcome of each command, failures first when room is short."""
    found: dict[str, Item] = {item.text.partition("` -> ")[0]: item for item in earlier}
    for call in talk.calls:
        if call.command:
            shown = code(cut(normal(call.command), COMMAND_CHARS))
            failed = exit_code(call) not in (0, None)
            rank = talk.recency(call.at) + (1.0 if failed else 0.0)
            found.pop(shown[:-1], None)
            found[shown[:-1]] = Item(f"{shown} -> {outcome(call)}", rank, call.at)
    return list(found.values())


def errors(talk: Conversation, earlier: Sequence[Item]) -> list[Item]:
    """Each failed call with its error line and what came before it worked, if it did; an open one counts most."""
    runs: dict[str, list[int]] = {}
    for n, call in enumerate(talk.calls):
        runs.setdefault(_key(call), []).append(n)
    worked = {_failed_head(talk.calls[ns[-1]]) for ns in runs.values() if not _is_error(talk.calls[ns[-1]])}
    out = [_mended(item, worked) for item in earlier]
    for places in runs.values():
        for n, following in zip(places, [*places[1:], -1], strict=True):
            call = talk.calls[n]
            if not _is_error(call) or (following >= 0 and _is_error(talk.calls[following])):
                continue
            fix = _fix(talk.calls[n + 1 : following]) if following >= 0 else ""
            text = f"{_failed_head(call)}{code(_error_line(call, ERROR_CHARS))} -> {fix or _OPEN}"
            out.append(Item(text, talk.recency(call.at) + (1.0 if fix else 2.0), call.at))
    return sorted(out, key=lambda i: i.at)


def _failed_head(call: Call) -> str:
    return f"{code(cut(normal(call.command) or f'{call.name} {call.path}'.strip(), 80))} failed: "


def _mended(item: Item, worked: set[str]) -> Item:
    """An open failure of an earlier summary, closed if its command has worked since."""
    head = item.text.partition("failed: ")[0] + "failed: "
    if item.text.endswith(_OPEN) and head in worked:
        return Item(item.text.removesuffix(_OPEN) + "worked later", 1.0, item.at)
    return Item(item.text, 2.0 if item.text.endswith(_OPEN) else 1.0, item.at)


def outcome(call: Call) -> str:
    """How a call ended, in a few words, with the line that says why when it failed."""
    status = exit_code(call)
    if status is None:
        return "no result yet"
    if not status:
        return "ok"
    return f"exit {status}: {code(_error_line(call, 100))}" if status > 0 else f"failed: {code(_error_line(call, 100))}"


def exit_code(call: Call) -> int | None:
    """The exit code of a call: 0 for success, -1 for a failure without a number, None without a result."""
    if call.result is None:
        return None
    stated = _EXIT.search(call.result[:200]) or _EXIT.search(call.result[-200:])
    if stated and (call.failed or call.command):
        return int(stated[1])
    return -1 if call.failed else 0


def normal(command: str) -> str:
    """A command on one line, without the change of folder in front of it: what makes two runs the same command."""
    return one_line(_CD.sub("", command[:2_000]))


def _key(call: Call) -> str:
    return normal(call.command) or f"{call.name} {call.path}"


def _is_error(call: Call) -> bool:
    return exit_code(call) not in (0, None) and not (call.result or "").lstrip().startswith(_REFUSED)


def _error_line(call: Call, limit: int) -> str:
    lines = [line for raw in _MARKUP.sub("", call.result or "").splitlines() if (line := raw.strip())]
    lines = [line for line in lines if not _EXIT.fullmatch(line)] or lines
    best = next((line for line in lines if _ERROR_LINE.search(line[:400])), lines[-1] if lines else "no output")
    return cut(one_line(best[:2_000]), limit)


def _fix(between: Sequence[Call]) -> str:
    """The change, else the command, that came next after a failure."""
    for call in between:
        if call.path and call.changes:
            return f"{call.name} {code(call.path)}, then it worked"
    ran = next((c for c in between if c.command), None)
    return f"then {code(cut(normal(ran.command), 80))}, then it worked" if ran else "worked when tried again"
