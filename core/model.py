"""The words that every part shares: JSON, content blocks, messages, usage.

A `Message` is what one API message is made of, before neighbours are merged: one user entry, or one whole
response.  All formats are read into it; stages, summarisers and token counts work on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import msgspec

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
Block: TypeAlias = "dict[str, JSON]"
"""One content block of the Messages API (`{"type": "text", ...}`), keys and order as in the source."""

Role: TypeAlias = Literal["user", "assistant", "system"]
Kind: TypeAlias = Literal["prompt", "response", "results", "summary", "meta", "command", "attachment"]
"""prompt: typed by a person.  response: by the model.  results: of tools.  summary: of a compaction.
meta: injected by the client.  command: a local command and its output.  attachment: a state change."""

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that it does not decode: no JSON, or of another shape; no UTF-8; nested too deeply."""
REMINDER = "<system-reminder>\n{}\n</system-reminder>"
"""How the client wraps what it, and not a person, tells the model."""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What the API reported for one response, in tokens; `input_tokens` is the uncached part."""

    input_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    cache_1h_tokens: int = 0
    """The part of `cache_creation_tokens` that was written with a lifetime of one hour."""

    def __add__(self, other: Usage) -> Usage:
        """What two responses took together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_1h_tokens + other.cache_1h_tokens,
        )

    @property
    def prompt_tokens(self) -> int:
        """The exact size of everything that was sent."""
        return self.input_tokens + self.cache_creation_tokens + self.cache_read_tokens

    @property
    def total_tokens(self) -> int:
        """The exact size of the context once the response is part of it."""
        return self.prompt_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Message:
    """One user entry or one whole response, with where it came from."""

    role: Role
    kind: Kind
    content: tuple[Block, ...]
    uuids: tuple[str, ...] = ()
    """The entries it is made of, in file order; derived and stable where the format has no ids."""
    response_id: str = ""
    """The API's `message.id`; empty but for responses."""
    model: str = ""
    usage: Usage | None = None
    timestamp: str = ""
    charged: Usage | None = None
    """What its request was charged, where `usage` is Foldmark's figure for a shorter one that was never made."""

    @property
    def uuid(self) -> str:
        """The first entry's id: the name of the message towards a person."""
        return self.uuids[0] if self.uuids else ""


def string(value: JSON) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def mapping(value: JSON) -> dict[str, JSON]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: JSON) -> list[JSON]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def mappings(value: JSON) -> list[dict[str, JSON]]:
    """The objects in the value if it is an array."""
    return [item for item in sequence(value) if isinstance(item, dict)]


def count(value: JSON) -> int:
    """The value if it is a whole number above zero, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def text_block(text: str) -> Block:
    """A text block."""
    return {"type": "text", "text": text}


def block_text(block: Block) -> str:
    """The readable text of a block: its text, thinking, or the joined text of a tool result; "" for media."""
    texts: list[str] = []
    todo = [block]
    while todo:  # results in results can be nested as deeply as a file likes
        value = _readable(todo.pop())
        if isinstance(value, list):
            todo += reversed(mappings(value))
        elif isinstance(value, str) and value:
            texts.append(value)
    return "\n".join(texts)


def _readable(block: Block) -> JSON:
    """The text of a block, or the blocks that have it."""
    match block.get("type"):
        case "text":
            return block.get("text")
        case "thinking":
            return block.get("thinking")
        case "tool_result" | "compaction":
            return block.get("content")
        case "document":
            source = mapping(block.get("source"))
            return source.get("data") if source.get("type") == "text" else None
    return None


def is_media(item: JSON) -> bool:
    """Whether a content block is an image or a document."""
    return isinstance(item, dict) and item.get("type") in ("image", "document")


def is_thinking(item: JSON) -> bool:
    """Whether a content block is thinking, readable or not."""
    return isinstance(item, dict) and item.get("type") in ("thinking", "redacted_thinking")


def without_thinking(message: Message) -> Message:
    """The message without its thinking, which is bound to what stood before it; itself if it holds none."""
    kept = tuple(b for b in message.content if not is_thinking(b))
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def call_id(block: Block) -> str:
    """The id that a call and its result share, of either; "" for one that is no text: it pairs with nothing."""
    value = block.get("id" if block.get("type") == "tool_use" else "tool_use_id")
    return value if isinstance(value, str) else ""


def tool_uses(message: Message) -> list[Block]:
    """The tool calls of a response, in order."""
    return [b for b in message.content if b.get("type") == "tool_use"]


def tool_results(message: Message) -> list[Block]:
    """The tool results of a user message, in order."""
    return [b for b in message.content if b.get("type") == "tool_result"]
