"""What a turn and its recovery do to a conversation: decide, compact, and say what the next request is.

Whatever is taken out is stored before the event that takes it out is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.compaction.full import CompactionPlan, Context, Options, plan, text_message
from core.compaction.hooks import NO_HOOKS, About, Hooks
from core.compaction.restore import RestoreLimits
from core.context.decisions import State
from core.context.short_ids import ShortIds, tag
from core.context.tokens.estimate import PRIOR, Calibration
from core.context.tokens.ledger import ContextSize, measure_like
from core.context.tokens.models import Model
from core.context.tokens.window import Levels, levels
from core.defaults import KEEP_TOKENS
from core.errors import CompactionError, NothingToCompact
from core.model import JSON, Block, Message, text_block, tool_uses
from core.stages.base import Plan, Scene, Stage
from core.stages.collapse import Collapse
from core.stages.edits import store_bodies, store_pages
from core.stages.microcompact import Microcompact
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip
from core.stages.tool_budget import ToolBudget
from core.summarizers.base import DEFAULT_BUDGET_CHARS, Summarizer, Summary, SummaryRequest
from core.summarizers.extractive import Extractive
from core.summarizers.fallback import repairer_of, rescue_of
from core.times import stamp
from core.transcript.materialize import derived_id
from core.transcript.store import Store
from core.turn.autocompact import is_worth_it
from core.turn.events import Compacted, Decided, How, Row, Trigger
from core.turn.fixed import FixedContext
from core.turn.journal import Journal
from core.turn.measure import Memo, Ruler
from core.turn.peel import Peeled, peel
from core.turn.request import RequestOptions, blocks_of, build
from core.turn.state import TurnState

MemoryPlan = Callable[[Context], CompactionPlan]
"""A compaction by the session's notes; raises CompactionError for none."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """How a conversation is led."""

    model: Model
    system: str | tuple[Block, ...] = ""
    tools: tuple[Block, ...] = ()
    request: RequestOptions = field(default_factory=RequestOptions)
    stages: tuple[Stage, ...] = (ToolBudget(), ReadDedup(), Snip(), Microcompact(), Collapse())
    window_tokens: int | None = None
    """In place of the model's own."""
    compaction: bool = True
    """Whether anything may be compacted at all."""
    automatic: bool = True
    """Whether it is compacted before the window is full."""
    reactive_only: bool = False
    """Only after the API has refused a request."""
    keep_tokens: int = KEEP_TOKENS
    summary_chars: int = DEFAULT_BUDGET_CHARS
    instructions: str = ""
    restore: RestoreLimits = field(default_factory=RestoreLimits)
    hooks: Hooks = NO_HOOKS
    cwd: str = ""
    """Where the files of the session are."""
    transcript: str = ""
    """Its file, for hooks; "" where it has none."""
    most_requests: int = 100
    """Of one turn: a loop of tool calls ends there."""
    nudges: bool = False
    """Propose snips to the model, and end user messages with the ids to name them by."""
    overhead_tokens: int = 0
    """System prompt, tools and fixed context, as long as no usage tells."""
    calibration: Calibration = PRIOR


@dataclass(frozen=True)
class Work:
    """One conversation, and what is needed to change it."""

    journal: Journal
    settings: TurnSettings
    store: Store
    clock: Callable[[], datetime] | None = None
    fixed: FixedContext | None = None
    """What stands in front of every request; it is found out anew after each compaction."""
    memo: Memo = field(default_factory=Memo)
    remarks: list[str] = field(default_factory=list)
    """What a person should know of compactions: another summariser took over, a hook failed."""
    _sized: list[tuple[TurnState, ContextSize]] = field(default_factory=list, init=False, repr=False)
    """The newest state that was measured, and its size."""

    @property
    def state(self) -> TurnState:
        """The conversation now."""
        return self.journal.state

    @property
    def levels(self) -> Levels:
        """The sizes at which something happens."""
        settings = self.settings
        auto_compact = settings.compaction and settings.automatic and not settings.reactive_only
        return levels(settings.model, settings.window_tokens, auto_compact)

    @property
    def max_tokens(self) -> int:
        """What the next answer may have: as much as was asked for, and as the endpoint takes."""
        asked, most = self.settings.request.max_tokens, self.state.max_tokens
        return asked if most is None else min(asked, most)

    @property
    def now(self) -> datetime | None:
        """The time; None without a clock."""
        return self.clock() if self.clock else None

    def timestamp(self) -> str:
        """The time as rows have it, "" without a clock."""
        return stamp(self.now) if self.now else ""

    def size(self) -> ContextSize:
        """The size of the next request."""
        state = self.state
        if not self._sized or self._sized[0][0] is not state:
            self._sized[:] = [(state, self._ruler.size(state))]
        return self._sized[0][1]

    def scene(self) -> Scene:
        """What stages look at."""
        threshold_tokens = self.levels.auto_threshold
        return self._ruler.scene(self.state, self.size(), threshold_tokens, str(self.store.folder), self.now)

    @property
    def _ruler(self) -> Ruler:
        settings = self.settings
        return Ruler(settings.model, settings.overhead_tokens, settings.calibration, self.memo)

    def body(self) -> dict[str, JSON]:
        """The next request; what was decided is in it, the pipeline is not run."""
        settings, scene = self.settings, self.scene()
        if settings.nudges:
            scene = _tagged(scene)
        how = replace(settings.request, max_tokens=self.max_tokens)
        if self.fixed is None:
            return build(scene, settings.system, settings.tools, how)
        system = blocks_of(settings.system, self.fixed.system)
        return build(scene, system, settings.tools, how, front=(self.fixed.user.message(),))

    def decide(self, scene: Scene, planned: Plan) -> Plan:
        """Stores what a plan takes out and records its decisions; what was carried out of it.

        Raises WriteFailed, then nothing was decided.
        """
        stored = store_bodies(self.store, scene, planned)
        store_pages(self.store, scene, stored, self.state.session)
        if stored.decisions:
            self.journal.append(Decided(stored.stage, stored.decisions, stored.tokens_freed))
        return stored

    def compact(
        self, trigger: Trigger, summarizer: Summarizer, memory: MemoryPlan | None = None, keep_tokens: int | None = None
    ) -> Compacted:
        """Compacts by the session's notes where that gives something usable, else by a summary.

        Raises CompactionError when there is nothing usable, or when nobody is forced to it and it saves too little;
        StorageError: then nothing was changed.
        """
        size = self.size()
        messages = self.scene().view().messages

        def measure(new: Sequence[Message]) -> list[int]:
            return [*measure_like(self.memo.items(new), self.settings.model, size).item_tokens]

        page, cwd = self.journal.new_id("page")[:8], self.settings.cwd
        history = str(self.store.page(page))
        context = Context(messages, size.item_tokens, size.overhead_tokens, measure, cwd, history)
        by_notes = self._by_memory(memory, context)
        mode = "manual" if trigger == "manual" else "auto"
        about = About(self.state.session, self.settings.transcript, cwd, mode)
        planned = by_notes or self._by_summary(context, summarizer, keep_tokens, about)
        unanswered = _unanswered(messages, planned, self.state.attached)
        again_tokens = sum(n for m, n in zip(messages, size.item_tokens, strict=True) if m.uuid in unanswered)
        planned = replace(planned, tokens_after=planned.tokens_after + again_tokens)
        if trigger == "auto" and not is_worth_it(planned.tokens_before, planned.tokens_after, self.levels):
            saved_tokens = max(0, planned.tokens_before - planned.tokens_after)
            raise NothingToCompact(f"only {saved_tokens} of {planned.tokens_before} tokens would be saved")
        self.archive(page, planned.gone)
        event = _event("memory" if by_notes else "full", trigger, planned, unanswered)
        self.bound(event)
        told = self.settings.hooks.post_compact(about, planned.summary.text)
        self.remarks.extend((*planned.remarks, *told.remarks))
        return event

    def peel(self, trigger: Trigger, need_tokens: float, limit_tokens: float) -> tuple[Compacted, Peeled] | None:
        """Peels so much off the oldest part, as `core.turn.peel` says; None where nothing can go.

        Raises WriteFailed: then nothing was changed.
        """
        scene, page = self.scene(), self.journal.new_id("page")[:8]
        before_tokens = scene.total_tokens
        peeled = peel(scene, need_tokens, limit_tokens, str(self.store.page(page)))
        if peeled is None:
            return None
        self.archive(page, peeled.gone)
        self.decide(scene, peeled.plan)
        after_tokens = before_tokens - peeled.plan.tokens_freed
        event = Compacted("peel", trigger, peeled.layout, Extractive.name, before_tokens, after_tokens)
        self.bound(event)
        return event, peeled

    def bound(self, event: Compacted) -> None:
        """Appends a boundary, and forgets what was found out for the context before it."""
        self.journal.append(event)
        if self.fixed is not None:
            self.fixed.clear()

    def archive(self, page: str, gone: Sequence[Message]) -> None:
        """Stores messages that go."""
        self.store.archive(page, gone, f"What was taken out of session {self.state.session}")

    def _by_memory(self, memory: MemoryPlan | None, context: Context) -> CompactionPlan | None:
        try:
            planned = memory(context) if memory else None
        except CompactionError:
            return None
        return planned if planned and planned.tokens_after < self.levels.auto_threshold else None

    def _by_summary(
        self, context: Context, summarizer: Summarizer, keep_tokens: int | None, about: About
    ) -> CompactionPlan:
        settings = self.settings
        keep = settings.keep_tokens if keep_tokens is None else keep_tokens
        return plan(
            context,
            _Forked(summarizer, self.body(), summarizer.name) if self.state.charged else summarizer,
            Options(keep, settings.summary_chars, settings.instructions, settings.restore),
            hooks=settings.hooks,
            about=about,
            repairer=repairer_of(summarizer),
            rescue=rescue_of(summarizer),
        )


@dataclass(frozen=True, slots=True)
class _Forked:
    """A summariser that is asked behind the conversation as it was sent: what is in front of that is cached."""

    summarizer: Summarizer
    body: dict[str, JSON]
    name: str

    def summarize(self, request: SummaryRequest) -> Summary:
        return self.summarizer.summarize(replace(request, fork=self.body))


def _unanswered(messages: Sequence[Message], planned: CompactionPlan, attached: frozenset[str]) -> tuple[str, ...]:
    """The last prompt, and those that arrived while it was worked at, where there is no answer yet, or only a part.

    They stay word for word, if they are not kept anyway.
    """
    kept = {m.uuid for m in planned.kept}
    if messages[-1].kind == "response" and not tool_uses(messages[-1]):
        return ()
    prompts = [m.uuid for m in messages if m.kind == "prompt"]
    typed = max((i for i, uuid in enumerate(prompts) if uuid not in attached), default=0)
    return tuple(uuid for uuid in prompts[typed:] if uuid not in kept)


def _event(how: How, trigger: Trigger, planned: CompactionPlan, unanswered: Sequence[str]) -> Compacted:
    """The boundary of a plan: what stands for what went, the unanswered prompts, and what stays."""
    key = [u for m in planned.gone for u in m.uuids]
    summary = replace(text_message("summary", planned.summary.text), uuids=(derived_id("summary", *key),))
    front: list[str | Row] = [Row.of(summary)]
    for number, restored in enumerate(planned.restored):
        ident = derived_id("restored", str(number), *key)
        front.append(Row.of(replace(text_message("meta", restored.text), uuids=(ident,))))
    front += unanswered
    kept = [m.uuid for m in planned.kept]
    before, after = planned.tokens_before, planned.tokens_after
    return Compacted(how, trigger, (*front, *kept), planned.summary.summarizer, before, after, planned.summary.usage)


def _tagged(scene: Scene) -> Scene:
    """The scene as it is sent, with the short id of each user message at its end."""
    ids = ShortIds.of(scene.messages)
    known = {m.uuid for m in scene.messages}
    view = tuple(
        replace(m, content=(*m.content, text_block(tag(ids.short(m.uuid)))))
        if m.role == "user" and m.kind in ("prompt", "results") and m.uuid in known
        else m
        for m in scene.view().messages
    )
    return replace(scene, messages=view, state=State(cache_edits=scene.state.cache_edits))
