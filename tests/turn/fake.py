"""An endpoint that lives in the test: it counts, caches, refuses what is over its window, and answers by a script."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from core.api.endpoint import Reply
from core.api.payload import prompt_tokens
from core.context.tokens.models import lookup
from core.context.tokens.window import levels
from core.errors import ApiError
from core.model import JSON, Block, Usage
from core.transcript.store import Store
from core.turn.journal import Journal
from core.turn.loop import Conversation
from core.turn.work import TurnSettings, Work

MODEL = lookup("claude-opus-4-5")
"""A window of 200,000 tokens."""
Script = Callable[["Fake", Mapping[str, JSON]], Reply | Sequence[Block] | str]


@dataclass
class Fake:
    """`factor` is how much more it counts than we estimate; `overhead_tokens` what it adds to each request."""

    script: Script = lambda _fake, _body: "Done."
    window_tokens: int = 200_000
    factor: float = 1.0
    overhead_tokens: int = 0
    says_figures: bool = True
    failures: list[ApiError] = field(default_factory=list)
    """Raised first, one after the other."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    sizes_tokens: list[int] = field(default_factory=list)
    refused: int = 0
    cached: list[str] = field(default_factory=list)

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        self.bodies.append(msgspec.json.decode(msgspec.json.encode(body)))
        pairs_are_sound(self.bodies[-1])
        if self.failures:
            raise self.failures.pop(0)
        asked = self.count(body)
        self.sizes_tokens.append(asked)
        if asked > self.window_tokens:
            self.refused += 1
            raise too_long(asked, self.window_tokens) if self.says_figures else ApiError("too-long", "too long")
        reply = self._reply(self.script(self, body))
        if on_text is not None:
            on_text(reply.text)
        said = max(1, prompt_tokens({"messages": [{"content": [*reply.content]}]}, MODEL))
        new = prefixes(body)
        shared = sum(a == b for a, b in zip(new, self.cached, strict=False))
        self.cached = new
        read = asked * shared // max(1, len(new))
        usage = Usage(0, asked - read, read, said)
        return replace(reply, usage=reply.usage if reply.usage.prompt_tokens else usage)

    def count(self, body: Mapping[str, JSON]) -> int:
        return round(self.factor * prompt_tokens(body, lookup(str(body.get("model") or "")))) + self.overhead_tokens

    def _reply(self, said: Reply | Sequence[Block] | str) -> Reply:
        if isinstance(said, Reply):
            return said
        blocks: tuple[Block, ...] = ({"type": "text", "text": said},) if isinstance(said, str) else tuple(said)
        calls = any(b["type"] == "tool_use" for b in blocks)
        ident = hashlib.sha256(msgspec.json.encode(self.bodies[-1])).hexdigest()[:12]
        return Reply(blocks, "tool_use" if calls else "end_turn", model=MODEL.id, id=f"msg_{ident}")


def too_long(asked: int, limit: int) -> ApiError:
    message = f"prompt is too long: {asked} tokens > {limit} maximum"
    return ApiError("too-long", message, asked_tokens=asked, limit_tokens=limit)


def bare(value: Any) -> Any:
    """Without cache marks, which are no part of what is cached."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "cache_control"}
    return [bare(v) for v in value] if isinstance(value, list) else value


def blocks_of(body: Mapping[str, Any]) -> Iterator[Any]:
    for message in body["messages"]:
        for block in message["content"]:
            yield [message["role"], bare(block)]


def prefixes(body: Mapping[str, Any]) -> list[str]:
    """A hash for each block of the conversation, of all bytes up to it."""
    total, out = hashlib.sha256(), []
    for block in blocks_of(body):
        total.update(msgspec.json.encode(block))
        out.append(total.hexdigest())
    return out


def pairs_are_sound(body: Mapping[str, Any]) -> None:
    """What the API demands: roles alternate, each call is answered in the next message, nothing else is."""
    messages = body["messages"]
    assert messages[0]["role"] == "user"
    assert all(a["role"] != b["role"] for a, b in pairwise(messages))
    open_calls: list[str] = []
    for message in messages:
        assert message["content"]
        results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        assert sorted(results) == sorted(open_calls)
        open_calls = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
    assert open_calls == []


class Clock:
    """A minute passes with each look."""

    def __init__(self, step: timedelta = timedelta(seconds=20)) -> None:
        self.time, self.step = datetime(2026, 3, 1, 10, tzinfo=UTC), step

    def __call__(self) -> datetime:
        return self.time

    def tick(self) -> None:
        self.time += self.step


def conversation(folder: Path, fake: Fake, journal: Journal | None = None, **fields: Any) -> Conversation:
    """A conversation with a fake model; `fields` are those of the settings or of the conversation."""
    mine = {k: fields.pop(k) for k in [*fields] if k in Conversation.__dataclass_fields__}
    clock = fields.pop("clock", None)
    settings = TurnSettings(**{"model": MODEL, "window_tokens": fake.window_tokens, **fields})
    work = Work(journal or Journal("s"), settings, Store(folder / "tool-results"), clock)
    return Conversation(work, fake, **mine)


def threshold(tokens: int) -> int:
    return levels(MODEL, tokens).auto_threshold
