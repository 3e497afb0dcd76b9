"""A compaction as a plan: what goes, what stays, what stands for it, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from core.compaction.cut import Cut, all_but_the_tail, onwards_from, up_to
from core.compaction.hooks import NO_HOOKS, NOTHING_KNOWN, About, Answer, Hooks, allowed
from core.compaction.restore import Restored, RestoreLimits, files_of, restore
from core.compaction.restore_state import restored_state
from core.compaction.state import NO_STATE, State
from core.compaction.verify import Limits, Verification, verified
from core.errors import NothingToCompact, SummaryRejected
from core.model import Message, block_text, text_block, without_thinking
from core.redact.text import redact
from core.redact.values import redact_messages
from core.summarizers.base import Summarizer, Summary, SummaryRequest, growth_chars
from core.summarizers.fallback import Rescue
from core.summarizers.media import in_words
from core.summarizers.repair import Repairer

Measure = Callable[[Sequence[Message]], list[int]]
"""Tokens of each of some new messages, by the estimator that measured the old ones."""

MIN_GAIN = 0.1
"""A compaction that frees less than this share of the messages' tokens costs more (the cache is written anew) than
it is worth."""


@dataclass(frozen=True, slots=True)
class Context:
    """The active view as it was measured: what a compaction starts from."""

    messages: Sequence[Message]
    sizes_tokens: Sequence[int]
    """Of each message."""
    overhead_tokens: int
    """What is sent beside the messages."""
    measure: Measure
    cwd: str = ""
    history: str = ""
    """Where all that goes can be read."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose about a compaction."""

    keep_tokens: int
    summary_chars: int
    instructions: str = ""
    restore: RestoreLimits = field(default_factory=RestoreLimits)
    up_to: str = ""
    """Compact what is before this message only."""
    since: str = ""
    """Compact this message and what is behind it only."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A compaction that has not been written."""

    gone: tuple[Message, ...]
    """Without the secrets in them: what is summarised, sent or stored holds none.  What is kept stays as it is."""
    kept: tuple[Message, ...]
    summary: Summary
    restored: tuple[Restored, ...]
    sizes_tokens: tuple[int, ...]
    """Of the head, the summary, what is restored, and the kept messages, in this order."""
    tokens_before: int
    tokens_after: int
    head: tuple[Message, ...] = ()
    """What stays in front of the summary, as it is."""
    remarks: tuple[str, ...] = ()
    """What a person should know."""
    verification: Verification | None = None
    """What the summary is worth; None where it was not written for this."""

    @property
    def overhead_tokens(self) -> int:
        """What is sent beside the messages."""
        return self.tokens_after - sum(self.sizes_tokens)

    @property
    def prompt_tokens(self) -> list[int]:
        """The projected size of the request in front of each message that stays."""
        running = [*accumulate(self.sizes_tokens, initial=self.overhead_tokens)]
        front = len(self.head) + 1 + len(self.restored)
        return [*running[: len(self.head)], *running[front : front + len(self.kept)]]


def choose(messages: Sequence[Message], sizes_tokens: Sequence[int], options: Options, in_place: bool = False) -> Cut:
    """What goes, by the options; raises as the functions of `core.compaction.cut`."""
    if options.up_to:
        return up_to(messages, options.up_to, in_place)
    if options.since:
        return onwards_from(messages, options.since, in_place)
    return all_but_the_tail(messages, sizes_tokens, options.keep_tokens, in_place)


def plan(
    context: Context,
    summarizer: Summarizer,
    options: Options,
    *,
    cut: Cut | None = None,
    state: State = NO_STATE,
    hooks: Hooks = NO_HOOKS,
    about: About = NOTHING_KNOWN,
    repairer: Repairer | None = None,
    rescue: Rescue | None = None,
) -> CompactionPlan:
    """The compaction of an active view.

    `cut` is what goes, where that was chosen before.  What is wrong in the summary's prose goes back to the
    `repairer`, once; a summary that cannot be used gives way to that of the `rescue`.  Raises what `choose` and the
    summariser raise, CompactionError where a hook forbids it, SummaryRejected for a summary that is none,
    NothingToCompact when too little would be freed.
    """
    messages, sizes_tokens, measure = context.messages, context.sizes_tokens, context.measure
    cut = cut or choose(messages, sizes_tokens, options)
    head, gone, kept = messages[: cut.start], redact_messages(messages[cut.start : cut.end]), messages[cut.end :]
    stays = (*head, *kept)
    added = allowed(hooks, about, options.instructions)
    request = _request(gone, options, added, context)
    limits = Limits(
        lambda text: measure([text_message("summary", text)])[0],
        sum(sizes_tokens[cut.start : cut.end]) if rescue else None,
    )
    on_disk = files_of(context.cwd, options.restore)
    summary, found = _summarised(summarizer, request, stays, limits, on_disk, repairer, rescue)
    restored = (
        *restore(messages, stays, context.cwd, options.restore),
        *restored_state(state, messages, stays, options.restore),
    )
    draft = CompactionPlan(
        gone, tuple(kept), summary, restored, (), 0, 0, tuple(head), (*added.remarks, *summary.remarks), found
    )
    planned = measured(draft, context)
    if too_little := gain_missing(planned, 0 if cut.direction else MIN_GAIN):
        raise NothingToCompact(too_little)
    return with_session_start(planned, context, hooks, about)


def with_session_start(planned: CompactionPlan, context: Context, hooks: Hooks, about: About) -> CompactionPlan:
    """The plan with what the hooks tell the session that begins anew."""
    said = hooks.session_start(about)
    remarks = (*planned.remarks, *said.remarks)
    if said.blocked:
        remarks = (*remarks, f"a hook cannot forbid it now: {said.blocked}")
    if not said.text:
        return replace(planned, remarks=remarks)
    text = Restored("hooks", redact(said.text), has_content=True)
    return measured(replace(planned, restored=(*planned.restored, text), remarks=remarks), context)


def assembled(
    context: Context, gone: tuple[Message, ...], kept: tuple[Message, ...], summary: Summary
) -> CompactionPlan:
    """The plan that these parts make; `kept` are the last messages."""
    return measured(CompactionPlan(gone, kept, summary, (), (), 0, 0), context)


def measured(draft: CompactionPlan, context: Context) -> CompactionPlan:
    """The plan with its sizes."""
    sizes_tokens, measure, overhead_tokens = context.sizes_tokens, context.measure, context.overhead_tokens
    texts = [text_message("summary", draft.summary.text), *(text_message("meta", r.text) for r in draft.restored)]
    tail = _kept_tokens(draft.kept, sizes_tokens[len(sizes_tokens) - len(draft.kept) :], measure)
    sizes = (*sizes_tokens[: len(draft.head)], *measure(texts), *tail)
    before, after = overhead_tokens + sum(sizes_tokens), overhead_tokens + sum(sizes)
    return replace(draft, sizes_tokens=sizes, tokens_before=before, tokens_after=after)


def gain_missing(planned: CompactionPlan, least_share: float = MIN_GAIN) -> str:
    """Why a plan frees too little to be worth it, "" if it frees at least that share of the messages' tokens."""
    before = planned.tokens_before - planned.overhead_tokens
    freed = planned.tokens_before - planned.tokens_after
    least = max(1, least_share * before)
    return f"only {max(0, freed)} of {before} tokens would be freed" if freed < least else ""


def _kept_tokens(kept: Sequence[Message], sizes_tokens: Sequence[int], measure: Measure) -> list[int]:
    """Tokens of the messages that stay: thinking is bound to the messages before it, and goes with them."""
    bare = [without_thinking(m) for m in kept]
    rest = zip(kept, bare, sizes_tokens, measure(bare), strict=True)
    return [size if len(new.content) == len(old.content) else min(size, estimate) for old, new, size, estimate in rest]


def _summarised(
    summarizer: Summarizer,
    request: SummaryRequest,
    stays: Sequence[Message],
    limits: Limits,
    on_disk: Callable[[str], bool],
    repairer: Repairer | None,
    rescue: Rescue | None,
) -> tuple[Summary, Verification]:
    """A summary that holds, and what was found in it; the rescue's has to be used however long it is."""
    summary = summarizer.summarize(request)
    try:
        return verified(summary, request, stays, limits, repairer, on_disk)
    except SummaryRejected as refused:
        if rescue is None:
            raise
        return verified(rescue(request, refused), request, stays, Limits(limits.measure), None, on_disk)


def _request(gone: Sequence[Message], options: Options, added: Answer, context: Context) -> SummaryRequest:
    asked = redact("\n\n".join(filter(None, (options.instructions, added.text))))
    earlier = ["\n".join(map(block_text, m.content)) for m in gone if m.kind == "summary"]
    room = min(options.summary_chars, growth_chars(earlier)) if earlier else options.summary_chars
    return SummaryRequest(in_words(gone), room, asked, "", context.cwd, context.history)


def text_message(kind: Literal["summary", "meta"], text: str) -> Message:
    """A user message that the client made."""
    return Message("user", kind, (text_block(text),))
