"""A streamed message put together again, with every field as it came, also those that no SDK knows yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from core.api.endpoint import Reply
from core.errors import ApiError
from core.model import JSON, UNDECODABLE, Block, Usage, mapping, mappings, string
from core.transcript.formats.messages import usage_of


def reply_of(message: Mapping[str, JSON]) -> Reply:
    """The reply that a whole message of the API is."""
    return Reply(
        tuple(mappings(message.get("content"))),
        string(message.get("stop_reason")),
        usage_of(mapping(message.get("usage"))) or Usage(),
        string(message.get("model")),
        string(message.get("id")),
        message,
    )


class StreamedMessage:
    """What the events of a stream have said so far; `on_text` gets the text as it comes."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self._message: dict[str, JSON] = {}
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, list[str]] = {}
        self._texts: dict[int, list[str]] = {}
        self._on_text = on_text
        self._whole = False

    def add(self, event: Mapping[str, JSON]) -> None:
        """Takes one event; those of unknown types say nothing."""
        at = event.get("index")
        match event.get("type"):
            case "message_start":
                self._message = dict(mapping(event.get("message")))
            case "content_block_start" if isinstance(at, int):
                self._blocks[at] = dict(mapping(event.get("content_block")))
                self._said(string(self._blocks[at].get("text")))
            case "content_block_delta" if isinstance(at, int) and at in self._blocks:
                self._delta(at, mapping(event.get("delta")))
            case "message_delta":
                self._finish(event)
            case "message_stop":
                self._whole = True

    @property
    def usage(self) -> Usage:
        """What it was charged for, as far as that was said: the prompt, once it has begun."""
        return usage_of(mapping(self._message.get("usage"))) or Usage()

    def reply(self) -> Reply:
        """The whole message.  Raises `ApiError` if the stream ended before it was whole."""
        if not self._whole:
            raise ApiError("network", "the answer of the model broke off", "try again")
        content: list[JSON] = [self._block(at) for at in sorted(self._blocks)]
        return reply_of({**self._message, "content": content})

    def _delta(self, at: int, delta: Block) -> None:
        block = self._blocks[at]
        match delta.get("type"):
            case "text_delta":
                self._texts.setdefault(at, []).append(string(delta.get("text")))
                self._said(string(delta.get("text")))
            case "thinking_delta":
                self._texts.setdefault(at, []).append(string(delta.get("thinking")))
            case "input_json_delta":
                self._inputs.setdefault(at, []).append(string(delta.get("partial_json")))
            case "citations_delta":
                cited = block.get("citations")
                block["citations"] = [*(cited if isinstance(cited, list) else []), delta.get("citation")]
            case _:  # signature and compaction come whole; so does what is not known yet
                block.update({key: value for key, value in delta.items() if key != "type"})

    def _finish(self, event: Mapping[str, JSON]) -> None:
        """Figures of the end are totals; what the end does not say, the beginning said."""
        usage = mapping(self._message.get("usage"))
        counted = {key: value for key, value in mapping(event.get("usage")).items() if value is not None}
        more = {k: v for k, v in event.items() if k not in ("type", "delta", "usage") and v is not None}
        self._message = {**self._message, **more, **mapping(event.get("delta")), "usage": {**usage, **counted}}

    def _block(self, at: int) -> Block:
        block = self._blocks[at]
        if at in self._texts:
            key = "thinking" if block.get("type") == "thinking" else "text"
            block = {**block, key: string(block.get(key)) + "".join(self._texts[at])}
        if at in self._inputs:
            block = {**block, "input": _input("".join(self._inputs[at]))}
        return block

    def _said(self, text: str) -> None:
        if text and self._on_text is not None:
            self._on_text(text)


def _input(text: str) -> JSON:
    """The arguments of a call; a text that was cut off before it was JSON is none."""
    try:
        value: JSON = msgspec.json.decode(text or "{}")
    except UNDECODABLE:
        return {}
    return value
