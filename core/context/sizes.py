"""The parts of a context with their tokens, from the rows' outlines: no body is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from core.context.dialect import Dialect
from core.context.tokens.estimate import Estimator
from core.context.tokens.ledger import DEFAULT_OVERHEAD_TOKENS, ContextSize, LedgerItem, items_of, measure
from core.context.tokens.models import Model
from core.context.view import messages_of
from core.model import Block, Message
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.note import note_of
from core.transcript.outline import outline_blocks
from core.transcript.reader import Log


@dataclass(frozen=True, slots=True)
class Part:
    """One row, or one message of a foreign format, as far as its size goes."""

    uuid: str
    kind: str
    item: LedgerItem


def parts_of_chain(log: Log, chain: Chain, dialect: Dialect) -> list[Part]:
    """The parts of a transcript's active view; only attachments and commands are decoded."""
    parts = []
    for entry in chain.entries:
        if entry.api_error:
            continue
        if entry.type in ("user", "assistant"):
            parts.append(Part(entry.uuid, _kind(entry), _item(entry, chain)))
        else:
            shown = messages_of(log, replace(chain, entries=(entry,)), dialect)
            parts += [Part(entry.uuid, m.kind, item) for m, item in zip(shown, items_of(shown), strict=True)]
    return parts


def parts_of_messages(messages: Sequence[Message], stale: frozenset[str] = frozenset()) -> list[Part]:
    """The parts of decoded messages; `stale` are the ids of those whose usage was measured before a compaction."""
    return [
        Part(m.uuid, m.kind, replace(item, stale=m.uuid in stale))
        for m, item in zip(messages, items_of(messages), strict=True)
    ]


def stale_uuids(chain: Chain) -> frozenset[str]:
    """Rows that the last boundary kept in their old place: their usage is of the context before it."""
    if chain.boundary is None:
        return frozenset()
    return frozenset(e.uuid for e in chain.entries if e.offset < chain.boundary.offset)


def overhead_tokens(log: Log, chain: Chain) -> int:
    """What is sent beside the messages where no usage tells: as much as before the compaction, if Foldmark made it."""
    note = note_of(log, chain)
    return note.overhead_tokens if note else DEFAULT_OVERHEAD_TOKENS


def recorded_overhead_tokens(system: str, tools: Sequence[Block], model: Model) -> int:
    """As `overhead_tokens`, of a file that holds the system prompt and the tools itself, or holds neither."""
    if not system and not tools:
        return DEFAULT_OVERHEAD_TOKENS
    texts = [system, *(msgspec.json.encode(tool).decode() for tool in tools)]
    blocks: list[Block] = [{"type": "text", "text": text} for text in texts]
    return round(Estimator(model).tokens(outline_blocks(blocks)))


def measured(parts: Sequence[Part], model: Model, overhead: int = DEFAULT_OVERHEAD_TOKENS) -> ContextSize:
    """The size of the context, and of each part; `overhead` (tokens) counts where there is no usage at all."""
    return measure([p.item for p in parts], model, overhead)


def _kind(entry: Entry) -> str:
    if entry.type == "assistant":
        return "response"
    if entry.summary:
        return "summary"
    return "results" if entry.tools else "meta" if entry.meta else "prompt"


def _item(entry: Entry, chain: Chain) -> LedgerItem:
    stale = chain.boundary is not None and entry.offset < chain.boundary.offset
    return LedgerItem(entry.outlines, entry.usage, entry.response_id, entry.model, stale)
