"""Compaction thrash, found in a transcript: the context is full again as soon as it was compacted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.context.view import messages_of
from core.facts.names import strings_in
from core.facts.text import cut, one_line
from core.model import JSON, Message, block_text, mapping, tool_uses
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.reader import Log
from core.turn.autocompact import MAX_REFILLS, REFILL_REQUESTS
from core.turn.contributors import calls_of, named_message

_SHOWN = 3
_PATH_CHARS = 80


@dataclass(frozen=True, slots=True)
class Thrash:
    """Automatic compactions one soon after the other, and what fills the context since the last one."""

    compactions: int
    """In a row, each at most `REFILL_REQUESTS` requests after the one before."""
    largest: tuple[tuple[str, int], ...]
    """What was added since the last one, with its characters, the largest first."""

    def __str__(self) -> str:
        """What it is and what to do, for a person."""
        parts = ", ".join(f"{what} ({chars:,} characters)" for what, chars in self.largest) or "nothing yet"
        return (
            f"the context was full {self.compactions} times, each at most {REFILL_REQUESTS} requests after a "
            f"compaction: automatic compaction does not help. The most since the last one: {parts}"
        )


def thrash(log: Log, chain: Chain) -> Thrash | None:
    """The thrash that a session is in; None where it is in none, or where too little of the file was read to tell."""
    if chain.boundary is None:
        return None
    gaps, since = _gaps(log, chain)
    soon = 0
    for gap in reversed(gaps):
        if gap > REFILL_REQUESTS:
            break
        soon += 1
    if soon < MAX_REFILLS or since > REFILL_REQUESTS:
        return None
    parts = sorted(_parts(log, chain), key=lambda part: -part[1])
    return Thrash(soon, tuple(parts[:_SHOWN]))


def may_thrash(chain: Chain) -> bool:
    """Whether the last compaction was so short ago that there may have been others right before it."""
    responses = {e.response_id or e.uuid for e in chain.entries if e.type == "assistant" and not e.api_error}
    return chain.boundary is not None and len(responses) <= REFILL_REQUESTS


def _gaps(log: Log, chain: Chain) -> tuple[list[int], int]:
    """Requests in front of each automatic compaction, since the compaction before; and since the last one."""
    own = chain.leaf is not None and chain.leaf.sidechain
    gaps: list[int] = []
    responses: set[str] = set()
    for entry in log.entries:
        if entry.sidechain is not own:
            continue
        if entry.is_boundary:
            # One that a person asked for ends a row: it was not the context that asked for it.
            gaps = [*gaps, len(responses)] if _is_automatic(log, entry) else []
            responses = set()
        elif entry.type == "assistant" and not entry.api_error:
            responses.add(entry.response_id or entry.uuid)
    return gaps, len(responses)


def _is_automatic(log: Log, entry: Entry) -> bool:
    metadata = log.row(entry).get("compactMetadata")
    return isinstance(metadata, dict) and metadata.get("trigger") == "auto"


def _parts(log: Log, chain: Chain) -> Iterator[tuple[str, int]]:
    """What was added since the last compaction, with its characters.

    Attachments are counted by their rows: older clients render them only when they send them.
    """
    new = [e for e in chain.entries if chain.boundary is None or e.offset > chain.boundary.offset]
    messages = [m for m in messages_of(log, chain) if {*m.uuids} & {e.uuid for e in new}]
    calls = calls_of(messages)
    for entry in new:
        if entry.type == "attachment":
            yield _attachment(log.row(entry).get("attachment"))
    for message in messages:
        if message.kind not in ("summary", "attachment"):
            yield named_message(message, calls), _chars(message)


def _attachment(data: JSON) -> tuple[str, int]:
    fields = mapping(data)
    path = fields.get("path")
    where = f" ({cut(one_line(path), _PATH_CHARS)})" if isinstance(path, str) else ""
    name = one_line(str(fields.get("type") or "unknown"))[:_PATH_CHARS]
    return f"the {name} attachment{where}", sum(map(len, strings_in(fields.get("content", data))))


def _chars(message: Message) -> int:
    inputs = (text for block in tool_uses(message) for text in strings_in(block.get("input")))
    return sum(len(block_text(b)) for b in message.content) + sum(map(len, inputs))
