"""The line that stands where messages were: how many, what was done in them, and the id that brings them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from core.context.decisions import Collapsed, Snipped
from core.facts.outcomes import exit_code, normal
from core.facts.scan import Call, scan
from core.facts.text import cut, one_line
from core.ids import one_of
from core.model import Message
from core.redact.values import redact_messages
from core.stages.stand_in import shown_by
from core.transcript.store import PAGE_PREFIX

_Made = TypeVar("_Made", Snipped, Collapsed)
_LISTED = 5
"""Names of each sort in a line; the rest is counted."""
_COMMAND_CHARS = 48


def page_name(kind: Literal["snip", "span"], ident: str) -> str:
    """The name of the page that holds what a decision took out; also the id that `output` takes for all of it."""
    return f"{kind}-{ident[:8]}"


def page_of(kind: Literal["snip", "span"], name: str, made: Sequence[_Made]) -> _Made:
    """The decision that a page is of, by the name of the page, by its own id, or by the start of either.

    Raises IdNotFound for none and for several.
    """
    pages: dict[str, _Made] = {page_name(kind, one.id): one for one in made}
    known = [(spelling, page) for page, one in pages.items() for spelling in (page, one.id)]
    return pages[one_of(name, known, kind, "\n  ".join([f"the {kind}s are:", *pages]) if pages else "there are none")]


def receipt(
    what: str, messages: Sequence[Message], tokens: int, page: str, folder: str, with_deeds: bool = True
) -> str:
    """One line in brackets; `what` says what became of the messages, `folder` is "" where no page will be written.

    `with_deeds` it says what was done in them.
    """
    count = f"{len(messages)} message{'s' if len(messages) != 1 else ''}, {tokens:,} tokens {what}"
    where = shown_by(page)
    if folder:
        where += f", as does {folder.rstrip('/')}/{PAGE_PREFIX}{page}.md"
    done = "; ".join(_deeds(scan(redact_messages(messages)).calls)) if with_deeds else ""
    return f"[{count}: {done}; {where}]" if done else f"[{count}; {where}]"


def _deeds(calls: Sequence[Call]) -> list[str]:
    """What the calls did, the changes first."""
    by_sort: dict[str, dict[str, None]] = {"edited": {}, "read": {}, "ran": {}, "used": {}}
    for call in calls:
        sort, name = _deed(call)
        by_sort[sort].pop(name, None)
        by_sort[sort][name] = None
    return [f"{sort} {_listed([*names])}" for sort, names in by_sort.items() if names]


def _deed(call: Call) -> tuple[str, str]:
    if call.command:
        return "ran", f"{cut(normal(call.command), _COMMAND_CHARS)} ({_outcome(call)})"
    if call.path:
        name = one_line(call.path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])
        return "edited" if call.changes and not call.failed else "read", cut(name, _COMMAND_CHARS)
    return "used", cut(one_line(call.name), _COMMAND_CHARS) or "a tool"


def _outcome(call: Call) -> str:
    status = exit_code(call)
    if status is None:
        return "no result"
    return "ok" if status == 0 else f"exit {status}" if status > 0 else "failed"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[-_LISTED:]) + (f" and {more} more" if more > 0 else "")
