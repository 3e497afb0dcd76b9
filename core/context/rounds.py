"""Where a history may be cut: the one place that knows.

A group is one response and the results of its calls.  A cut stands in front of a message such that no call is
parted from its result, no response is split, and what follows begins with a prompt or a response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.model import Message, call_id, is_thinking, tool_results, tool_uses


def cut_points(messages: Sequence[Message]) -> list[int]:
    """Every index in front of which the messages may be cut, ascending; `len(messages)` (nothing kept) is one."""
    end = len(messages)
    return [i for i in closed_points(messages) if i == end or messages[i].kind in ("prompt", "response")]


def closed_points(messages: Sequence[Message]) -> list[int]:
    """Every index in front of which no call waits for its result, ascending; whatever may stand there.

    A call that has no result at all (the session was killed) opens no pair.
    """
    answered = {call_id(b) for m in messages for b in tool_results(m)} - {""}
    open_calls: set[str] = set()
    points = []
    for i, message in enumerate(messages):
        if not open_calls:
            points.append(i)
        open_calls.update(call_id(b) for b in tool_uses(message) if call_id(b) in answered)
        open_calls.difference_update(call_id(b) for b in tool_results(message))
    return [*points, len(messages)]


def contiguous(uuids: Sequence[str], places: Mapping[str, int]) -> bool:
    """Whether some messages have all a place, each the one behind that of the one before; of no messages, false."""
    found = [places[u] for u in uuids if u in places]
    return bool(found) and len(found) == len(uuids) and found == [*range(found[0], found[0] + len(found))]


def tail_start(messages: Sequence[Message], sizes_tokens: Sequence[int], keep_tokens: int) -> int:
    """Where the newest messages begin that are kept word for word: as many as fit into `keep_tokens`.

    An unfinished tool loop that holds thinking is never kept: its thinking is bound to the messages before it, and
    the API takes the loop neither without it nor behind other messages.
    """
    points = cut_points(messages)
    if in_thinking_loop(messages):
        return points[-1]
    start, kept_tokens, at = points[-1], 0, len(messages)
    for point in reversed(points[:-1]):
        kept_tokens += sum(sizes_tokens[point:at])
        if kept_tokens > keep_tokens:
            break
        start = at = point
    return start


def in_thinking_loop(messages: Sequence[Message]) -> bool:
    """Whether the messages end in a turn that still waits for the model, or for a tool, and that holds thinking."""
    last = max((i for i, m in enumerate(messages) if m.kind == "response"), default=-1)
    if last < 0 or not tool_uses(messages[last]) or any(m.kind == "prompt" for m in messages[last + 1 :]):
        return False
    for message in reversed(messages[: last + 1]):
        if message.kind == "prompt":
            return False
        if any(is_thinking(b) for b in message.content):
            return True
    return False
