"""Everything that a session ever held, in the order in which it is looked through: what has an id, and its text.

A compaction hides history, it does not end it: old rows stay in the file, or on a page beside it, or in the
transcript that the session was made of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from core.context.decisions import Replaced
from core.context.sizes import kind_of
from core.context.view import messages_of
from core.errors import FoldmarkError
from core.model import JSON, Block, Message, block_text, call_id, mapping, mappings, text_block
from core.service.past_decisions import ever_decided
from core.service.session import Session, opened
from core.transcript.chain import Chain
from core.transcript.entries import Entry
from core.transcript.locate import leads_into
from core.transcript.page import Body
from core.transcript.persisted import file_name, persisted_path
from core.transcript.projects import session_file
from core.transcript.reader import Log
from core.transcript.records import REDACTED, STDIN, find_records, source_file
from core.transcript.store import Store

Where: TypeAlias = Literal["active", "earlier", "stored", "source"]
"""active: the model sees it.  earlier: in the file, before the active view.  stored: on a page or in a file beside
the transcript.  source: in the transcript that this one was made of."""

MAX_SOURCES = 20
"""How many generations of compactions are followed back."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that has an id; its text is read when it is needed."""

    id: str
    kind: str
    name: str
    where: Where
    read: Callable[[], str]
    raw: Callable[[], bytes] | None = None
    """The JSON that the text is in, where there is such: a cheap look before the text is decoded."""
    message: str = ""
    """The id of the message that it is a part of: it leads here, too."""
    is_there: bool = True
    """Whether there is a text: the file that it was stored in may be gone."""


def all_items(session: Session, stack: ExitStack) -> Iterator[Item]:
    """All items of a session (read whole); of one id, the first is the one to read; `stack` holds open what is read."""
    return iter(sorted(_items(session, stack), key=lambda item: not item.is_there))


def _items(session: Session, stack: ExitStack) -> Iterator[Item]:
    store = Store.beside(session.path)
    if session.claude is None:
        yield from _of_conversation(session)
        yield from stored_items(store)
        return
    log, chain = session.claude
    active = {e.uuid for e in chain.entries}
    yield from _of_log(log, store, lambda entry: "active" if entry.uuid in active else "earlier")
    yield from stored_items(store)
    for source in _sources(log, stack, session.inside):
        yield from _of_log(source, Store.beside(source.path), lambda _entry: "source")
        yield from stored_items(Store.beside(source.path))


def _sources(log: Log, stack: ExitStack, inside: Sequence[Path] | None) -> Iterator[Log]:
    """The transcripts that this one was made of, newest first, as far as they are there."""
    seen = {log.path.resolve()}
    for _ in range(MAX_SOURCES):
        found = _source(log, seen, stack, inside)
        if found is None:
            return
        yield found
        log = found


def _source(log: Log, seen: set[Path], stack: ExitStack, inside: Sequence[Path] | None) -> Log | None:
    """The transcript that the first record names, unless that is one of those that were seen."""
    for record in (placed.record for placed in find_records(log) if placed.record):
        if record.op == REDACTED or record.source.path == STDIN:  # what a copy leaves out is not to be found from it
            return None
        path = source_file(log.path, record.source)
        if path in seen:
            continue
        if path is None or not leads_into(path, inside):  # gone, not what the record says, or out of reach
            return None
        try:
            session = stack.enter_context(opened(session_file(path), whole=True))
        except (FoldmarkError, OSError, ValueError):  # no transcript
            return None
        seen.add(path)
        return session.claude[0] if session.claude else None
    return None


def stored_items(store: Store) -> Iterator[Item]:
    """What lies in files of a store, images and documents left out."""
    there = store.files()
    for body in store.bodies():
        if body.kind not in ("image", "document"):
            read = _body_reader(store, body)
            yield Item(body.id, body.kind, body.name, "stored", read, is_there=body.file in there)


def _body_reader(store: Store, body: Body) -> Callable[[], str]:
    def read() -> str:
        try:
            return store.read(body).decode("utf-8", "replace")
        except FoldmarkError as error:
            return f"[{error}]"

    return read


def _of_conversation(session: Session) -> Iterator[Item]:
    """What the model sees, then what else the file of another client holds."""
    yield from (i for m in session.messages for i in _of_message(m, "active"))
    if session.conversation:
        active = {m.uuid for m in session.conversation.active}
        others = (m for m in session.conversation.messages if m.uuid not in active)
        yield from (i for m in others for i in _of_message(m, "earlier"))


def _of_message(message: Message, where: Where) -> Iterator[Item]:
    for block in message.content:
        if block.get("type") == "tool_result":
            call = call_id(block)
            yield Item(call, "result", "", where, lambda b=block: block_text(b), message=message.uuid)  # type: ignore[misc]
    yield Item(message.uuid, message.kind, "", where, lambda: "\n".join(map(_shown, message.content)))


def _of_log(log: Log, store: Store, where: Callable[[Entry], Where]) -> Iterator[Item]:
    """One item a tool result, and one a row for all else; of rows that stand twice, the last."""
    names = {o.tool_id: o.tool_name for e in log.entries for o in e.outlines if o.tool_name}
    last = {e.uuid: e for e in log.entries if e.on_chain and (e.type != "system" or e.subtype == "local_command")}
    stored = _by_name(store)
    lost = {call: texts for call, texts in _stand_ins(log).items() if ("output", call) not in stored}
    versions: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in log.entries:
        versions[entry.uuid].append(entry)
    for entry in last.values():
        if entry.type == "user":
            for call in entry.tools:
                held = _holding(log, versions[entry.uuid], call, lost.get(call, ()))
                read = _result_reader(log, store, stored, held or entry, call, held is None)
                raw, name, is_there = _raw_reader(log, held or entry), names.get(call, ""), held is not None
                yield Item(call, "result", name, where(entry), read, raw, entry.uuid, is_there)
            if entry.tools:
                continue
        yield Item(entry.uuid, kind_of(entry), "", where(entry), _row_reader(log, entry), _raw_reader(log, entry))


def _stand_ins(log: Log) -> dict[str, set[str]]:
    """The texts that stand for results since an operation, by call."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for decision in ever_decided(log):
        if isinstance(decision, Replaced):
            found[decision.id].add(decision.text)
    return found


def _holding(log: Log, rows: Sequence[Entry], call: str, stand_ins: Collection[str]) -> Entry | None:
    """The last of the rows that stand for one, where none of these texts stands for the result of the call."""
    return next((e for e in reversed(rows) if not stand_ins or _result_text(log.row(e), call) not in stand_ins), None)


def _raw_reader(log: Log, entry: Entry) -> Callable[[], bytes]:
    return lambda: log.raw(entry)


def _row_reader(log: Log, entry: Entry) -> Callable[[], str]:
    if entry.type in ("user", "assistant"):
        return lambda: "\n".join(map(_shown, _content(log.row(entry))))
    return lambda: "\n".join(_shown(b) for m in messages_of(log, Chain((entry,))) for b in m.content)


def _by_name(store: Store) -> dict[tuple[str, str], Body]:
    """Stored outputs by their ids, and the first body of each file by the file, as far as the files are there."""
    named: dict[tuple[str, str], Body] = {}
    there = store.files()
    for body in (body for body in store.bodies() if body.file in there):
        named.setdefault(("file", body.file), body)
        if body.kind == "output":
            named[("output", body.id)] = body
    return named


def _result_reader(
    log: Log, store: Store, stored: Mapping[tuple[str, str], Body], entry: Entry, call: str, is_lost: bool
) -> Callable[[], str]:
    """The whole output, where it was stored, by the client or by a stage; else what the row holds."""

    def read() -> str:
        row = log.row(entry)
        text = _result_text(row, call)
        file = file_name(persisted_path(row))
        body = stored.get(("file", file)) or stored.get(("output", call))
        if body is None:
            gone = f"\n[{call}: the stored output {file or 'of it'} is gone; this is what is left]"
            return f"{text}{gone if file or is_lost else ''}"
        try:
            return store.read(body).decode("utf-8", "replace")
        except FoldmarkError as error:
            return f"{text}\n[{error}]"

    return read


def _result_text(row: dict[str, JSON], call: str) -> str:
    return "\n".join(block_text(b) for b in _content(row) if b.get("tool_use_id") == call)


def _content(row: dict[str, JSON]) -> list[Block]:
    content = mapping(row.get("message")).get("content")
    return [text_block(content)] if isinstance(content, str) else mappings(content)


def _shown(block: Block) -> str:
    """A block as text; of a call, its name and input."""
    if block.get("type") == "tool_use":
        given = block.get("input")
        values = given.items() if isinstance(given, dict) else [("input", given)]
        return "\n".join(
            [f"{block.get('name')} {block.get('id')}", *(f"{key}: {_written(value)}" for key, value in values)]
        )
    return block_text(block)


def _written(value: JSON) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
