"""One turn: prepare, ask, recover, append; tools and what changed meanwhile; and again, until the model is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from core.api.endpoint import Endpoint, Reply
from core.attachments import decode, scan
from core.attachments.base import World, to_message
from core.context.tokens.ledger import ContextSize
from core.context.tokens.window import State as WindowState
from core.context.tokens.words import tokens as short
from core.errors import ApiError, CompactionError, ContextFull, FoldmarkError, NothingToCompact, StorageError
from core.model import Block, Message, text_block, tool_uses
from core.stages.base import Plan, Scene, applied
from core.stages.collapse import Collapse
from core.stages.nudge import nudge
from core.stages.snip import Snip
from core.summarizers.base import Summarizer
from core.summarizers.extractive import Extractive
from core.turn import pipeline
from core.turn.autocompact import HEADROOM_SHARE, MAX_REFILLS, Question, leaves_headroom, warning, why_not
from core.turn.contributors import largest
from core.turn.events import Acted, Appended, Attached, Compacted, Failed, Paused, Recovered, Refilled, Row
from core.turn.recovery import Ladder
from core.turn.request import server_cleared_tokens
from core.turn.state import TurnState
from core.turn.work import MemoryPlan, Work

Tools = Callable[[Sequence[Block]], Sequence[Block]]
"""Runs the calls of a response, and gives a `tool_result` block for each."""
WorldNow = Callable[[TurnState], World]
"""The state of things that attachments tell changes of."""
WINDOW_STOP = "model_context_window_exceeded"
"""The stop reason of an answer that ends because the window is full."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What came of a turn."""

    reply: Reply
    """The last one."""
    requests: int
    """How many answers it took."""
    stages: tuple[tuple[str, int], ...]
    """What each stage freed, in tokens, those of compactions too."""
    recovered: tuple[Recovered, ...]
    warnings: tuple[str, ...]
    attached: tuple[str, ...] = ()
    """The kinds of the changes that were told, in order."""

    @property
    def server_cleared_tokens(self) -> int:
        """What the server says that it deleted of the last prompt, with edits that are pinned or public."""
        return server_cleared_tokens(self.reply.raw)


@dataclass
class Conversation:
    """A conversation with a model; all that it knows is in the journal of `work`."""

    work: Work
    endpoint: Endpoint
    summarizer: Summarizer = field(default_factory=Extractive)
    memory: MemoryPlan | None = None
    tools: Tools | None = None
    world: WorldNow = lambda _state: World()
    on_text: Callable[[str], None] | None = None
    on_retry: Callable[[str], None] = lambda _why: None
    """Told why an answer is asked for again, when a part of it may have been handed out."""
    _freed: dict[str, int] = field(default_factory=dict)
    _warnings: list[str] = field(default_factory=list)
    _attached: list[str] = field(default_factory=list)

    def turn(self, prompt: str | Sequence[Block]) -> TurnResult:
        """Asks, and goes on until the model calls no more tools, or there is nobody to run them.

        Raises ApiError when the model gave no answer and nothing helped; what was said so far is in the journal.
        """
        self._freed.clear()
        self._warnings.clear()
        self._attached.clear()
        self.work.remarks.clear()
        self._said("prompt", [text_block(prompt)] if isinstance(prompt, str) else prompt)
        return self.go_on()

    def go_on(self) -> TurnResult:
        """The rest of a turn, as after a restart in the middle of one; raises as `turn`."""
        recovered: list[Recovered] = []
        before = self.work.state.requests
        for _ in range(self.work.settings.most_requests):
            self.prepare()
            reply, event = self._asked()
            recovered += [event] if event else []
            calls = self._answered(reply)
            if not calls or self.tools is None:
                break
            self._said("results", self.tools(calls))
        freed = tuple(self._freed.items())
        requests = self.work.state.requests - before
        warnings = tuple(dict.fromkeys((*self._warnings, *self.work.remarks)))
        return TurnResult(reply, requests, freed, tuple(recovered), warnings, tuple(self._attached))

    def compact(self) -> Compacted:
        """Compacts because the user wants it: automatic compaction may try again behind it.

        In reactive mode all but the last turn is peeled off, as after a refusal.  Raises CompactionError,
        StorageError: then nothing was changed.
        """
        work = self.work
        work.journal.append(Acted())
        if work.settings.reactive_only:
            peeled = work.peel("manual", math.inf, work.levels.effective)
            if peeled is None:
                raise NothingToCompact("nothing can be peeled off")
            event = peeled[0]
        else:
            event = work.compact("manual", self.summarizer, self.memory)
        self._noted(event)
        self._attach()
        return event

    def window_state(self) -> WindowState:
        """What to tell a person about the size of the context; no warning by a figure that is out of date."""
        state = self.work.levels.state(self.work.size())
        return "ok" if state == "warning" and self.work.state.quiet else state

    def prepare(self) -> None:
        """Runs the stages, compacts when that is due, and makes room where nothing else fits.

        Raises ContextFull where there is no room and nothing may be compacted.
        """
        compactions = self.work.state.compactions
        snipped_tokens = self._run_stages()
        self._compact_if_due(snipped_tokens)
        if not self.work.settings.reactive_only and self._is_blocked():
            self._make_room()
        self._attach_again(compactions)

    def _attach_again(self, compactions: int) -> None:
        """Announces anew what a compaction ate, if there were more than so many."""
        if self.work.state.compactions > compactions:
            self._attach()

    def _run_stages(self) -> int:
        """What was snipped, in tokens."""
        scene = self.work.scene()
        snipped_tokens = 0
        for plan in pipeline.run(scene, self.work.settings.stages)[1]:
            done = self._decided(scene, plan)
            snipped_tokens += done.tokens_freed if done.stage == Snip.name else 0
            scene = applied(scene, done)
        return snipped_tokens

    def _compact_if_due(self, snipped_tokens: int) -> None:
        work, settings = self.work, self.work.settings
        size = work.size()
        is_full = size.total_tokens >= work.levels.auto_threshold
        question = Question(
            size.total_tokens + snipped_tokens,
            work.levels,
            work.state.auto,
            compaction=settings.compaction,
            automatic=settings.automatic,
            reactive_only=settings.reactive_only,
            collapse_holds=is_full and self._collapse_holds(),
            snipped_tokens=snipped_tokens,
        )
        if why_not(question):
            return
        if work.state.auto.refills_soon:
            work.journal.append(Refilled())
        if work.state.auto.refills >= MAX_REFILLS:
            self._warn(size)
        else:
            self._compact_now(size)

    def _compact_now(self, size: ContextSize) -> None:
        work = self.work
        try:
            self._noted(work.compact("auto", self.summarizer, self.memory))
        except NothingToCompact:
            work.journal.append(Paused(size.total_tokens))
            self._warn(size)
        except FoldmarkError as error:
            if isinstance(error, ApiError) and error.kind == "cancelled":
                raise
            work.journal.append(Failed(str(error), error.usage if isinstance(error, ApiError) else None))
            self._warnings.append(f"automatic compaction failed: {error}")
        else:
            after = work.size()
            if not leaves_headroom(after.total_tokens, work.levels):
                work.journal.append(Paused(after.total_tokens))
                self._warn(after)

    def _make_room(self) -> None:
        """Where no request fits: spans are folded, then a summary is made offline, then parts are peeled off."""
        work = self.work
        if not (work.settings.compaction and work.settings.automatic):
            raise ContextFull(
                f"the context is full: {short(work.size().total_tokens)} tokens", "compact the session first"
            )
        goal_tokens = round(HEADROOM_SHARE * work.levels.auto_threshold)
        if collapse := self._collapse():
            scene = work.scene()
            self._decided(scene, collapse.drain(scene, scene.total_tokens - goal_tokens))
        if self._is_blocked():
            with suppress(CompactionError, StorageError):
                self._noted(work.compact("reactive", Extractive()))
        if self._is_blocked():
            asked, limit = work.size().total_tokens, work.levels.blocking
            Ladder(work).climb(ApiError("too-long", "the context is full", asked_tokens=asked, limit_tokens=limit))

    def _is_blocked(self) -> bool:
        return self.work.levels.state(self.work.size()) == "blocked"

    def _collapse(self) -> Collapse | None:
        return next((s for s in self.work.settings.stages if isinstance(s, Collapse)), None)

    def _collapse_holds(self) -> bool:
        collapse = self._collapse()
        return collapse is not None and collapse.holds_headroom(self.work.scene())

    def _asked(self) -> tuple[Reply, Recovered | None]:
        """The answer to the next request; an error is held back as long as something can be done about it."""
        ladder = Ladder(self.work)
        while True:
            compactions = self.work.state.compactions
            try:
                reply = self.endpoint.send(self.work.body(), self.on_text)
                error = self._cut_off(reply)
            except ApiError as refused:
                if not ladder.climb(refused):
                    raise
                error = refused
            else:
                if error is None or not ladder.climb(error):
                    return reply, self._recovered(ladder)
            self._attach_again(compactions)
            self.on_retry(str(error))

    def _cut_off(self, reply: Reply) -> ApiError | None:
        """The error that the API did not raise: the answer, or what it was given, was cut at the window."""
        window_tokens = self.work.levels.window
        used_tokens = reply.usage.prompt_tokens
        if reply.stop_reason == WINDOW_STOP:
            used_tokens = max(window_tokens + 1, reply.usage.total_tokens)
        if used_tokens <= window_tokens:
            return None
        said = f"the window is full: {used_tokens} tokens > {window_tokens}"
        return ApiError("too-long", said, asked_tokens=used_tokens, limit_tokens=window_tokens)

    def _recovered(self, ladder: Ladder) -> Recovered | None:
        event = ladder.recovered()
        if event is not None:
            self.work.journal.append(event)
        return event

    def _answered(self, reply: Reply) -> list[Block]:
        """Appends a response; gives its calls."""
        ident = self.work.journal.new_id("response")
        message = Message(
            "assistant", "response", reply.content, (ident,), reply.id or ident, reply.model, reply.usage,
            self.work.timestamp(),
        )  # fmt: skip
        self.work.journal.append(Appended(Row.of(message)))
        return tool_uses(message)

    def _said(self, kind: Literal["prompt", "results"], blocks: Sequence[Block]) -> None:
        """Appends a prompt or results, and what changed meanwhile."""
        journal = self.work.journal
        message = Message("user", kind, tuple(blocks), (journal.new_id(kind),), timestamp=self.work.timestamp())
        journal.append(Appended(Row.of(message)))
        self._attach()

    def _attach(self) -> None:
        """Appends what changed since the attachments that are in view."""
        journal, state = self.work.journal, self.work.state
        world = replace(self.world(state), responses=state.requests, nudge=self._proposal())
        scanned = scan(world, [*filter(None, map(decode, state.attachments))])
        self._warnings += scanned.remarks
        for attachment in scanned.attachments:
            row = Row.of(to_message(attachment, journal.new_id("attachment"), self.work.timestamp()))
            data = msgspec.json.decode(msgspec.json.encode(attachment))
            journal.append(Attached(row, data))
            self._attached.append(data["type"])

    def _proposal(self) -> str:
        """The proposal to snip that is due, "" for none."""
        stage = next((s for s in self.work.settings.stages if isinstance(s, Snip)), None)
        if stage is None or not self.work.settings.nudges:
            return ""
        scene = self.work.scene()
        found = nudge(stage, scene)
        if found is None:
            return ""
        self.work.decide(scene, found.plan)
        return found.text

    def _decided(self, scene: Scene, plan: Plan) -> Plan:
        """Carries out the plan of a stage; what was carried out: nothing goes that could not be stored."""
        try:
            done = self.work.decide(scene, plan)
        except StorageError as error:
            done = Plan(plan.stage, reason=str(error))
        if len(done.decisions) < len(plan.decisions):
            self._warnings.append(done.reason)
        self._freed[plan.stage] = self._freed.get(plan.stage, 0) + done.tokens_freed
        return done

    def _noted(self, event: Compacted) -> Compacted:
        freed_tokens = event.tokens_before - event.tokens_after
        self._freed[event.how] = self._freed.get(event.how, 0) + freed_tokens
        return event

    def _warn(self, size: ContextSize) -> None:
        view = self.work.scene().view().messages
        parts = largest(view, size.item_tokens)
        self._warnings.append(warning(size.total_tokens, self.work.levels, parts))
