"""Context collapse: old spans get a note each, and when room is needed the notes stand for them, in one batch.

A span is first staged: its note is written, and nothing changes.  It is committed, together with others, when the
cache has gone or when the context nears the point of automatic compaction: each change in the middle has all that is
behind it written to the cache anew, so that many changes at once cost what one costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from core.context.decisions import Collapsed, Committed, Decision, Withdrawn
from core.context.rounds import contiguous, tail_start
from core.errors import InputError
from core.model import Message, block_text, text_block
from core.redact.values import redact_messages
from core.stages.base import Plan, Scene, applied
from core.stages.edits import freed_tokens
from core.stages.receipt import page_name, page_of, receipt
from core.stages.segments import Segment, segments
from core.stages.verdict import Verdict
from core.stages.worth import auto_threshold_tokens, effective_tokens, is_cold, worth
from core.summarizers.base import SummaryRequest, room_chars
from core.summarizers.extractive import Extractive
from core.transcript.materialize import derived_id

RETAINED_TOKENS, RETAINED_SHARE = 20_000, 0.25
"""The newest messages that are never folded: so many tokens, or this share of the effective window if that is more."""
MIN_UNSTAGED_TOKENS, MIN_NEW_TOKENS = 8_000, 5_000
"""Spans are staged when so much waits for it, and so much of it is new."""
NOTE_SHARE, MIN_NOTE_TOKENS, MAX_NOTE_TOKENS = 0.08, 150, 900
"""The room of a note: this share of its span, within these bounds."""
MAX_NOTE_SHARE = 0.40
"""A note that takes more of what its span takes is not worth it."""
COMMIT_SHARE, GOAL_SHARE = 0.80, 0.60
"""Of the threshold of automatic compaction: from the one on staged spans are committed, down to the other."""
BATCH_RESPONSES = 8
"""There is at most one batch in so many responses."""
MAX_NOTES, MAX_NOTES_TOKENS, MERGED_TOKENS = 8, 6_000, 1_200
"""With more notes than that, or larger ones, two of the same tier become one of at most 1,200 tokens."""
_DRAINED_TO = (20_000, 10_000)
"""What stays when the API has refused a request, step by step; last of all, the last turn alone."""


class Collapse:
    """The stage; `pinned` are the uuids of messages that are never folded."""

    name = "collapse"

    def __init__(self, pinned: frozenset[str] = frozenset()) -> None:
        self.pinned = pinned

    def plan(self, scene: Scene) -> Plan:
        """Withdraws what does not hold any more, stages what has become old, commits what is due.

        A forced scene stages all that is old and commits all that is staged.
        """
        if not scene.may_edit:
            return Plan(self.name, reason="an unfinished tool loop holds thinking")
        decisions = [*_withdrawn(scene)]
        after = _with(scene, decisions)
        staged = self._staged(after)
        after = _with(after, staged)
        committed, verdict = self._due(after)
        batch = _batch(after, committed)
        return self._planned(scene, [*decisions, *staged, *batch], verdict)

    def drain(self, scene: Scene, need_tokens: int) -> Plan:
        """What to fold after the API refused a request for its size, until `need_tokens` are freed or all is folded.

        All that is staged first; then what is old, oldest first; then less and less stays behind.
        """
        if not scene.may_edit:
            return Plan(self.name, reason="an unfinished tool loop holds thinking")
        decisions = [*_withdrawn(scene)]
        after = _with(scene, decisions)
        batch = _batch(after, after.state.staged)
        decisions += batch
        after = _with(after, batch)
        goal_tokens = scene.total_tokens - need_tokens
        for retained in (_retained_tokens(scene), *_DRAINED_TO, None):
            for span in self._spans(after, retained, closed_only=False):
                if after.total_tokens <= goal_tokens:
                    return self._planned(scene, decisions, None)
                batch = [span, *_batch(_with(after, [span]), [span])]
                decisions += batch
                after = _with(after, batch)
        return self._planned(scene, decisions, None)

    def holds_headroom(self, scene: Scene) -> bool:
        """Whether a drain could still free a tenth of the window: then automatic compaction can wait."""
        return 10 * self.drain(scene, effective_tokens(scene)).tokens_freed >= effective_tokens(scene)

    def expand(self, scene: Scene, name: str) -> Plan:
        """Puts the messages of a committed span back, if the cache has gone; else says that it has to wait.

        Raises IdNotFound for no span of that name, InputError where its messages are not in the scene any more.
        """
        span = page_of("span", name, scene.state.committed)
        if not _contiguous(scene, span.uuids):
            hint = f"{{output}} {page_name('span', span.id)} shows them"
            raise InputError(f"the messages of {name} are not in this transcript any more", hint)
        if not (scene.forced or is_cold(scene)):
            return Plan(self.name, reason="the cache is warm: it would all be written anew, so this waits for a pause")
        return Plan(self.name, (Withdrawn((span.id,), "expanded", scene.requests),))

    def _planned(self, scene: Scene, decisions: Sequence[Decision], verdict: Verdict | None) -> Plan:
        reason = "" if decisions else "nothing is old enough, or there is room enough"
        plan = Plan(self.name, tuple(decisions), reason=reason, verdict=verdict)
        return replace(plan, tokens_freed=freed_tokens(scene, plan))

    def _staged(self, scene: Scene) -> list[Collapsed]:
        """The spans to stage now; only closed ones."""
        spans = [*self._spans(scene, _retained_tokens(scene), closed_only=True)]
        if scene.forced:
            return spans
        waiting = sum(s.tokens for s in spans)
        places = _places(scene)
        covered = [s for s in (*scene.state.staged, *scene.state.committed) if s.uuids[-1] in places]
        newest = max((places[s.uuids[-1]] for s in covered), default=-1)
        fresh = sum(s.tokens for s in spans if places[s.uuids[0]] > newest)
        return spans if waiting >= MIN_UNSTAGED_TOKENS and fresh >= MIN_NEW_TOKENS else []

    def _spans(self, scene: Scene, retained_tokens: int | None, closed_only: bool) -> Iterator[Collapsed]:
        """What may be staged, oldest first; a note is written when it is asked for."""
        messages = scene.view().messages
        sizes = scene.tokens(messages)
        if retained_tokens is None:
            end = max((i for i, m in enumerate(messages) if m.kind == "prompt"), default=0)
        else:
            end = tail_start(messages, sizes, retained_tokens)
        kept = self.pinned | _known(scene)
        found = segments(scene, messages, sizes, end, kept)
        spans = (_span(scene, messages, one) for one in found if one.closed or not closed_only)
        return (span for span in spans if span.note_tokens <= MAX_NOTE_SHARE * span.tokens)

    def _due(self, scene: Scene) -> tuple[Sequence[Collapsed], Verdict | None]:
        """The staged spans to commit now."""
        spans = _in_order(scene, scene.state.staged)
        last = scene.state.last_commit_request
        if not spans or (last and 0 <= scene.requests - last < BATCH_RESPONSES and not scene.forced):
            return (), None
        total = scene.total_tokens
        auto = auto_threshold_tokens(scene)
        if scene.forced or is_cold(scene):
            return spans, _worth(scene, total, spans)
        if total < COMMIT_SHARE * auto:
            return (), None
        return _best(scene, total, spans, GOAL_SHARE * auto)


def _best(
    scene: Scene, total: int, spans: Sequence[Collapsed], goal: float
) -> tuple[Sequence[Collapsed], Verdict | None]:
    """Of all starts from which on folding reaches the goal, the one that is worth most; where none does, all spans."""
    batches = [(batch, _worth(scene, total, batch)) for batch in _batches(total, spans, goal)]
    if not batches:
        return spans, _worth(scene, total, spans)
    return max(batches, key=lambda b: b[1].saves - b[1].costs)


def _batches(total: int, spans: Sequence[Collapsed], goal: float) -> Iterator[Sequence[Collapsed]]:
    for start in range(len(spans)):
        left = total
        for end in range(start, len(spans)):
            left -= spans[end].tokens - spans[end].note_tokens
            if left <= goal:
                yield spans[start : end + 1]
                break


def _worth(scene: Scene, total: int, batch: Sequence[Collapsed]) -> Verdict:
    messages = scene.view().messages
    sizes = scene.tokens(messages)
    first = next((i for i, m in enumerate(messages) if m.uuid in batch[0].uuids), len(messages))
    gone = sum(s.tokens for s in batch)
    freed = sum(s.tokens - s.note_tokens for s in batch)
    return worth(scene, total, freed, max(0, sum(sizes[first:]) - gone))


def _with(scene: Scene, decisions: Sequence[Decision]) -> Scene:
    return applied(scene, Plan(Collapse.name, tuple(decisions)))


def _retained_tokens(scene: Scene) -> int:
    return max(RETAINED_TOKENS, round(RETAINED_SHARE * effective_tokens(scene)))


def _known(scene: Scene) -> frozenset[str]:
    """Ids that no new span may hold: what stands in for others, and what is staged."""
    state = scene.state
    standing = [*(s.id for s in state.snips), *(s.id for s in state.committed)]
    return frozenset([*standing, *(u for s in state.staged for u in s.uuids)])


def _withdrawn(scene: Scene) -> Iterator[Decision]:
    """Takes back what is staged and cannot be committed any more: its messages are gone, parted, or in a snip."""
    state = scene.state
    taken = {u for d in state.snips for u in d.uuids} | {u for d in state.committed for u in d.uuids}
    lost = tuple(s.id for s in state.staged if not _contiguous(scene, s.uuids) or taken & {*s.uuids})
    if lost:
        yield Withdrawn(lost, "its messages are not all there any more", scene.requests)


def _places(scene: Scene) -> dict[str, int]:
    return {m.uuid: i for i, m in enumerate(scene.messages)}


def _contiguous(scene: Scene, uuids: Sequence[str]) -> bool:
    return contiguous(uuids, _places(scene))


def _in_order(scene: Scene, spans: Sequence[Collapsed]) -> list[Collapsed]:
    places = _places(scene)
    return sorted(spans, key=lambda s: places.get(s.uuids[0], -1))


def _span(scene: Scene, messages: Sequence[Message], segment: Segment) -> Collapsed:
    """A segment with its draft."""
    places = _places(scene)
    first, last = places[messages[segment.begin].uuid], places[messages[segment.end - 1].uuid]
    uuids = tuple(m.uuid for m in scene.messages[first : last + 1])
    room = min(MAX_NOTE_TOKENS, max(MIN_NOTE_TOKENS, round(NOTE_SHARE * segment.tokens)))
    return _noted(scene, uuids, messages[segment.begin : segment.end], segment.tokens, room, tier=0)


def _noted(
    scene: Scene, uuids: tuple[str, ...], messages: Sequence[Message], tokens: int, room_tokens: int, tier: int
) -> Collapsed:
    ident = derived_id("span", *uuids)
    head = receipt("folded", messages, tokens, page_name("span", ident), scene.store_folder, with_deeds=False)

    clean = redact_messages(messages)

    def draft(chars: int) -> tuple[str, int]:
        note = f"{head}\n{Extractive().summarize(SummaryRequest(clean, chars)).text}"
        return note, scene.block_tokens([text_block(note)])

    note, size = draft(room_chars(room_tokens))
    if size > room_tokens:  # a text of dense tokens: once more, by what was found
        note, size = draft(room_chars(room_tokens) * room_tokens // size)
    return Collapsed(ident, uuids, note, tokens, size, tier, scene.requests)


def _batch(scene: Scene, spans: Sequence[Collapsed]) -> list[Decision]:
    """The commitment of some spans, and of what has to be merged then."""
    if not spans:
        return []
    commit = Committed(tuple(s.id for s in _in_order(scene, spans)), scene.requests)
    return [commit, *_merges(_with(scene, [commit]))]


def _merges(scene: Scene) -> Iterator[Decision]:
    """Merges the two oldest neighbours of one tier, until there are few enough notes, or no neighbours left."""
    while True:
        live = _in_order(scene, [s for s in scene.state.committed if _carriers(scene, s)])
        few = len(live) <= MAX_NOTES and sum(s.note_tokens for s in live) <= MAX_NOTES_TOKENS
        pair = None if few else _oldest_pair(scene, live)
        if pair is None:
            return
        merged = _merge(scene, *pair)
        decisions: list[Decision] = [Withdrawn((pair[0].id, pair[1].id), "merged", scene.requests), merged]
        decisions.append(Committed((merged.id,), scene.requests))
        yield from decisions
        scene = _with(scene, decisions)


def _carriers(scene: Scene, span: Collapsed) -> tuple[str, ...]:
    """What a committed span covers in the scene: its messages, or the row that its note was written out as."""
    if _contiguous(scene, span.uuids):
        return span.uuids
    return (span.id,) if any(m.uuid == span.id for m in scene.messages) else ()


def _oldest_pair(scene: Scene, live: Sequence[Collapsed]) -> tuple[Collapsed, Collapsed] | None:
    for tier in sorted({s.tier for s in live}):
        same = [s for s in live if s.tier == tier]
        for a, b in pairwise(same):
            if _contiguous(scene, (*_carriers(scene, a), *_carriers(scene, b))):
                return a, b
    return None


def _merge(scene: Scene, a: Collapsed, b: Collapsed) -> Collapsed:
    uuids = (*_carriers(scene, a), *_carriers(scene, b))
    messages = [replace(m, kind="summary") if _is_note(m) else m for m in scene.messages if m.uuid in {*uuids}]
    return _noted(scene, uuids, messages, a.tokens + b.tokens, MERGED_TOKENS, max(a.tier, b.tier) + 1)


def _is_note(message: Message) -> bool:
    """Whether a row is a note that was written out: it names itself."""
    return message.kind == "meta" and page_name("span", message.uuid) in block_text(message.content[0])
