"""What stages decided about a session before: read back, and what it leans on taken along into a new session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec
from msgspec.structs import replace as replace_fields

from core.context.decisions import Collapsed, Committed, Decision, MediaReplaced, Replaced, Seen, Snipped, State
from core.errors import FoldmarkError
from core.model import JSON, UNDECODABLE, Block, Message, block_text, call_id, tool_results
from core.service.session import Session
from core.stages.edits import leans_on
from core.transcript.reader import Log
from core.transcript.records import all_decisions
from core.transcript.store import Store


def decided(session: Session) -> tuple[Decision, ...]:
    """The decisions that may still hold, oldest first; what a newer version of Foldmark decided is passed over."""
    return _all_decoded(session.recorded_decisions)


def ever_decided(log: Log) -> tuple[Decision, ...]:
    """All that was decided about what a log holds, some of it more than once."""
    return _all_decoded(all_decisions(log))


def _all_decoded(raws: Iterable[msgspec.Raw]) -> tuple[Decision, ...]:
    return tuple(decision for raw in raws if (decision := _decoded(raw)))


def _decoded(raw: msgspec.Raw) -> Decision | None:
    try:
        return msgspec.json.decode(raw, type=Decision)
    except UNDECODABLE:
        return None


def still_about(decisions: Sequence[Decision], messages: Sequence[Message]) -> tuple[Decision, ...]:
    """The decisions that hold for messages that a compaction left, without when they were made.

    Their dates count responses that are gone; what the messages say has been settled.
    """
    there = {uuid for m in messages for uuid in m.uuids} | {call_id(b) for m in messages for b in tool_results(m)}
    return tuple(new for decision in decisions if (new := _still(decision, there)) is not None)


def _still(decision: Decision, there: Collection[str]) -> Decision | None:
    match decision:
        case Seen(ids=ids) if left := tuple(i for i in ids if i in there):
            return Seen(left)
        case Committed(ids=ids) if left := tuple(i for i in ids if i in there):
            return Committed(left)
        case Replaced(id=name) | MediaReplaced(owner=name) | Snipped(id=name) | Collapsed(id=name) if name in there:
            return replace_fields(decision, at_request=None)
    return None  # what the server's cache held, and what was proposed, is over


def take_along(store: Store, session: Session, decisions: Sequence[Decision]) -> None:
    """Stores what the session's decisions lean on with the session that goes on from it; raises WriteFailed."""
    old = Store.beside(session.path)
    ids = {ident for decision in decisions for ident in leans_on(decision)}
    if ids and old.folder != store.folder:
        store.adopt(old, ids)


def with_contents_back(messages: Sequence[Message], state: State, store: Store) -> tuple[Message, ...]:
    """The messages, with their content where a result points to another one that is not there, or not whole, any more.

    The projection does the same, where the messages are those of before the pointer; here it was written out.
    """
    there = {call_id(b) for m in messages for b in tool_results(m)}
    whole = there - state.replaced.keys() - state.cleared_on_server
    lost = {r.id: r.text for r in state.replaced.values() if r.leans_on and r.id in there and r.leans_on not in whole}
    if not lost:
        return tuple(messages)
    contents = _contents(lost, store)
    return tuple(_with_content(m, lost, contents) for m in messages)


def _contents(lost: Mapping[str, str], store: Store) -> dict[str, str]:
    found: dict[str, str] = {}
    with suppress(FoldmarkError):  # no store that could be looked into
        for body in store.bodies():
            with suppress(FoldmarkError):  # gone: the pointer still names what it points to, which can be read
                found |= {body.id: store.read(body).decode("utf-8", "replace")} if body.id in lost else {}
    return found


def _with_content(message: Message, lost: Mapping[str, str], contents: Mapping[str, str]) -> Message:
    new = tuple(_block(b, lost, contents) for b in message.content)
    same = all(a is b for a, b in zip(new, message.content, strict=True))
    return message if same else replace(message, content=new)


def _block(block: Block, lost: Mapping[str, str], contents: Mapping[str, str]) -> Block:
    call = call_id(block) if block.get("type") == "tool_result" else ""
    if call not in contents or block_text(block) != lost[call]:
        return block
    content: JSON = contents[call]
    return {**block, "content": [{"type": "text", "text": content}] if isinstance(block["content"], list) else content}
