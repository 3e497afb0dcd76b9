"""Short messages for the tests of the summarisers, and the summary of some."""

from __future__ import annotations

from core.facts.scan import Talk, scan
from core.model import JSON, Block, Kind, Message
from core.summarizers.base import DEFAULT_BUDGET_CHARS, SummaryRequest
from core.summarizers.extractive import Extractive


def said(text: str, uuid: str = "11112222-0000", kind: Kind = "prompt") -> Message:
    """What a person typed, or (`kind`) what a client made of it."""
    return Message("user", kind, ({"type": "text", "text": text},), (uuid,))


def answer(text: str, *blocks: Block) -> Message:
    """A response of the model."""
    return Message("assistant", "response", ({"type": "text", "text": text}, *blocks), ("aaaabbbb-0000",))


def call(id_: str, name: str, **fields: JSON) -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": id_, "name": name, "input": dict(fields)}


def result(id_: str, text: str, failed: bool = False) -> Message:
    """The answer to a tool call."""
    block: Block = {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": failed}
    return Message("user", "results", (block,))


def done(name: str, text: str = "ok", failed: bool = False, **fields: JSON) -> list[Message]:
    """A tool call and its answer."""
    return [answer("", call("c", name, **fields)), result("c", text, failed)]


def talk(*messages: Message) -> Talk:
    """What the sections are made of."""
    return scan(messages)


def summary_of(*messages: Message, budget: int = DEFAULT_BUDGET_CHARS, previous: str = "", asked: str = "") -> str:
    """The summary's text."""
    return Extractive().summarize(SummaryRequest(messages, budget, asked, previous, "/w", "/t.jsonl")).text


def section(text: str, title: str) -> list[str]:
    """The lines of one section."""
    body = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line for line in body.split("\n") if line]
