"""How full a context is: the window of a model, and the levels at which something happens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.context.tokens.ledger import ContextSize
from core.context.tokens.models import Model

if TYPE_CHECKING:
    from core.settings import Settings

State: TypeAlias = Literal["ok", "warning", "compact", "blocked"]
"""warning: near the threshold.  compact: automatic compaction is due.  blocked: no room but for a compaction."""

ANSWER_TOKENS = 20_000
"""What is kept free for the answer (less where the model writes less); a summary needs at most this."""
AUTO_BUFFER_TOKENS = 13_000
"""The threshold of automatic compaction stands this far below the effective window."""
WARNING_BUFFER_TOKENS = 20_000
"""The warning comes this far below the threshold."""
MANUAL_BUFFER_TOKENS = 3_000
"""Room that is left for a manual compaction when nothing else fits."""
BLOCKING_TAIL_FACTOR = 1.2
"""An estimate counts for more when the question is whether a request will be refused."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What a person says about the sizes of sessions: more models than are known, and another window."""

    models_file: Path | None = None
    window_tokens: int | None = None
    """In place of the one that a session has."""

    @classmethod
    def of(cls, settings: Settings) -> Measuring:
        """What a user has set."""
        return cls(settings.models_file, settings.window_tokens)


AS_FOUND = Measuring()


@dataclass(frozen=True, slots=True)
class Levels:
    """The sizes, in tokens, at which the state of a context changes."""

    window: int
    effective: int
    """What the context may fill: the window without the room for the answer."""
    auto_threshold: int
    """Where automatic compaction is due; there even when it is off, for what it would be."""
    warning: int
    error: int
    blocking: int
    auto_compact: bool

    def state(self, size: ContextSize) -> State:
        """The state of a context; a warning goes by exact usage where there is any, the rest by usage and tail."""
        blocking = size.total_tokens + (BLOCKING_TAIL_FACTOR - 1) * size.tail_tokens
        if size.source == "estimate":
            blocking = size.total_tokens
        if blocking >= self.blocking:
            return "blocked"
        if self.auto_compact and size.total_tokens >= self.auto_threshold:
            return "compact"
        shown = size.usage_tokens or size.total_tokens
        return "warning" if shown >= self.warning else "ok"


def levels(model: Model, window_tokens: int | None = None, auto_compact: bool = True) -> Levels:
    """The levels of a model; `window_tokens` overrides its window.  A window too small for any level gives zeros."""
    window = model.window_tokens if window_tokens is None else window_tokens
    effective = max(0, window - min(model.max_output_tokens, ANSWER_TOKENS))
    auto_threshold = max(0, effective - AUTO_BUFFER_TOKENS)
    warning = max(0, (auto_threshold if auto_compact else effective) - WARNING_BUFFER_TOKENS)
    blocking = max(0, effective - MANUAL_BUFFER_TOKENS)
    return Levels(window, effective, auto_threshold, warning, warning, blocking, auto_compact)
