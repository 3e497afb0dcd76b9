"""What taking messages out of the middle of a view is worth: the one place where stages get their verdicts from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.context.tokens.cost import CacheLife
from core.context.tokens.window import AUTO_BUFFER_TOKENS, levels
from core.model import Message
from core.stages.base import Scene
from core.stages.verdict import Verdict, requests_to_come, verdict

LIFE: dict[CacheLife, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
"""How long a prefix stays in the cache after the last request that used it."""


def auto_threshold_tokens(scene: Scene) -> int:
    """Where automatic compaction is due; by the model's window where the scene does not say."""
    return scene.auto_threshold_tokens or levels(scene.model).auto_threshold


def effective_tokens(scene: Scene) -> int:
    """What the context may fill: the automatic threshold and the room above it."""
    return auto_threshold_tokens(scene) + AUTO_BUFFER_TOKENS


def cache_life(messages: Sequence[Message]) -> CacheLife:
    """How long the cache lives, by what the newest request that wrote to it was charged for."""
    written = (m.usage for m in reversed(messages) if m.usage and m.usage.cache_creation_tokens)
    newest = next(written, None)
    return "1h" if newest and newest.cache_1h_tokens else "5m"


def is_cold(scene: Scene) -> bool:
    """Whether the cache has gone since the last response; without a clock it has not."""
    last = next((m.timestamp for m in reversed(scene.messages) if m.kind == "response"), "")
    try:
        then = datetime.fromisoformat(last)
    except ValueError:
        return False
    if scene.now is None or (then.tzinfo is None) != (scene.now.tzinfo is None):
        return False
    return scene.now - then > LIFE[cache_life(scene.messages)]


def worth(scene: Scene, total_tokens: int, deleted_tokens: int, behind_tokens: int) -> Verdict:
    """The verdict on an edit; `behind_tokens` follow the first change and stay.

    They are all taken as cached: what came after the newest request is little.
    """
    left = total_tokens - deleted_tokens
    requests = requests_to_come(scene.messages, left, auto_threshold_tokens(scene))
    life = cache_life(scene.messages)
    return verdict(scene.model, deleted_tokens, behind_tokens, requests, cold=is_cold(scene), life=life)
