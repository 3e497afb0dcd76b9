"""Microcompact: old tool results give way, when the cache is cold anyway or when that pays in spite of a warm one.

Three forms of the same decision: the content is replaced; or the messages stay and the server deletes results from
its cache (edits pinned at their place); or the public context editing clears the oldest tool uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate
from typing import Literal, TypeAlias

from core.context.decisions import CacheEdited, Replaced
from core.context.tokens.cost import CacheLife
from core.context.tokens.estimate import PRIOR
from core.model import Block, Message, is_thinking
from core.stages.base import Plan, Scene, Stored, applied
from core.stages.edits import editable_from
from core.stages.results import ToolResult, named_by, tool_results_of
from core.stages.stand_in import shown_by
from core.stages.verdict import LIFE, Outlook, Verdict, verdict
from core.stages.worth import cache_life, outlook, pause

Form: TypeAlias = Literal["content", "pinned", "public"]
"""content: the result's text is replaced, and the cache behind it is written anew.  pinned: `cache_edits`, the cache
stays.  public: `clear_tool_uses_20250919`, which clears from the oldest on and loses the cache from there."""

TOOLS = (
    "Read", "Bash", "BashOutput", "PowerShell", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "MultiEdit", "Write",
    "NotebookEdit",
)  # fmt: skip
"""What these show can be had again: from the disk, the network, or the store."""

MIN_CHARS = 300
"""A shorter result is hardly longer than the placeholder."""
MIN_RESULT_TOKENS = 400
"""By the estimate before calibration: that of a shortened session is a bit another, and nothing is to be done there."""
MIN_AGE = 5
"""Responses after which a result may go; measured re-reads of something mostly come within five."""
MIN_AGE_REPEATED = 2
"""The same for a result that a later one shows again."""
KEEP_NEWEST = 3
"""The newest results are never cleared while the cache is warm."""
MIN_HOT_TOKENS, MIN_COLD_TOKENS = 3_000, 2_000
"""Less is not worth an edit; a few large edits are cheaper than many small ones."""
HYSTERESIS = 3
"""Requests between two edits of a warm cache."""


@dataclass(frozen=True, slots=True)
class MicrocompactSettings:
    """What a person may choose about it."""

    tools: tuple[str, ...] = TOOLS
    """Names or patterns (`mcp__db__*`) of the tools whose results may go."""
    form: Form = "content"
    life: CacheLife | None = None
    """How long the cache lives; None: as the session's newest request was charged."""
    time_based: bool = False
    """Clear all but the newest results after a long pause."""
    gap_minutes: int = 60
    keep_newest: int = 5
    """What a long pause leaves; at least 1."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A result that may go, and its tokens: all of them, and those that go (a placeholder stays)."""

    result: ToolResult
    tokens: int
    freed_tokens: int
    age: int
    """For how many responses it has been allowed to go."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What a plan is made from: what the model sees, its sizes, and what may not be touched."""

    scene: Scene
    messages: Sequence[Message]
    tokens: Sequence[int]
    results: tuple[ToolResult, ...]
    settled: frozenset[str]
    """Results that have been decided about, or that the stub of a later read points to."""
    requests: int
    """Responses in the whole history."""
    responses: int
    """Those of them that the model sees."""
    editable_from: int
    """The first message that may be changed."""
    outlook: Outlook

    def age(self, result: ToolResult) -> int:
        """For how many responses a result has been allowed to go; below 0: not yet."""
        allowed = result.response + MIN_AGE
        if result.repeated_at is not None:
            allowed = min(allowed, max(result.response + MIN_AGE_REPEATED, result.repeated_at))
        return self.responses - 1 - allowed


class Microcompact:
    """The stage."""

    name = "microcompact"

    def __init__(self, settings: MicrocompactSettings | None = None) -> None:
        self.settings = settings or MicrocompactSettings()

    def plan(self, scene: Scene) -> Plan:
        """Time-based if that is on and the pause was long, else by the break-even rule."""
        if self.settings.form == "content" and not scene.store_folder:
            return self._nothing("there is no store for results")
        since, life = pause(scene), self._life(scene)
        if self.settings.time_based and since > timedelta(minutes=self.settings.gap_minutes):
            return self._after_pause(self._look(scene, life))
        cold = since > LIFE[life]
        since_edit = _since_edit(scene)
        if since_edit is not None and since_edit < HYSTERESIS and not (cold or scene.forced):
            return self._nothing(f"the last edit was {since_edit} requests ago")
        return self._break_even(self._look(scene, life), cold, since_edit)

    def _life(self, scene: Scene) -> CacheLife:
        return self.settings.life or cache_life(scene.messages)

    def _nothing(self, reason: str, found: Verdict | None = None) -> Plan:
        return Plan(self.name, reason=reason, verdict=found)

    def _too_little(self, look: _Look, tokens: int) -> Plan:
        where = " behind the thinking of an unfinished tool loop" if look.editable_from else ""
        return self._nothing(f"too little to clear{where}: {tokens} tokens")

    def _look(self, scene: Scene, life: CacheLife) -> _Look:
        """What is in front of the last thinking of an unfinished tool loop is out of reach for edits of the content."""
        state = scene.state
        messages = scene.view().messages
        decided = state.cleared_on_server.union(state.replaced)
        results = tuple(tool_results_of(messages, decided))
        tokens = scene.tokens(messages)
        hidden = state.cleared_on_server
        hidden_tokens = sum(scene.block_tokens([r.block]) for r in results if r.id in hidden)
        context_tokens = scene.overhead_tokens + sum(tokens) - hidden_tokens
        return _Look(
            scene,
            messages,
            tokens,
            results,
            decided | state.leaned_on,
            requests=scene.requests,
            responses=sum(m.kind == "response" for m in messages),
            editable_from=editable_from(scene, messages) if self.settings.form == "content" else 0,
            outlook=outlook(scene, context_tokens, life),
        )

    def _after_pause(self, look: _Look) -> Plan:
        """All but the newest, however small the gain of each: the cache is gone anyway."""
        ours = [r for r in look.results if named_by(r.name, self.settings.tools)]
        old = [r for r in ours[: -max(1, self.settings.keep_newest)] if _may_go(r, look)]
        chosen = [c for c in (_candidate(look, r) for r in old) if c.freed_tokens > 0]
        freed_tokens = sum(c.freed_tokens for c in chosen)
        if not chosen:
            return self._too_little(look, 0)
        return self._planned(look, chosen, self._verdict(look, freed_tokens, 0, cold=True))

    def _break_even(self, look: _Look, cold: bool, since_edit: int | None) -> Plan:
        forced = look.scene.forced
        least = 1 if forced else MIN_COLD_TOKENS if cold else MIN_HOT_TOKENS
        candidates = self._oldest(look) if self.settings.form == "public" else self._eligible(look)
        new = [c for c in candidates if cold or forced or since_edit is None or c.age < since_edit]
        new_tokens = sum(c.freed_tokens for c in new)
        if new_tokens < least:
            return self._too_little(look, new_tokens)
        chosen, found = self._best(look, candidates, least, cold)
        if not found.pays and not forced:
            return self._nothing("it would cost more than it saves", found)
        return self._planned(look, chosen, found)

    def _best(
        self, look: _Look, candidates: Sequence[_Candidate], least: int, cold: bool
    ) -> tuple[Sequence[_Candidate], Verdict]:
        """The start from which on clearing all candidates gains most: the first one fixes what is written anew.

        All of them go when the cache is cold, when it was told, and where the server begins with the oldest.
        """
        all_go = cold or look.scene.forced or self.settings.form == "public"
        behind = self._behind(look)
        found: list[tuple[Sequence[_Candidate], Verdict]] = []
        deleted_tokens = freed_tokens = 0
        for start in range(len(candidates) - 1, -1, -1):
            deleted_tokens += candidates[start].tokens
            freed_tokens += candidates[start].freed_tokens
            if start and (all_go or freed_tokens < least):
                continue
            rest_tokens = 0 if cold else max(0, behind[candidates[start].result.at] - deleted_tokens)
            found.append((candidates[start:], self._verdict(look, freed_tokens, rest_tokens, cold)))
        return max(found, key=lambda choice: choice[1].saves - choice[1].costs)

    def _behind(self, look: _Look) -> list[int]:
        """For each message, the tokens from it on that the cache holds and that would be sent again.

        The last response and what follows it have not been sent yet.  Thinking is not sent again behind a change.
        """
        last = max((i for i, m in enumerate(look.messages) if m.kind == "response"), default=0)
        sizes = [0 if i >= last else self._kept_tokens(look, i) for i in range(len(look.messages))]
        return [*accumulate(reversed(sizes))][::-1]

    def _kept_tokens(self, look: _Look, at: int) -> int:
        message = look.messages[at]
        if self.settings.form != "content" or message.kind != "response":
            return look.tokens[at]
        thinking = [b for b in message.content if is_thinking(b)]
        return look.tokens[at] - (look.scene.block_tokens(thinking) if thinking else 0)

    def _eligible(self, look: _Look) -> list[_Candidate]:
        """Results that are large and old enough, and not among the newest."""
        old = [r for r in look.results[:-KEEP_NEWEST] if look.age(r) >= 0]
        ours = [r for r in old if named_by(r.name, self.settings.tools) and _may_go(r, look)]
        prior = replace(look.scene, calibration=PRIOR)
        return [_candidate(look, r) for r in ours if prior.block_tokens([r.block]) >= MIN_RESULT_TOKENS]

    def _oldest(self, look: _Look) -> list[_Candidate]:
        """The oldest results, without gaps: the public edit knows no others, but it can leave out whole tools.

        A tool with a result that has to stay is left out; if it was cleared before, the results end there.
        """
        cleared = look.scene.state.cleared_on_server
        begun = {r.name for r in look.results if r.id in cleared}
        found: list[_Candidate] = []
        left_out: set[str] = set()
        for result in look.results[:-KEEP_NEWEST]:
            if look.responses - 1 - result.response < MIN_AGE:
                break
            if result.id in cleared or result.name in left_out:
                continue
            if named_by(result.name, self.settings.tools) and (_may_go(result, look) or _is_small(result, look)):
                found.append(_candidate(look, result))
            elif result.name in begun:
                break
            else:
                left_out.add(result.name)
                found = [c for c in found if c.result.name != result.name]
        return found

    def _verdict(self, look: _Look, deleted_tokens: int, rest_tokens: int, cold: bool) -> Verdict:
        share = 0.0 if self.settings.form == "pinned" else 1.0
        model, life = look.scene.model, self._life(look.scene)
        return verdict(model, deleted_tokens, rest_tokens, look.outlook, cold=cold, life=life, rewritten_share=share)

    def _planned(self, look: _Look, chosen: Sequence[_Candidate], found: Verdict) -> Plan:
        if self.settings.form != "content":
            after = next(m.uuid for m in reversed(look.messages) if m.role == "user")
            edit = CacheEdited(tuple(c.result.id for c in chosen), after, look.requests)
            return Plan(self.name, (edit,), tokens_freed=found.deleted_tokens, verdict=found)
        decisions = tuple(
            Replaced(c.result.id, placeholder(c.result.id), "cleared", at_request=look.requests) for c in chosen
        )
        bodies = tuple(Stored(c.result.id, c.result.name, c.result.block) for c in chosen)
        plan = Plan(self.name, decisions, bodies, verdict=found)
        left_tokens = sum(look.scene.tokens(applied(look.scene, plan).view().messages))
        return replace(plan, tokens_freed=sum(look.tokens) - left_tokens)


def placeholder(ident: str) -> str:
    """What stands for the result of a call."""
    return f"[Old tool result content cleared; {shown_by(ident)}]"


def _since_edit(scene: Scene) -> int | None:
    """Requests since the last edit; None where there was none since the last compaction."""
    edits = [r.at_request or 0 for r in scene.state.replaced.values() if r.reason == "cleared"]
    edits += [e.at_request for e in scene.state.cache_edits]
    requests = scene.requests
    return min((requests - at for at in edits if at <= requests), default=None)


def _may_go(result: ToolResult, look: _Look) -> bool:
    """Whether nothing is lost: it is text, long enough, no unsolved error, no instructions, and not decided about."""
    unsolved = result.is_error and result.repeated_at is None
    stays = (
        result.at < look.editable_from
        or result.has_media
        or result.is_instruction
        or unsolved
        or result.id in look.settled
    )
    return not stays and result.chars >= MIN_CHARS


def _is_small(result: ToolResult, look: _Look) -> bool:
    """Whether it stays for its size alone."""
    return result.chars < MIN_CHARS and _may_go(replace(result, chars=MIN_CHARS), look)


def _candidate(look: _Look, result: ToolResult) -> _Candidate:
    short: Block = {**result.block, "content": placeholder(result.id)}
    tokens = look.scene.block_tokens([result.block])
    return _Candidate(result, tokens, tokens - look.scene.block_tokens([short]), look.age(result))
