"""What goes when the API has refused a request for its size: oldest and cheapest first, and nothing without a trace.

Results that a later one shows again, then old results (a line stays in their place); long inputs of old calls; the
notes of folded spans that were merged most often; whole groups.  The first prompt, what a person typed (up to 20,000
tokens) and the last turn stay.  One message tells, by rule and without a model, what went.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from core.context.decisions import Decision, Replaced
from core.context.rounds import closed_points, cut_points, tail_start
from core.facts.text import cut
from core.model import JSON, Message, block_text, call_id, text_block, tool_uses
from core.redact.values import redact_messages
from core.stages.base import Plan, Scene, Stored
from core.stages.edits import editable_from
from core.stages.microcompact import MIN_CHARS, placeholder
from core.stages.results import ToolResult, tool_results_of
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.summarizers.base import SummaryRequest, room_chars
from core.summarizers.extractive import Extractive
from core.transcript.blob import json_bytes
from core.transcript.materialize import derived_id
from core.turn.events import Row

INPUT_CHARS, INPUT_LEFT_CHARS = 2_000, 200
"""Inputs of old calls with more characters than that lose what their texts have beyond the latter."""
USER_TOKENS = 20_000
"""What a person typed stays up to this, the newest first."""
LAST_TURN_SHARE, LAST_ROUNDS_TOKENS = 0.5, 20_000
"""A last turn of more than this share of what may stay is not kept whole: its prompt is, and its newest rounds."""
CULPRIT_SHARE = 0.35
"""A last group of more than this share is what made the request too large."""
READ_CHARS, PREVIEW_BYTES = 4_000, 2_000
"""What stays of a file that was read, which can be read again, and of another result, which is stored."""
SUMMARY_SHARE, MIN_SUMMARY_TOKENS, MAX_SUMMARY_TOKENS = 0.08, 300, 6_000
_TOLD = "What follows was peeled off the oldest part of this conversation, because the model takes no more.\n"


@dataclass(frozen=True, slots=True)
class Peeled:
    """What to take out: decisions about results, with their bodies; the new layout; what to store as a page."""

    plan: Plan
    layout: tuple[str | Row, ...]
    gone: tuple[Message, ...]
    removed: tuple[str, ...]
    """Ids of results, of calls whose input was cut, and of messages."""


def peel(scene: Scene, need_tokens: float, limit_tokens: float, page: str) -> Peeled | None:
    """The least that frees `need_tokens`, or all that can go; None where nothing can.

    Both figures are in tokens as the scene estimates them; `limit_tokens` is what may stay in all.  Nothing is changed
    in front of an unfinished tool loop that holds thinking.
    """
    if not scene.may_edit:
        return None
    knife = _Knife(scene, need_tokens, limit_tokens)
    knife.cut_results()
    knife.cut_inputs()
    knife.cut_notes()
    knife.cut_groups()
    return knife.peeled(page)


def clip(scene: Scene, limit_tokens: float) -> Plan:
    """Shortens the newest results where the last group alone is more than its share of what may stay."""
    view = scene.view().messages
    points = cut_points(view)
    begin = points[-2] if len(points) > 1 else 0
    tokens = sum(scene.tokens(view[begin:]))
    if tokens <= CULPRIT_SHARE * limit_tokens:
        return Plan("clip", reason="the newest result is not what makes it too large")
    start = max(begin, editable_from(scene, view))
    decided = scene.state.replaced
    results = [r for r in tool_results_of(view) if r.at >= start and r.id not in decided and r.chars > READ_CHARS]
    decisions: list[Decision] = []
    bodies: list[Stored] = []
    freed_tokens = 0
    for result in sorted(results, key=lambda r: -r.chars):
        if tokens - freed_tokens <= CULPRIT_SHARE * limit_tokens:
            break
        decision, body = _clipped(scene, result)
        decisions.append(decision)
        bodies += [body] if body else []
        freed_tokens += scene.block_tokens([result.block]) - scene.block_tokens(
            [{**result.block, "content": decision.text}]
        )
    return Plan("clip", tuple(decisions), tuple(bodies), freed_tokens)


def _clipped(scene: Scene, result: ToolResult) -> tuple[Replaced, Stored | None]:
    text = block_text(result.block)
    if result.name == "Read" and result.path and not result.has_media:
        head = text[:READ_CHARS]
        note = f"\n[cut: the file has {len(text):,} characters here; read the part of {result.path} that is needed]"
        return Replaced(result.id, head + note, "budget", at_request=scene.requests), None
    edit = ToolBudget(ToolBudgetSettings(preview_bytes=PREVIEW_BYTES, exempt=())).stored(scene, result)
    if edit is None or not isinstance(edit.decision, Replaced):
        short = Replaced(result.id, placeholder(result.id), "cleared", at_request=scene.requests)
        return short, Stored(result.id, result.name, result.block)
    return Replaced(result.id, edit.decision.text, "budget", at_request=scene.requests), edit.body


@dataclass
class _Knife:
    """Takes out one thing after the other, until enough is freed."""

    scene: Scene
    need_tokens: float
    limit_tokens: float
    freed_tokens: float = 0
    decisions: list[Decision] = field(default_factory=list)
    bodies: list[Stored] = field(default_factory=list)
    changed: dict[int, Message] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    removed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.view = self.scene.view().messages
        self.sizes = self.scene.tokens(self.view)
        self.first = next((i for i, m in enumerate(self.view) if m.kind == "prompt"), -1)
        self.tail = self._tail()

    @property
    def enough(self) -> bool:
        return self.freed_tokens >= self.need_tokens

    def _tail(self) -> int:
        """Where what stays begins: the last turn, or of a long one the newest rounds."""
        prompt = max((i for i, m in enumerate(self.view) if m.kind == "prompt"), default=0)
        points = cut_points(self.view)
        last_turn = max((p for p in points if p <= prompt), default=0)
        if sum(self.sizes[last_turn:]) <= LAST_TURN_SHARE * self.limit_tokens:
            return last_turn
        room = min(LAST_ROUNDS_TOKENS, round(LAST_TURN_SHARE * self.limit_tokens))
        return min(*points[:-1][-1:], tail_start(self.view, self.sizes, room), len(self.view))

    def cut_results(self) -> None:
        """Those that a later one shows again, then all others, oldest first."""
        decided = self.scene.state.replaced
        old = [r for r in tool_results_of(self.view, decided.keys()) if r.at < self.tail and r.id not in decided]
        large = [r for r in old if r.chars >= MIN_CHARS or r.has_media]
        for result in sorted(large, key=lambda r: r.repeated_at is None):
            if self.enough:
                return
            text = placeholder(result.id)
            self.decisions.append(Replaced(result.id, text, "cleared", at_request=self.scene.requests))
            self.bodies.append(Stored(result.id, result.name, result.block))
            self.removed.append(result.id)
            self.touched.add(result.at)
            after = self.scene.block_tokens([{**result.block, "content": text}])
            self._free(result.at, self.scene.block_tokens([result.block]) - after)

    def cut_inputs(self) -> None:
        """The long texts in the inputs of old calls."""
        for at, message in enumerate(self.view[: self.tail]):
            if self.enough:
                return
            long = [b for b in tool_uses(message) if len(json_bytes(b.get("input"))) > INPUT_CHARS]
            if not long:
                continue
            content = tuple({**b, "input": _shortened(b.get("input"))} if b in long else b for b in message.content)
            self.changed[at] = replace(message, content=content)
            self.removed += [call_id(b) for b in long]
            self.touched.add(at)
            self._free(at, self.sizes[at] - self.scene.tokens([self.changed[at]])[0])

    def cut_notes(self) -> None:
        """Notes of spans that were merged most often: they tell of what is oldest."""
        spans = {s.id: s for s in self.scene.state.committed}
        notes = [(i, spans[m.uuid]) for i, m in enumerate(self.view[: self.tail]) if m.uuid in spans]
        oldest = max((span.tier for _, span in notes), default=0)
        for at, span in notes:
            if not self.enough and span.tier == oldest:
                self._drop(at)

    def cut_groups(self) -> None:
        """Whole groups, oldest first, but for what a person typed."""
        points = sorted({0, *(p for p in closed_points(self.view) if p <= self.tail), self.tail})
        stay = self._typed()
        for begin, end in pairwise(points):
            if self.enough:
                return
            for at in range(begin, end):
                if at not in stay and at not in self.gone:
                    self._drop(at)

    def _typed(self) -> set[int]:
        """The prompts that stay: the first one, and the newest as far as there is room."""
        stay, left_tokens = {self.first}, USER_TOKENS
        for at in range(len(self.view) - 1, -1, -1):
            if self.view[at].kind == "prompt":
                left_tokens -= self.sizes[at]
                if left_tokens >= 0:
                    stay.add(at)
        return stay

    def _drop(self, at: int) -> None:
        self.gone.add(at)
        self.touched.add(at)
        self.removed += self.view[at].uuids
        self._free(at, self.sizes[at])

    def _free(self, at: int, tokens: int) -> None:
        self.freed_tokens += tokens
        self.sizes[at] -= tokens

    def peeled(self, page: str) -> Peeled | None:
        """All that was taken out, and one message that tells of it."""
        if not self.touched:
            return None
        told = tuple(self._told())
        note = self._note(told, page)
        # Behind the first prompt, if that is where it was; else in front of all.
        behind = self.first if 0 <= self.first < min(self.touched) else -1
        layout: list[str | Row] = [note] if behind < 0 else []
        for at, message in enumerate(self.view):
            if at not in self.gone:
                layout.append(Row.of(self.changed[at]) if at in self.changed else message.uuid)
            if at == behind:
                layout.append(note)
        plan = Plan("peel", tuple(self.decisions), tuple(self.bodies), round(self.freed_tokens))
        return Peeled(plan, tuple(layout), told, tuple(dict.fromkeys(self.removed)))

    def _told(self) -> Iterator[Message]:
        """What was taken out, in whole groups: a result without its call says little."""
        points = closed_points(self.view)
        notes = {s.id for s in self.scene.state.committed}
        for begin, end in pairwise(points):
            if not self.touched.isdisjoint(range(begin, end)):
                for message in self.view[begin:end]:
                    yield replace(message, kind="summary") if message.uuid in notes else message

    def _note(self, told: Sequence[Message], page: str) -> Row:
        tokens = sum(self.scene.tokens(told))
        room = round(min(MAX_SUMMARY_TOKENS, max(MIN_SUMMARY_TOKENS, SUMMARY_SHARE * tokens)))
        request = SummaryRequest(redact_messages(told), room_chars(room), transcript=page)
        text = _TOLD + Extractive().summarize(request).text
        ident = derived_id("peeled", *(u for m in told for u in m.uuids), *self.removed)
        return Row.of(Message("user", "summary", (text_block(text),), (ident,)))


def _shortened(value: JSON) -> JSON:
    """The value with the heads of its long texts."""
    match value:
        case str():
            return cut(value, INPUT_LEFT_CHARS)
        case list():
            return [_shortened(item) for item in value]
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
    return value
