"""Two contexts side by side: which messages of the first are still there, and what of the others is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from core.facts.names import names_in
from core.facts.scan import scan
from core.facts.statements import units
from core.facts.text import SCAN_CHARS, one_line, typed
from core.model import Block, Message, block_text, call_id, tool_results, tool_uses, without_thinking
from core.redact.text import redact
from core.redact.values import redact_messages
from core.report.data import NameCoverage, PartLine, Place, PlaceCount, Said, Standing

LARGEST = 12
"""How many of the largest parts are named."""
MISSING = 12
"""How many names that the context lost are named."""
_SAID_CHARS = 240
_BEGINNING_CHARS = 200
"""A request of which so much is there stands in part: summaries cut long ones, and keep their beginnings."""
PLACES: tuple[Place, ...] = ("kept", "changed", "stored", "gone")


@dataclass(frozen=True, slots=True)
class Pair:
    """A message of before, the one that is it now (None: it is out of the context), and the tokens of both."""

    before: Message
    after: Message | None
    tokens: int
    tokens_after: int
    place: Place

    @property
    def ids(self) -> tuple[str, ...]:
        """What it is found by: a result by its call, anything else by its row."""
        calls = tuple(call_id(block) for block in tool_results(self.before))
        return calls or self.before.uuids


@dataclass(frozen=True)
class Comparison:
    """Two contexts with the tokens of each message; `readable` are the ids that can be read on demand after."""

    before: Sequence[Message]
    before_tokens: Sequence[int]
    after: Sequence[Message]
    after_tokens: Sequence[int]
    readable: Collection[str]

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every message of before with what became of it."""
        same = dict(_paired(self.before, self.after))
        return [self._pair(i, same.get(i)) for i in range(len(self.before))]

    def _pair(self, i: int, at: int | None) -> Pair:
        message, tokens = self.before[i], self.before_tokens[i]
        if at is None:
            ids = (*message.uuids, *(call_id(b) for b in tool_results(message)))
            readable = not message.content or any(ident in self.readable for ident in ids)
            return Pair(message, None, tokens, 0, "stored" if readable else "gone")
        kept = _content(message) == _content(self.after[at])
        return Pair(message, self.after[at], tokens, self.after_tokens[at], "kept" if kept else "changed")

    def places(self) -> dict[Place, PlaceCount]:
        """How much of before is where now."""
        return {
            place: PlaceCount(
                messages=sum(p.place == place for p in self.pairs),
                tokens=sum(p.tokens for p in self.pairs if p.place == place),
            )
            for place in PLACES
        }

    def largest(self) -> list[PartLine]:
        """The largest messages of before, and where they went."""
        names = {call_id(b): str(b.get("name")) for m in self.before for b in tool_uses(m)}
        ranked = sorted((p for p in self.pairs if p.tokens), key=lambda p: -p.tokens)[:LARGEST]
        return [
            PartLine(
                id=p.ids[0] if p.ids else "",
                kind=p.before.kind,
                tool=redact(names.get(p.ids[0], "")) if tool_results(p.before) else "",
                tokens=p.tokens,
                tokens_after=p.tokens_after,
                place=p.place,
            )
            for p in ranked
        ]

    def reachable(self) -> list[str]:
        """Ids of what is not in the context as it was, and can be read on demand."""
        changed = [i for p in self.pairs if p.place in ("changed", "stored") for i in p.ids]
        return [*dict.fromkeys(i for i in changed if i in self.readable)]

    def gone(self) -> list[str]:
        """Ids of what is nowhere any more."""
        return [p.ids[0] if p.ids else "" for p in self.pairs if p.place == "gone"]

    def warnings(self) -> list[str]:
        """That the two are not before and after of anything."""
        places = {pair.place for pair in self.pairs}
        if places == {"gone"}:
            return ["the two share no message: was one of them made of the other?"]
        if places == {"kept"} and len(self.pairs) == len(self.after):
            return ["both hold the same messages"]
        return []

    def requests(self) -> list[Said]:
        """What the person asked for, oldest first."""
        return [self._said(pair, text) for pair, text in self._prompts]

    def constraints(self) -> list[Said]:
        """What the person said that goes on to hold, each once."""
        stated = {one_line(unit): pair for pair, text in self._prompts for unit in units(text)}
        return [self._said(pair, unit) for unit, pair in stated.items()]

    def _said(self, pair: Pair, text: str) -> Said:
        line = one_line(text)
        return Said(
            id=pair.before.uuid,
            text=line if len(line) <= _SAID_CHARS else f"{line[: _SAID_CHARS - 1].rstrip()}…",
            standing=self._standing(pair, line),
        )

    def _standing(self, pair: Pair, line: str) -> Standing:
        if pair.place == "kept" or line in self._after_text:
            return "verbatim"
        if len(line) > _BEGINNING_CHARS and line[:_BEGINNING_CHARS] in self._after_text:
            return "in part"
        return "gone" if pair.place == "gone" else "stored"

    def names(self) -> NameCoverage:
        """Which names of the calls and the prose of what left the context it still has, the most used ones first."""
        talk = scan([p.before for p in self.pairs if p.place != "kept"])
        paths, symbols = talk.names.ranked()
        own = {name for name, use in talk.names.uses.items() if use.own}
        paths, symbols = [n for n in paths if n in own], [n for n in symbols if n in own]
        there = {*_names_of(self._after_text)}
        there |= {name for name in own - there if name in self._after_text}
        missing = [name for name in (*paths, *symbols) if name not in there]
        return NameCoverage(
            paths=len(paths),
            paths_named=sum(name in there for name in paths),
            symbols=len(symbols),
            symbols_named=sum(name in there for name in symbols),
            missing=missing[:MISSING],
        )

    @cached_property
    def _prompts(self) -> list[tuple[Pair, str]]:
        clean = redact_messages(self.before)
        said = [(p, typed(_text(m))[:SCAN_CHARS]) for p, m in zip(self.pairs, clean, strict=True) if m.kind == "prompt"]
        return [(pair, text) for pair, text in said if text]

    @cached_property
    def _after_text(self) -> str:
        return one_line("\n".join(_text(message) for message in redact_messages(self.after)))


def _paired(before: Sequence[Message], after: Sequence[Message]) -> Iterable[tuple[int, int]]:
    """Places of messages that are the same ones: by their ids, else by what they say (documents have no ids)."""
    by_id = {uuid: at for at, message in enumerate(after) for uuid in message.uuids}
    by_content: dict[bytes, list[int]] = {}
    for at in reversed(range(len(after))):
        by_content.setdefault(_content(after[at]), []).append(at)
    for i, message in enumerate(before):
        found = [by_id[uuid] for uuid in message.uuids if uuid in by_id]
        alike = by_content.get(_content(message), [])
        if found:
            yield i, found[0]
        elif alike:
            yield i, alike.pop()


def _content(message: Message) -> bytes:
    """What a message says, thinking aside: that is bound to its place, and goes with any change before it."""
    return msgspec.json.encode([message.role, without_thinking(message).content], order="deterministic")


def _text(message: Message) -> str:
    return "\n".join(filter(None, (_block_text(block) for block in message.content)))


def _block_text(block: Block) -> str:
    if block.get("type") == "tool_use":
        return msgspec.json.encode(block.get("input")).decode()
    return block_text(block)


def _names_of(text: str) -> Iterable[str]:
    paths, symbols = names_in(text)
    yield from paths
    yield from symbols
