"""What taking messages out of the middle of a view is worth: the one place where stages get their verdicts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from core.context.tokens.cost import CacheLife
from core.context.tokens.window import AUTO_BUFFER_TOKENS, levels
from core.model import Message
from core.stages.base import Scene
from core.stages.verdict import LIFE, Outlook, Verdict, charged, outlook_of, time_of, verdict


def auto_threshold_tokens(scene: Scene) -> int:
    """Where automatic compaction is due; by the model's window where the scene does not say."""
    return scene.auto_threshold_tokens or levels(scene.model).auto_threshold


def effective_tokens(scene: Scene) -> int:
    """What the context may fill: the automatic threshold and the room above it."""
    return auto_threshold_tokens(scene) + AUTO_BUFFER_TOKENS


def cache_life(messages: Sequence[Message]) -> CacheLife:
    """How long the cache lives, by what the newest request that wrote to it was charged for."""
    written = (usage for m in reversed(messages) if (usage := charged(m)) and usage.cache_creation_tokens)
    newest = next(written, None)
    return "1h" if newest and newest.cache_1h_tokens else "5m"


def pause(scene: Scene) -> timedelta:
    """How long ago the last response came; nothing where that is not known, or without a clock."""
    last = next((m for m in reversed(scene.messages) if m.kind == "response"), None)
    then = time_of(last) if last else None
    if scene.now is None or scene.now.tzinfo is None or then is None:
        return timedelta()
    return scene.now - then


def is_cold(scene: Scene) -> bool:
    """Whether the cache has gone since the last response; without a clock it has not."""
    return pause(scene) > LIFE[cache_life(scene.messages)]


def outlook(scene: Scene, total_tokens: int, life: CacheLife) -> Outlook:
    """What is likely to come in a session whose context has this size."""
    return outlook_of(scene.messages, total_tokens, auto_threshold_tokens(scene), scene.overhead_tokens, life)


def weighing(scene: Scene, total_tokens: int) -> Callable[[int, int], Verdict]:
    """Gives verdicts on edits of one view, by the tokens that are deleted and those that `worth` calls behind.

    What is to come is made out once, not for each of many edits.
    """
    life, cold = cache_life(scene.messages), is_cold(scene)
    ahead = outlook(scene, total_tokens, life)
    return lambda deleted, behind: verdict(scene.model, deleted, behind, ahead, cold=cold, life=life)


def worth(scene: Scene, total_tokens: int, deleted_tokens: int, behind_tokens: int) -> Verdict:
    """The verdict on an edit; `behind_tokens` follow the first change and stay.

    They are all taken as cached: what came after the newest request is little.
    """
    return weighing(scene, total_tokens)(deleted_tokens, behind_tokens)
