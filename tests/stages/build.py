"""Histories and scenes for the tests of stages, made message by message."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from core.context.decisions import Decision, fold
from core.context.tokens.models import lookup
from core.context.view import api_messages
from core.model import JSON, Block, Kind, Message, Role, tool_results, tool_uses
from core.stages.base import Plan, Scene, Stage, applied

MODEL = lookup("claude-opus-4-6")
STORE = "/store/tool-results"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (800).to_bytes(4, "big") + (600).to_bytes(4, "big") + b"\x08\x02\0\0\0"


class History:
    """Messages that grow; every method returns it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def prompt(self, *content: str | Block) -> History:
        blocks = tuple(text(c) if isinstance(c, str) else c for c in content)
        return self._add("user", "prompt", blocks)

    def answer(self, text: str, thinking: str = "") -> History:
        return self._add("assistant", "response", (*_thinking(thinking), {"type": "text", "text": text}))

    def calls(self, *calls: tuple[str, str, Mapping[str, JSON]], thinking: str = "") -> History:
        """A response that calls tools: (id, name, input)."""
        blocks: list[Block] = [{"type": "tool_use", "id": i, "name": n, "input": {**g}} for i, n, g in calls]
        return self._add("assistant", "response", (*_thinking(thinking), *blocks))

    def result(self, ident: str, content: JSON, error: bool = False) -> History:
        block: Block = {"type": "tool_result", "tool_use_id": ident, "content": content}
        return self._add("user", "results", ({**block, "is_error": True} if error else block,))

    def use(
        self, ident: str, name: str, content: JSON, /, thinking: str = "", error: bool = False, **given: Any
    ) -> History:
        return self.calls((ident, name, given), thinking=thinking).result(ident, content, error)

    def scene(self, **fields: Any) -> Scene:
        return Scene(tuple(self.messages), MODEL, **{"store_folder": STORE, **fields})

    def _add(self, role: Role, kind: Kind, content: tuple[Block, ...]) -> History:
        n = len(self.messages) + 1
        stamp = f"2026-03-01T10:{n // 60:02}:{n % 60:02}.000Z"
        response = f"msg_{n}" if kind == "response" else ""
        self.messages.append(Message(role, kind, content, (f"u{n}",), response, timestamp=stamp))
        return self


def _thinking(text: str) -> tuple[Block, ...]:
    return ({"type": "thinking", "thinking": text, "signature": "c2ln"},) if text else ()


def image(data: bytes = PNG, kind: str = "image/png") -> Block:
    """An image, or a PDF."""
    source: JSON = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return {"type": "document" if kind == "application/pdf" else "image", "source": source}


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def shown(scene: Scene, ident: str) -> Block:
    """The result of a call, as the model sees it."""
    return next(b for m in scene.view().messages for b in tool_results(m) if b["tool_use_id"] == ident)


def items(scene: Scene, ident: str) -> list[dict[str, Any]]:
    """The blocks of a result, as the model sees it."""
    content = shown(scene, ident)["content"]
    assert isinstance(content, list)
    return [item for item in content if isinstance(item, dict)]


def resumed(scene: Scene, decisions: Sequence[Decision]) -> Scene:
    """The scene of a program that reads the history and the written decisions anew."""
    written = msgspec.json.decode(msgspec.json.encode(decisions), type=list[Decision])
    return Scene(scene.messages, scene.model, fold(written), store_folder=scene.store_folder)


def sent(scene: Scene) -> bytes:
    """The bytes of the next request's messages."""
    return msgspec.json.encode(api_messages(scene.view().messages))


def run(stage: Stage, scene: Scene) -> tuple[Plan, Scene]:
    plan = stage.plan(scene)
    return plan, applied(scene, plan)


def pairs_are_whole(messages: Sequence[Message]) -> bool:
    calls = [str(b["id"]) for m in messages for b in tool_uses(m)]
    results = [str(b["tool_use_id"]) for m in messages for b in tool_results(m)]
    return sorted(calls) == sorted(results)
