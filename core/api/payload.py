"""What goes along with a request body: the beta headers that it needs, what of it is counted, its estimated size."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from core.context.tokens.estimate import Estimator
from core.context.tokens.models import Model
from core.model import JSON, Block, mapping, mappings, text_block
from core.transcript.outline import outline_blocks

CONTEXT_BETA = "context-management-2025-06-27"
"""The API takes `context_management` only with this header."""
COMPACTION_BETA = "compact-2026-09-04"
"""For `compaction`, and for every request that holds the signed block which that gave."""
THRESHOLD_BETA = "compact-2026-01-12"
"""For the edit `compact_20260112`, and for the unsigned blocks which that gave."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""For `thinking.block_binding`."""
_COUNTED = ("model", "system", "tools", "messages", "thinking", "tool_choice", "output_config", "context_management")


def betas(body: Mapping[str, JSON]) -> tuple[str, ...]:
    """The beta headers that a body needs."""
    edits = {edit.get("type") for edit in mappings(mapping(body.get("context_management")).get("edits"))}
    compacted = [b for b in prompt_blocks(body) if b.get("type") == "compaction"]
    needed = {
        CONTEXT_BETA: "context_management" in body and edits != {"compact_20260112"},
        COMPACTION_BETA: "compaction" in body or any(b.get("signature") for b in compacted),
        THRESHOLD_BETA: "compact_20260112" in edits or any(not b.get("signature") for b in compacted),
        BINDING_BETA: "block_binding" in mapping(body.get("thinking")),
    }
    return tuple(beta for beta, wanted in needed.items() if wanted)


def count_payload(body: Mapping[str, JSON]) -> dict[str, JSON]:
    """What of a body the token count takes: the same tokens, none of what only a call needs."""
    return {key: body[key] for key in _COUNTED if key in body}


def prompt_blocks(body: Mapping[str, JSON]) -> list[Block]:
    """All that a body sends, as blocks in the order in which the API reads them: tools, system prompt, messages."""
    return [
        *(text_block(msgspec.json.encode(tool).decode()) for tool in mappings(body.get("tools"))),
        *_content(body.get("system")),
        *(block for message in mappings(body.get("messages")) for block in _content(message.get("content"))),
    ]


def prompt_tokens(body: Mapping[str, JSON], model: Model) -> int:
    """The estimated size of what a body sends to a model."""
    return round(Estimator(model).tokens(outline_blocks(prompt_blocks(body))))


def _content(value: JSON) -> list[Block]:
    return [text_block(value)] if isinstance(value, str) else mappings(value)
