"""Whole turns: the window is never overrun, pairs stay whole, the prefix stays, a restart changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.api.endpoint import Reply
from core.attachments.base import Queued, World
from core.attachments.date_change import DateChange
from core.compaction.full import CompactionPlan, Context, assembled
from core.compaction.hooks import CommandHooks
from core.context.rounds import tail_start
from core.errors import ApiError, CompactionError, ContextFull, NothingToCompact, SummaryRejected
from core.model import JSON, Block, Message, Usage, block_text, text_block
from core.stages.collapse import Collapse
from core.stages.microcompact import Microcompact
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip
from core.stages.tool_budget import ToolBudget
from core.summarizers.base import Summary, SummaryRequest
from core.turn.events import Appended, Compacted, Decided, Event, Paused, Row
from core.turn.fixed import FixedContext, Place
from core.turn.journal import Journal
from core.turn.loop import Conversation, TurnResult
from core.turn.state import TurnState
from tests.attachments.build import FakeFiles
from tests.stages.build import History
from tests.turn.fake import Clock, Fake, bare, conversation, prefixes, threshold, too_long

WORDS = ("alpha", "beta", "def run(x):", "return", "12345", "/srv/app/main.py", "ok", "{'key': 1}")


def worker(seed: int, sizes: Sequence[int]) -> Callable[[Sequence[Block]], Sequence[Block]]:
    """Results that are the same for the same call, whoever runs it, and larger the later they are."""

    def run(calls: Sequence[Block]) -> list[Block]:
        out: list[Block] = []
        for call in calls:
            chance = random.Random(f"{seed} {call['id']}")
            number = int(str(call["id"]).removeprefix("t"))
            count = chance.choice(sizes) * (1 + number // 100)
            content = " ".join(chance.choice(WORDS) for _ in range(count))
            out.append({"type": "tool_result", "tool_use_id": call["id"], "content": content})
        return out

    return run


def step(fake: Fake, _body: Mapping[str, JSON], calls: int = 1) -> Sequence[Block] | str:
    """So many calls, one after the other, then an answer."""
    number = len(fake.bodies)
    if number % (calls + 1) == 0:
        return f"Done with {number}."
    name = ("Read", "Bash")[number % 4 == 1]
    given: JSON = {"file_path": f"/srv/f{number % 13}.py"} if name == "Read" else {"command": f"make {number}"}
    return [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": f"t{number}", "name": name, "input": given},
    ]


def events_of(journal: Journal, since: int = 0) -> list[Event]:
    return [msgspec.json.decode(line, type=Event) for line in journal.lines[since:]]


def is_edit(event: Event) -> bool:
    return isinstance(event, Compacted) or (isinstance(event, Decided) and event.tokens_freed > 0)


ALL: tuple[Any, ...] = (ToolBudget(), ReadDedup(), Snip(), Microcompact(), Collapse())


@pytest.mark.parametrize(("stages", "turns", "calls"), [((), 300, 1), (ALL, 100, 2)], ids=["compaction alone", "all"])
def test_hundreds_of_turns_under_one_window(stages: tuple[Any, ...], turns: int, calls: int, tmp_path: Path) -> None:
    """Results grow; the endpoint counts a tenth more than we do, and a system prompt that we do not see."""
    fake = Fake(partial(step, calls=calls), factor=1.1, overhead_tokens=14_000)
    clock = Clock()
    make: dict[str, Any] = {"tools": worker(1, (60, 400, 1_200)), "clock": clock, "stages": stages}
    talk = conversation(tmp_path, fake, **make)
    compactions: list[int] = []
    sent: list[str] = []
    lines = 1
    for turn in range(turns):
        clock.tick()
        result = talk.turn(f"Request {turn}.")
        new = events_of(talk.work.journal, lines)
        lines = len(talk.work.journal.lines)
        assert result.warnings == ()
        if any(isinstance(e, Compacted) for e in new):
            compactions.append(turn)
            assert talk.work.size().total_tokens <= 0.7 * threshold(200_000)
        edited = any(map(is_edit, new))
        if edited or turn % 10 == 0:
            # A restart builds the same request.
            again = conversation(tmp_path, Fake(), Journal.load(talk.work.journal.dump()), **make)
            assert again.work.body() == talk.work.body()
        now = prefixes(fake.bodies[-1])
        if not edited:
            assert now[: len(sent)] == sent
        sent = now
    assert fake.refused == 0
    assert max(fake.sizes_tokens) <= 200_000
    assert all(b - a > 5 for a, b in pairwise(compactions))
    assert bool(compactions) is (stages == ())


def test_a_restart_before_the_stages_decides_the_same(tmp_path: Path) -> None:
    fake, clock = Fake(step, factor=1.1, overhead_tokens=14_000), Clock()
    make: dict[str, Any] = {"tools": worker(2, (400, 3_000)), "clock": clock, "stages": ALL}
    one = conversation(tmp_path / "one", fake, **make)
    for turn in range(25):
        two = conversation(tmp_path / "one", Fake(), Journal.load(one.work.journal.dump()), **make)
        for talk in (one, two):
            talk._said("prompt", [{"type": "text", "text": f"Request {turn}."}])
            talk.prepare()
        assert two.work.body() == one.work.body()
        assert two.work.journal.dump() == one.work.journal.dump()
        one.turn("Go on.")
        clock.tick()


def test_a_turn_that_was_interrupted_behind_its_results_is_gone_on_with(tmp_path: Path) -> None:
    fake = Fake(step)
    one = conversation(tmp_path, fake, tools=worker(6, (50,)), stages=())
    one.turn("Go.")
    lines = one.work.journal.dump().splitlines(keepends=True)
    two = conversation(tmp_path, again := Fake(), Journal.load(b"".join(lines[:-1])), stages=())

    assert two.go_on().reply.text == "Done."
    assert again.bodies[0] == fake.bodies[1]


def test_the_cache_marks_alone_move_between_requests_without_an_edit(tmp_path: Path) -> None:
    fake = Fake(step)
    talk = conversation(tmp_path, fake, tools=worker(3, (50,)), stages=())
    for turn in range(5):
        talk.turn(f"Request {turn}.")

    first, last = (bare(b["messages"]) for b in (fake.bodies[0], fake.bodies[-1]))
    assert last[: len(first)] == first


class Broken:
    """A summariser that fails so many times."""

    name = "broken"

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.times, self.asked = times, 0
        self.error = error or SummaryRejected("no text")

    def summarize(self, request: SummaryRequest) -> Summary:
        self.asked += 1
        if self.asked <= self.times:
            raise self.error
        return Summary("What was done.", self.name, usage=Usage(1_000, 0, 0, 100))


def filled(folder: Path, summarizer: Any, tokens: int = 25_000, **fields: Any) -> tuple[Conversation, Fake]:
    """A conversation just below its threshold, under a window of 60,000 tokens."""
    made = History()
    for number in range(tokens // 500):
        made.prompt(f"Request {number}. " + "word " * 400).answer("Yes.")
    fake = Fake(window_tokens=60_000)
    fields = {"stages": (), "keep_tokens": 4_000, "summary_chars": 6_000, **fields}
    return conversation(folder, fake, Journal("s", made.messages), summarizer=summarizer, **fields), fake


def test_after_three_failures_there_is_silence_until_the_user_acts(tmp_path: Path) -> None:
    summarizer = Broken(3)
    talk, _ = filled(tmp_path, summarizer, 29_000)

    warnings = [talk.turn(f"More {n}.").warnings for n in range(6)]

    assert summarizer.asked == 3
    assert [len(w) for w in warnings] == [1, 1, 1, 0, 0, 0]
    assert "no text" in warnings[0][0]
    assert talk.compact().summarizer == "broken"  # by hand it still works
    assert talk.work.state.auto.failures == 0
    assert talk.work.state.spent.output_tokens >= 100


def test_a_compaction_whose_call_broke_off_is_paid_for(tmp_path: Path) -> None:
    broken = ApiError("network", "the answer of the model broke off")
    broken.usage = Usage(25_000)
    talk, _ = filled(tmp_path, Broken(1, broken), 29_000)
    before = talk.work.state.spent.input_tokens

    talk.turn("More.")

    assert talk.work.state.auto.failures == 1
    assert talk.work.state.spent.input_tokens == before + 25_000


def test_a_success_closes_the_breaker(tmp_path: Path) -> None:
    summarizer = Broken(2)
    talk, _ = filled(tmp_path, summarizer, 29_000)

    results = [talk.turn(f"More {n}.") for n in range(3)]

    assert dict(results[-1].stages)["full"] > 10_000
    assert talk.work.state.auto.failures == 0


def test_a_failing_compaction_changes_nothing_and_the_turn_goes_on(tmp_path: Path) -> None:
    talk, fake = filled(tmp_path, Broken(1), 29_000)
    before = talk.work.state.messages

    assert talk.turn("More.").reply.text == "Done."

    assert talk.work.state.messages[: len(before)] == before
    assert len(fake.bodies) == 1


def test_a_turn_that_is_cancelled_while_it_compacts_ends(tmp_path: Path) -> None:
    talk, fake = filled(tmp_path, Broken(1, ApiError("cancelled", "not wanted any more")), 29_000)

    with pytest.raises(ApiError, match="not wanted"):
        talk.turn("More.")

    assert fake.bodies == []
    assert talk.work.state.auto.failures == 0


def test_a_full_context_whose_summariser_fails_is_made_smaller_offline(tmp_path: Path) -> None:
    talk, fake = filled(tmp_path, Broken(99), 38_500)

    result = talk.turn("More.")

    assert dict(result.stages)["full"] > 10_000
    assert fake.refused == 0
    assert [e.summarizer for e in events_of(talk.work.journal) if isinstance(e, Compacted)] == ["extractive"]


def test_what_nothing_makes_smaller_is_left_to_the_api(tmp_path: Path) -> None:
    fake = Fake(window_tokens=60_000)
    talk = conversation(tmp_path, fake, stages=())

    result = talk.turn(huge_prompt(33_000))

    assert talk.work.levels.state(talk.work.size()) == "blocked"
    assert result.reply.text == "Done."
    assert "a prompt" in result.warnings[0]


@pytest.mark.parametrize("fields", [{"automatic": False}, {"compaction": False}])
def test_a_full_context_that_may_not_be_compacted_is_said_to_be_full(fields: Any, tmp_path: Path) -> None:
    talk, fake = filled(tmp_path, Broken(0), 38_000, **fields)

    with pytest.raises(ContextFull, match="the context is full"):
        talk.turn("More.")

    assert fake.bodies == []


@pytest.mark.parametrize("fields", [{"automatic": False}, {"compaction": False}, {"reactive_only": True}])
def test_where_nothing_is_compacted_by_itself_the_levels_count_from_the_effective_window(
    fields: Any, tmp_path: Path
) -> None:
    def state(tokens: int, **fields: Any) -> str:
        return filled(tmp_path, Broken(0), tokens, **fields)[0].window_state()

    assert (state(15_000), state(30_000)) == ("warning", "compact")
    assert (state(15_000, **fields), state(30_000, **fields)) == ("ok", "warning")


def test_in_reactive_mode_nothing_is_done_before_the_api_refuses(tmp_path: Path) -> None:
    summarizer = Broken(0)
    talk, fake = filled(tmp_path, summarizer, 60_000, reactive_only=True)

    result = talk.turn("More.")

    assert summarizer.asked == 0
    assert fake.refused == 1
    assert result.recovered[0].asked_tokens == fake.count(fake.bodies[0])


def test_in_reactive_mode_a_compaction_by_hand_peels(tmp_path: Path) -> None:
    summarizer = Broken(0)
    made = History()
    for number in range(20):
        made.prompt(f"Request {number}.").use(f"t{number}", "Grep", "word " * 900, pattern="x").answer("So.")
    talk = conversation(
        tmp_path, Fake(), Journal("s", made.messages), summarizer=summarizer, stages=(), reactive_only=True
    )
    before = talk.work.size().total_tokens

    event = talk.compact()

    assert (event.how, event.trigger, summarizer.asked) == ("peel", "manual", 0)
    assert event.tokens_after < before / 2
    assert talk.work.state.messages[0].kind == "prompt"
    alone = conversation(tmp_path, Fake(), Journal("s", History().prompt("Hi.").messages), reactive_only=True)
    with pytest.raises(NothingToCompact):
        alone.compact()


def test_collapse_owns_the_headroom_as_long_as_it_can_make_some(tmp_path: Path) -> None:
    made = History()
    for number in range(60):
        made.prompt(f"Request {number}.").use(f"t{number}", "Read", "word " * 900, file_path=f"f{number}.py")
        made.answer("Read.")
    summarizer = Broken(0)
    fake = Fake(window_tokens=100_000)
    talk = conversation(
        tmp_path, fake, Journal("s", made.messages), summarizer=summarizer, stages=(Collapse(),), keep_tokens=4_000
    )

    result = talk.turn("More.")

    assert summarizer.asked == 0
    assert dict(result.stages)["collapse"] > 10_000
    assert fake.refused == 0


def huge_prompt(tokens: int) -> str:
    return "word " * tokens


def test_what_a_compaction_cannot_take_out_pauses_it_and_is_named_once(tmp_path: Path) -> None:
    made = History().prompt("Begin.")
    for number in range(10):
        made.use(f"t{number}", "Bash", "word " * 300, command="make")
    made.answer("So.")
    talk = conversation(tmp_path, Fake(window_tokens=60_000), Journal("s", made.messages), stages=(), keep_tokens=2_000)

    warnings = [w for said in (huge_prompt(26_000), "And?", "So?") for w in talk.turn(said).warnings]

    assert len(warnings) == 1
    assert "a prompt" in warnings[0]
    paused = [e for e in events_of(talk.work.journal) if isinstance(e, Paused)]
    assert len(paused) == 1


def test_a_compaction_that_leaves_too_little_room_is_made_and_pauses_the_next(tmp_path: Path) -> None:
    talk, _ = filled(tmp_path, Broken(0), 29_500, keep_tokens=21_000)

    result = talk.turn("More.")

    assert "full" in dict(result.stages)
    assert "compacting makes too little room" in result.warnings[0]
    assert talk.work.state.auto.paused_at_tokens is not None
    assert talk.turn("More.").warnings == ()


def test_a_context_that_fills_at_once_stops_automatic_compaction_for_the_session(tmp_path: Path) -> None:
    """Each turn brings what fills the window: three refills, and no fourth compaction."""
    fake = Fake(window_tokens=100_000)
    summarizer = Broken(0)
    talk = conversation(tmp_path, fake, summarizer=summarizer, stages=(), keep_tokens=1_000)
    results: list[TurnResult] = []
    for number in range(14):
        results.append(talk.turn(f"Text {number}: " + huge_prompt(16_000)))
        if results[-1].warnings:
            break

    assert talk.work.state.auto.refills == 3
    assert summarizer.asked == 3
    assert "a prompt" in results[-1].warnings[0]
    by_hand = talk.compact()
    assert by_hand.trigger == "manual"
    assert talk.work.state.auto.refills == 0


def notes(context: Context) -> CompactionPlan:
    messages = tuple(context.messages)
    start = tail_start(messages, context.sizes_tokens, 4_000)
    return assembled(context, messages[:start], messages[start:], Summary("The notes.", "memory"))


def test_the_notes_of_the_session_come_before_a_summary(tmp_path: Path) -> None:
    summarizer = Broken(0)
    talk, _ = filled(tmp_path, summarizer, 29_000, memory=notes)

    result = talk.turn("More.")

    assert dict(result.stages)["memory"] > 10_000
    assert summarizer.asked == 0
    assert block_text(talk.work.state.messages[0].content[0]) == "The notes."


def no_notes(*_: Any) -> CompactionPlan:
    raise CompactionError("there are none")


def large_notes(context: Context) -> CompactionPlan:
    messages = tuple(context.messages)
    return assembled(context, messages[:-2], messages[-2:], Summary(huge_prompt(28_000), "memory"))


@pytest.mark.parametrize("memory", [no_notes, large_notes])
def test_notes_that_are_not_there_or_too_large_give_way_to_a_summary(memory: Any, tmp_path: Path) -> None:
    talk, _ = filled(tmp_path, Broken(0), 29_000, memory=memory)

    assert "full" in dict(talk.turn("More.").stages)


def test_a_prompt_that_was_answered_is_not_asked_again_by_a_compaction(tmp_path: Path) -> None:
    talk, _ = filled(tmp_path, Broken(0), 10_000, keep_tokens=0)

    talk.compact()

    assert [m.kind for m in talk.work.state.messages] == ["summary"]


def test_what_stands_in_front_is_found_out_once_and_anew_after_each_compaction(tmp_path: Path) -> None:
    talk, fake = filled(tmp_path, Broken(0), 20_000)
    rules = FakeFiles({"/w/CLAUDE.md": "The first rule."})
    dates = iter(["2026-03-01", "2026-03-02", "2026-03-03"])
    place = Place("/w", "", "", rules, lambda: next(dates), cache_breaker="one")
    talk = replace(talk, work=replace(talk.work, fixed=FixedContext(place)))

    talk.turn("More.")
    rules.texts["/w/CLAUDE.md"] = "The second rule."
    talk.turn("More.")

    first, second = fake.bodies[-2:]
    assert first["system"] == second["system"]
    assert first["system"][-1]["text"] == "[one]"
    front = str(second["messages"][0]["content"][0])
    assert front == str(first["messages"][0]["content"][0])
    assert "The first rule." in front
    assert "2026-03-01" in front
    while not talk.work.state.compactions:
        talk.turn(huge_prompt(1_500))
    after = str(fake.bodies[-1]["messages"][0]["content"][0])
    assert "The second rule." in after
    assert "2026-03-02" in after


def test_a_prompt_that_arrives_while_the_model_works_does_not_push_the_first_one_out(tmp_path: Path) -> None:
    talk, _ = filled(tmp_path, Broken(0), 15_000, keep_tokens=0)
    talk = replace(talk, world=lambda _state: World(queued=[Queued("q", (text_block("And the docs."),))]))
    talk.work.journal.append(Appended(Row.of(Message("user", "prompt", (text_block("Do it."),), ("u-do",)))))
    talk.compact()

    said = [block_text(b) for m in talk.work.state.messages for b in m.content if m.kind == "prompt"]
    assert said[0] == "Do it."
    assert "And the docs." in said[1]
    talk.compact()
    assert [block_text(b) for m in talk.work.state.messages for b in m.content if m.kind == "prompt"] == said


def test_what_hooks_of_a_compaction_complain_of_is_said(tmp_path: Path) -> None:
    hooks = CommandHooks(after=["echo no disk >&2; exit 1"])
    talk, _ = filled(tmp_path, Broken(0), 29_000, hooks=hooks)

    assert any("no disk" in warning for warning in talk.turn("More.").warnings)


def test_what_cannot_be_stored_stays_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "tool-results").write_text("a file where the folder would be")
    made = History().prompt("Go.").use("t1", "Grep", "x" * 300_000, pattern="x").answer("So.")
    for number in range(60):
        made.prompt(f"Request {number}.").use(f"u{number}", "Grep", "word " * 900, pattern="y").answer("Read.")
    fake = Fake()
    talk = conversation(
        tmp_path, fake, Journal("s", made.messages), stages=(ToolBudget(), Collapse()), window_tokens=150_000
    )

    result = talk.turn("More.")

    assert result.reply.text == "Done."
    assert "x" * 300_000 in str(fake.bodies[-1])
    assert any("t1 stays, it could not be stored" in w for w in result.warnings)
    assert dict(result.stages)["collapse"] == 0


def test_no_warning_by_a_size_that_is_out_of_date(tmp_path: Path) -> None:
    talk, fake = filled(tmp_path, Broken(0), 15_000, window_tokens=60_000)
    fake.overhead_tokens = 1_000
    talk.turn("More.")
    assert talk.window_state() == "warning"

    talk.compact()
    assert talk.window_state() == "ok"
    assert talk.work.state.quiet
    talk.turn("More.")
    assert not talk.work.state.quiet


def test_what_changed_is_attached_behind_the_prompt_and_behind_results(tmp_path: Path) -> None:
    dates = iter(["2026-03-01", *["2026-03-02"] * 9])
    told: list[int] = []

    def world(state: TurnState) -> World:
        told.append(state.requests)
        return World(date=next(dates), prefix_date="2026-02-28")

    fake = Fake(step)
    talk = conversation(tmp_path, fake, tools=worker(4, (50,)), stages=(), world=world)
    talk.turn("Go.")

    assert told == [0, 1]
    assert [a["type"] for a in talk.work.state.attachments] == ["date_change", "date_change"]
    assert [m.kind for m in talk.work.state.messages] == [
        "prompt", "attachment", "response", "results", "attachment", "response",
    ]  # fmt: skip
    again = Journal.load(talk.work.journal.dump())
    assert again.state.attachments == talk.work.state.attachments
    talk.turn("And?")  # the date is known by now
    assert len(talk.work.state.attachments) == 2


def test_behind_a_compaction_what_was_announced_is_announced_anew(tmp_path: Path) -> None:
    agents = {"reviewer": "reviewer: looks at changes"}
    talk, fake = filled(tmp_path, Broken(0), 20_000, world=lambda _state: World(agents=agents))
    talk.turn("More.")
    while not talk.work.state.compactions:
        talk.turn(huge_prompt(1_500))

    assert [type(e).__name__ for e in events_of(talk.work.journal)[-4:]] == [
        "Appended", "Compacted", "Attached", "Appended",
    ]  # fmt: skip
    assert [a["type"] for a in talk.work.state.attachments] == ["agent_listing_delta"]
    assert "reviewer: looks at changes" in str(fake.bodies[-1])


def test_a_recovery_that_ate_them_announces_them_too(tmp_path: Path) -> None:
    agents = {"reviewer": "reviewer: looks at changes"}
    talk, fake = filled(tmp_path, Broken(0), 15_000, world=lambda _state: World(agents=agents), automatic=False)
    talk.turn("One.")
    for number in range(4):
        talk.turn(f"More {number}. " + huge_prompt(1_000))
    fake.failures.append(too_long(60_000, 12_000))

    talk.turn("And?")

    assert "reviewer: looks at changes" in str(fake.bodies[-1])
    assert len(talk.work.state.attachments) == 1


def test_a_scan_that_fails_is_said_and_ends_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_world: World, _earlier: Any) -> Any:
        raise ValueError("no such calendar")

    monkeypatch.setattr(DateChange, "scan", fails)
    result = conversation(tmp_path, Fake(), stages=()).turn("Hi.")

    assert result.reply.text == "Done."
    assert result.warnings == ("date_change was not looked at: ValueError: no such calendar",)


def test_a_proposal_to_snip_is_shown_with_ids_that_the_messages_end_with(tmp_path: Path) -> None:
    made = History().prompt("Begin.")
    for number in range(40):
        made.use(f"t{number}", "Read", "word " * 1_500, file_path=f"f{number % 3}.py")
    made.answer("All is read.")
    fake = Fake()
    talk = conversation(tmp_path, fake, Journal("s", made.messages), stages=(Snip(),), nudges=True, automatic=False)

    talk.turn("Next?")

    sent = msgspec.json.encode(fake.bodies[-1]).decode()
    assert "These parts seem to be needed no more" in sent
    (attachment,) = talk.work.state.attachments
    named = str(attachment["proposal"]).split("- ")[1].split(" ")[0]
    assert f"[id:{named}]" in sent or named in sent
    assert sent.count("[id:") == 42
    assert len(talk.work.state.decisions.nudges) == 1


def test_no_proposal_is_made_where_none_is_due(tmp_path: Path) -> None:
    fake = Fake()
    talk = conversation(tmp_path, fake, stages=(Snip(),), nudges=True)

    talk.turn("Hi.")

    assert talk.work.state.attachments == ()
    assert str(fake.bodies[0]).count("[id:") == 1


def test_what_the_server_deleted_of_the_prompt_is_said(tmp_path: Path) -> None:
    raw: dict[str, JSON] = {"usage": {"cache_deleted_input_tokens": 4_000}}
    fake = Fake(lambda _fake, _body: Reply((text_block("Done."),), "end_turn", raw=raw))

    assert conversation(tmp_path, fake, stages=()).turn("Hi.").server_cleared_tokens == 4_000


def test_a_loop_of_calls_has_an_end(tmp_path: Path) -> None:
    def forever(fake: Fake, _body: Mapping[str, JSON]) -> Sequence[Block]:
        return [{"type": "tool_use", "id": f"t{len(fake.bodies)}", "name": "Bash", "input": {}}]

    talk = conversation(tmp_path, Fake(forever), tools=worker(5, (5,)), stages=(), most_requests=4)

    assert talk.turn("Go.").requests == 4


def test_without_anybody_to_run_them_calls_end_the_turn_and_the_next_prompt_leaves_them_out(tmp_path: Path) -> None:
    fake = Fake(step)
    talk = conversation(tmp_path, fake, stages=())

    assert talk.turn("Go.").reply.stop_reason == "tool_use"
    assert talk.turn("And?").reply.text == "Done with 2."


def test_text_is_handed_out_as_it_comes(tmp_path: Path) -> None:
    heard: list[str] = []
    talk = conversation(tmp_path, Fake(), stages=(), on_text=heard.append)

    talk.turn("Hi.")

    assert heard == ["Done."]
