"""Which commands were run with what outcome, which calls failed, and what mended them.

Commands and error lines are data of tools: they are shown as inline code and never as sentences of the summary.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.facts.outcomes import Failure, error_line, exit_code, failures, normal, outcome, working
from core.facts.scan import Call, Talk
from core.facts.text import code, cut
from core.summarizers.extractive.items import Item

OPEN = "not mended yet"
"""How the text about a failure ends that nothing has mended so far."""
COMMAND_CHARS = 120
ERROR_CHARS = 240


def commands(talk: Talk, earlier: Sequence[Item]) -> list[Item]:
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


def errors(talk: Talk, earlier: Sequence[Item]) -> list[Item]:
    """Each failed call with its error line and what came before it worked, if it did; an open one counts most."""
    worked = {failed_head(call) for call in working(talk.calls)}
    out = [_mended(item, worked) for item in earlier]
    for failure in failures(talk.calls):
        rank = talk.recency(failure.call.at) + (2.0 if failure.between is None else 1.0)
        out.append(Item(failed(failure), rank, failure.call.at))
    return sorted(out, key=lambda i: i.at)


def failed(failure: Failure) -> str:
    """A failure in words: what failed, the line that says why, and what mended it."""
    call = failure.call
    fix = OPEN if failure.between is None else _fix(failure.between)
    return f"{failed_head(call)}{code(error_line(call, ERROR_CHARS))} -> {fix}"


def failed_head(call: Call) -> str:
    """How the text about a failure of this call begins."""
    return f"{code(cut(normal(call.command) or f'{call.name} {call.path}'.strip(), 80))} failed: "


def _mended(item: Item, worked: set[str]) -> Item:
    """An open failure of an earlier summary, closed if its command has worked since."""
    head = item.text.partition("failed: ")[0] + "failed: "
    if item.text.endswith(OPEN) and head in worked:
        return Item(worked_later(item.text), 1.0, item.at)
    return Item(item.text, 2.0 if item.text.endswith(OPEN) else 1.0, item.at)


def worked_later(text: str) -> str:
    """The text about an open failure, once the same call has worked."""
    return text.removesuffix(OPEN) + "worked later"


def _fix(between: Sequence[Call]) -> str:
    """The change, else the command, that came next after a failure."""
    for call in between:
        if call.path and call.changes:
            return f"{call.name} {code(call.path)}, then it worked"
    ran = next((c for c in between if c.command), None)
    return f"then {code(cut(normal(ran.command), 80))}, then it worked" if ran else "worked when tried again"
