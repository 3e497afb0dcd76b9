"""The parts of a context with their tokens, from the rows' outlines: no body is decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from core.context.dialect import Dialect
from core.context.tokens.estimate import Estimator
from core.context.tokens.ledger import (
    DEFAULT_OVERHEAD_TOKENS,
    ContextSize,
    LedgerItem,
    fitted,
    items_of,
    measure,
    shared,
)
from core.context.tokens.models import Model
from core.context.view import messages_of
from core.model import Block, Message, text_block
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.formats.conversation import Conversation
from core.transcript.formats.summarised import split_summary
from core.transcript.note import note_of
from core.transcript.outline import BlockOutline, outline_blocks
from core.transcript.reader import Log


class Part(LedgerItem, frozen=True, gc=False):
    """One row, or one message of a foreign format, as far as its size goes."""

    uuid: str = ""
    kind: str = ""


def parts_of_chain(log: Log, chain: Chain, dialect: Dialect) -> list[Part]:
    """The parts of a transcript's active view; only attachments and commands are decoded."""
    parts: list[Part] = []
    boundary_at = chain.boundary.offset if chain.boundary else 0
    for e in chain.entries:
        if e.api_error:
            continue
        if e.type in ("user", "assistant"):
            stale = e.offset < boundary_at
            parts.append(Part(e.outlines, e.usage, e.response_id, e.model, stale, e.projected, e.uuid, kind_of(e)))
        elif e.may_be_sent:
            parts += parts_of_messages(messages_of(log, replace(chain, entries=(e,)), dialect))
    return parts


def parts_of_messages(
    messages: Sequence[Message], stale: frozenset[str] = frozenset(), projected: frozenset[str] = frozenset()
) -> list[Part]:
    """The parts of decoded messages; `stale` and `projected` are the ids of those whose usage is (see `LedgerItem`)."""
    return [
        Part(i.outlines, i.usage, i.response_id, i.model, m.uuid in stale, m.uuid in projected, m.uuid, m.kind)
        for m, i in zip(messages, items_of(messages), strict=True)
    ]


def parts_of_conversation(conversation: Conversation) -> list[Part]:
    """The parts of what another client would send next."""
    summaries = [at for at, m in enumerate(conversation.messages) if m.kind == "summary"]
    # What stands before the last summary, and is sent still, was charged for in another context.
    stale = frozenset(m.uuid for m in conversation.messages[: summaries[-1]]) if summaries else frozenset[str]()
    return parts_of_messages(split_summary(conversation.active), stale)


def count_messages(parts: Sequence[Part]) -> int:
    """How many messages the parts are: the rows of one response are one."""
    ids = [part.response_id for part in parts]
    return ids.count("") + len({*ids} - {""})


def tokens_by_kind(
    parts: Sequence[Part], tokens: Sequence[int], overhead_tokens: int, estimator: Estimator
) -> dict[str, int]:
    """Tokens by what they are, most first; `tokens` of a response by its blocks, as `estimator` weighs them."""
    total = Counter({"system": overhead_tokens})
    for part, count in zip(parts, tokens, strict=True):
        outlines = part.outlines
        if part.kind != "response" or not outlines:
            total[part.kind] += count
        elif len(outlines) == 1:  # mostly: a client writes each block of a response as a row of its own
            total[outlines[0].kind] += count
        else:
            for outline, share in _split(outlines, count, estimator):
                total[outline.kind] += share
    return _most_first(total)


def tokens_by_tool(
    parts: Sequence[Part], tokens: Sequence[int], names: Mapping[str, str], estimator: Estimator
) -> dict[str, int]:
    """Tokens of results by the tools that gave them, most first; `names` are the tools by the ids of their calls."""
    total: Counter[str] = Counter()
    for part, count in zip(parts, tokens, strict=True):
        if part.kind == "results":
            for outline, share in _split(part.outlines, count, estimator):
                if outline.tool_id:
                    total[names.get(outline.tool_id, "?")] += share
    return _most_first(total)


def _split(outlines: Sequence[BlockOutline], tokens: int, estimator: Estimator) -> Iterable[tuple[BlockOutline, int]]:
    """The blocks of a part, each with its share of the tokens."""
    if len(outlines) == 1:
        return ((outlines[0], tokens),)
    return zip(outlines, shared([estimator.tokens([outline]) for outline in outlines], tokens), strict=True)


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return {key: count for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if count}


def stale_uuids(chain: Chain) -> frozenset[str]:
    """Rows that the last boundary kept in their old place: their usage is of the context before it."""
    if chain.boundary is None:
        return frozenset()
    return frozenset(e.uuid for e in chain.entries if e.offset < chain.boundary.offset)


def projected_uuids(chain: Chain) -> frozenset[str]:
    """Rows whose usage Foldmark worked out when it wrote them."""
    return frozenset(e.uuid for e in chain.entries if e.projected)


def overhead_tokens(log: Log, chain: Chain) -> int:
    """What is sent beside the messages where no usage tells: as much as before the compaction, if Foldmark made it."""
    note = note_of(log, chain)
    return note.overhead_tokens if note else DEFAULT_OVERHEAD_TOKENS


def recorded_overhead_tokens(conversation: Conversation, model: Model) -> int:
    """As `overhead_tokens`, of another client's conversation: the system prompt and the tools that the file holds."""
    texts = [conversation.system, *(msgspec.json.encode(tool).decode() for tool in conversation.tools)]
    blocks: list[Block] = [text_block(text) for text in texts if text]
    return round(Estimator(model).tokens(outline_blocks(blocks)))


def measured_conversation(
    parts: Sequence[Part], conversation: Conversation, model: Model, written_tokens: int = 0
) -> ContextSize:
    """The size of another client's context: by usage, where there is any, else by what the file holds.

    It is no less than its client counted last.  It is `written_tokens` where Foldmark, who wrote the file, knew what
    was charged for the messages in it.
    """
    size = measured(parts, model, recorded_overhead_tokens(conversation, model))
    if size.source == "usage" or not parts:
        return size
    return fitted(size, written_tokens or max(size.total_tokens, conversation.context_tokens))


def measured(parts: Sequence[Part], model: Model, overhead: int = DEFAULT_OVERHEAD_TOKENS) -> ContextSize:
    """The size of the context, and of each part; `overhead` (tokens) counts where there is no usage at all."""
    return measure(parts, model, overhead)


def kind_of(entry: Entry) -> str:
    """The kind of the message that a row is, as far as can be told without decoding it."""
    if entry.type not in ("user", "assistant"):
        return "command" if entry.type == "system" else entry.type
    if entry.type == "assistant":
        return "response"
    if entry.summary:
        return "summary"
    return "results" if entry.tools else "meta" if entry.meta else "prompt"
