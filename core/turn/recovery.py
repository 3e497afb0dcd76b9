"""What is done when the API refuses a request: a ladder of steps, each climbed at most once a turn.

The error is held back as long as a step is left that changes something; a rate limit is never a prompt that is too
long.  Of a size that the API states, so much goes that the next request fits: its figure also says how far off our own
estimate is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.context.decisions import Committed, MediaReplaced, Replaced
from core.errors import ApiError, CompactionError, FailureKind, StorageError
from core.model import JSON
from core.stages.base import Plan, Scene
from core.stages.collapse import Collapse
from core.stages.media import Media, MediaSettings, Pick
from core.summarizers.extractive import Extractive
from core.transcript.blob import json_bytes
from core.turn.events import Climbed, Limited, Recovered, Rung, Stripped
from core.turn.peel import clip
from core.turn.work import Work

MEDIA_RUNGS: tuple[Rung, ...] = ("media-old", "media-large", "media-all")
SIZE_RUNGS: tuple[Rung, ...] = ("clip", "drain", "peel", "peel-more", "peel-all", "summary")
RUNGS: Mapping[FailureKind, tuple[Rung, ...]] = {
    "media": MEDIA_RUNGS,
    "output-room": ("max-tokens", *SIZE_RUNGS),
    "too-long": SIZE_RUNGS,
    "thinking": ("thinking",),
}
LEAST_MAX_TOKENS = 4_096
"""An answer gets at least this much room, and at least half of what it had."""
RESERVE_TOKENS, RESERVE_SHARE = 4_096, 0.02
"""Kept free of what the API takes, beside the room for the answer; the larger of both."""
ANSWER_SHARE = 0.1
"""Of what the API takes: so much room for the answer is made at most."""
MARGIN = 1.15
"""What is peeled beyond what is needed: estimates of spans are 8 to 14 % off."""
MORE = 1.5
"""The same again for a second try."""
UNKNOWN_SHARES: Mapping[Rung, float] = {"clip": 0.2, "drain": 0.2, "peel": 0.2, "peel-more": 0.45}
"""How much goes where the API names no figures."""
SUMMARY_KEEP_SHARE = 0.1
"""Of what the API takes: what the last step keeps word for word."""
_DATA = re.compile(rb'"data":"([^"]*)"')
_PLACE = re.compile(r"messages\.(\d+)\.content\.(\d+)")
_BYTES = re.compile(r"(\d+) bytes > (\d+) bytes")
_PIXELS = re.compile(r"max(?:imum)? (?:allowed )?size[^\d]{0,60}(\d+)")
_PAGES = re.compile(r"maximum of (\d+) pdf pages", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Goal:
    """What a refusal asks for, in tokens of our own estimate."""

    asked_tokens: float
    """The refused request."""
    most_tokens: float
    """What the API takes, less what has to stay free."""
    is_known: bool
    """Whether the API named figures."""

    @classmethod
    def of(cls, error: ApiError, total_tokens: int, window_tokens: int, max_tokens: int) -> _Goal:
        """The goal of a refused request that we estimate at `total_tokens`."""
        limit = error.limit_tokens or window_tokens
        ratio = error.asked_tokens / max(1, total_tokens) if error.asked_tokens else 1.0
        reserve = max(RESERVE_TOKENS, RESERVE_SHARE * limit)
        if error.kind != "output-room":  # there, what was asked for counts the answer
            reserve += min(max_tokens, ANSWER_SHARE * limit)
        return cls(total_tokens, max(0.0, limit - reserve) / ratio, error.asked_tokens is not None)

    def need_tokens(self, rung: Rung, total_tokens: int) -> float:
        """What a step has to free of a context that has this size now."""
        if rung == "peel-all":
            return float("inf")
        if not self.is_known:
            return UNKNOWN_SHARES.get(rung, 1.0) * self.asked_tokens
        return (MORE if rung == "peel-more" else 1.0) * MARGIN * max(0.0, total_tokens - self.most_tokens)


@dataclass
class Ladder:
    """The recovery of one turn; `removed` are the ids of all that went."""

    work: Work
    removed: list[str] = field(default_factory=list)
    climbed: list[Rung] = field(default_factory=list)
    error: ApiError | None = None

    def climb(self, error: ApiError) -> bool:
        """Takes the next steps against an error; whether to ask again.  Raises nothing: the error is the caller's.

        Steps against a size are taken until the request should fit, or none is left.
        """
        self.error = error
        work = self.work
        goal = _Goal.of(error, work.scene().total_tokens, work.levels.window, work.max_tokens)
        changed = False
        for rung in self._rungs(error):
            if rung in work.state.rungs:
                continue
            work.journal.append(Climbed(rung))
            if self._taken(rung, error, goal):
                self.climbed.append(rung)
                changed = True
                if rung not in SIZE_RUNGS or self._fits(goal):
                    return True
        return changed

    def recovered(self) -> Recovered | None:
        """What to record once the request went through; None where nothing had to be done for it."""
        if self.error is None or not self.climbed:
            return None
        asked, limit = self.error.asked_tokens, self.error.limit_tokens
        removed = tuple(dict.fromkeys(self.removed))
        return Recovered(str(self.error), tuple(self.climbed), removed, asked, limit)

    def _rungs(self, error: ApiError) -> tuple[Rung, ...]:
        rungs = RUNGS.get(error.kind, ())
        if error.kind == "too-long" and error.asked_tokens is None and self._is_mostly_media():
            rungs = (*MEDIA_RUNGS, *rungs)  # the body is too large in bytes, not in tokens
        if not self.work.settings.compaction:
            return tuple(r for r in rungs if r not in SIZE_RUNGS)
        return rungs

    def _is_mostly_media(self) -> bool:
        """Whether images and documents make more than half of the body."""
        body = json_bytes(self.work.body())
        return 2 * sum(map(len, _DATA.findall(body))) > len(body)

    def _taken(self, rung: Rung, error: ApiError, goal: _Goal) -> bool:
        """Takes one step; whether that changed the request."""
        try:
            match rung:
                case "media-old" | "media-large" | "media-all":
                    return self._strip_media(_PICKS[rung], error)
                case "max-tokens":
                    return self._lower_max_tokens(error)
                case "thinking":
                    return self._strip_thinking(error)
                case "clip":
                    scene = self.work.scene()
                    return self._decided(scene, clip(scene, goal.most_tokens))
                case "drain":
                    return self._drain(goal)
                case "summary":
                    return self._summarise(goal)
            return self._peel(rung, goal)
        except (CompactionError, StorageError):
            return False  # nothing was changed, and the error is shown

    def _strip_media(self, pick: Pick, error: ApiError) -> bool:
        said = str(error)
        settings = MediaSettings(
            pick,
            max_bytes=_figure(_BYTES, said, 2),
            max_side_pixels=_figure(_PIXELS, said, 1),
            max_pages=_figure(_PAGES, said, 1),
        )
        scene = self.work.scene()
        return self._decided(scene, Media(settings).plan(scene))

    def _lower_max_tokens(self, error: ApiError) -> bool:
        asked = self.work.max_tokens
        limit = error.limit_tokens
        most = limit if limit is not None and limit < asked else max(LEAST_MAX_TOKENS, asked // 2)
        if most >= asked:
            return False
        self.work.journal.append(Limited(most))
        return True

    def _strip_thinking(self, error: ApiError) -> bool:
        """The named block and all behind it; all of them where none is named."""
        sent = self.work.body()["messages"]
        place = _PLACE.search(str(error))
        before = _thinking_before(sent, int(place[1])) if place and isinstance(sent, list) else 0
        holders = [m for m in self.work.scene().view().messages for b in m.content if _is_sent_thinking(b)]
        uuids = tuple(dict.fromkeys(m.uuid for m in holders[before:]))
        if uuids:
            self.work.journal.append(Stripped(uuids))
            self.removed += uuids
        return bool(uuids)

    def _drain(self, goal: _Goal) -> bool:
        stage = next((s for s in self.work.settings.stages if isinstance(s, Collapse)), None)
        scene = self.work.scene()
        need_tokens = round(goal.need_tokens("drain", scene.total_tokens))
        return stage is not None and need_tokens > 0 and self._decided(scene, stage.drain(scene, need_tokens))

    def _peel(self, rung: Rung, goal: _Goal) -> bool:
        need_tokens = goal.need_tokens(rung, self.work.scene().total_tokens)
        done = self.work.peel("reactive", need_tokens, goal.most_tokens) if need_tokens > 0 else None
        if done is not None:
            self.removed += done[1].removed
        return done is not None

    def _summarise(self, goal: _Goal) -> bool:
        """The last step: one summary, made offline, and as little as possible beside it."""
        work = self.work
        before = [m.uuid for m in work.state.messages]
        keep_tokens = min(work.settings.keep_tokens, round(SUMMARY_KEEP_SHARE * goal.most_tokens))
        work.compact("reactive", Extractive(), keep_tokens=keep_tokens)
        there = {m.uuid for m in work.state.messages}
        self.removed += [u for u in before if u not in there]
        return True

    def _decided(self, scene: Scene, planned: Plan) -> bool:
        done = self.work.decide(scene, planned)
        if done.tokens_freed > 0:
            self.removed += _ids(done)
        return done.tokens_freed > 0

    def _fits(self, goal: _Goal) -> bool:
        """Whether the request should be taken now; without figures only the API can tell."""
        return not goal.is_known or self.work.scene().total_tokens <= goal.most_tokens


_PICKS: Mapping[Rung, Pick] = {"media-old": "old", "media-large": "large", "media-all": "all"}


def _ids(planned: Plan) -> Iterator[str]:
    """What the decisions of a plan take out, by id."""
    for decision in planned.decisions:
        match decision:
            case Replaced(id=ident) | MediaReplaced(body=ident):
                yield ident
            case Committed(ids=ids):
                yield from ids


def _figure(pattern: re.Pattern[str], said: str, group: int) -> int:
    """A limit that the API names; 0 where it does not."""
    found = pattern.search(said)
    return int(found[group]) if found else 0


def _is_sent_thinking(block: JSON) -> bool:
    """Whether a block is thinking that a request holds: what was never signed is left out."""
    return isinstance(block, dict) and (
        block.get("type") == "redacted_thinking" or (block.get("type") == "thinking" and bool(block.get("signature")))
    )


def _thinking_before(sent: Sequence[JSON], at: int) -> int:
    """How many blocks of thinking stand before the message of that number in a request."""
    contents = [m.get("content") for m in sent[:at] if isinstance(m, dict)]
    return sum(_is_sent_thinking(b) for content in contents if isinstance(content, list) for b in content)
