"""The stages in their order, alone and together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.context.decisions import Decision, Seen, fold
from core.model import JSON
from core.stages.base import Plan, Scene, Stage
from core.stages.collapse import Collapse
from core.stages.microcompact import Microcompact, MicrocompactSettings
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip, SnipSettings
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.stages.verdict import Verdict
from core.turn.pipeline import ORDER, run, run_until_settled
from tests.stages.build import History, pairs_are_whole, resumed, sent

STAGES: tuple[Stage, ...] = (
    Collapse(),
    Microcompact(MicrocompactSettings(life="5m")),
    Snip(SnipSettings(automatic=True)),
    ReadDedup(min_chars=200),
    ToolBudget(ToolBudgetSettings(result_chars=9_000, results_chars=12_000, preview_bytes=60)),
)


@dataclass(frozen=True)
class Spy:
    """A stage that writes down when it was asked, and what had been decided by then."""

    name: str
    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list, compare=False)

    def plan(self, scene: Scene) -> Plan:
        self.asked.append((self.name, scene.state.seen))
        return Plan(self.name, (Seen((self.name,)),))


class Idle(Spy):
    """It does nothing."""

    def plan(self, scene: Scene) -> Plan:
        return replace(super().plan(scene), decisions=(), reason="nothing")


@given(st.permutations(ORDER), st.integers(1, len(ORDER)))
def test_whatever_the_order_they_are_given_in_each_sees_what_those_before_it_left(names: list[str], count: int) -> None:
    asked: list[tuple[str, frozenset[str]]] = []

    scene, plans = run(History().prompt("Go.").scene(), [Spy(name, asked) for name in names[:count]])

    order = [name for name in ORDER if name in names[:count]]
    assert asked == [(name, frozenset(order[:n])) for n, name in enumerate(order)]
    assert [plan.stage for plan in plans] == order
    assert scene.state.seen == frozenset(order)


@dataclass(frozen=True)
class Waiting:
    """A stage that does one thing for each of its names, each once the name in front of it has been seen."""

    name: str
    pairs: dict[str, str]
    saves: float

    def plan(self, scene: Scene) -> Plan:
        seen = scene.state.seen
        new = tuple(own for own, before in self.pairs.items() if before in seen and own not in seen)
        left = {*self.pairs} - seen - {*new}
        verdict = Verdict(1, 1, 1, saves=self.saves, costs=1, pays_after=1)
        return Plan(self.name, (Seen(new),) if new else (), reason="some stay" if left else "", verdict=verdict)


@pytest.mark.parametrize("saves", [0, 2])
def test_what_one_leaves_for_another_to_do_first_is_done_and_said_to_be_left_no_more(saves: float) -> None:
    first = Waiting("budget", {"a": "", "c": "b"}, saves)
    then = Waiting("snip", {"b": "a", "z": "never"}, saves)
    scene = replace(History().prompt("Go.").scene(), state=fold([Seen(("",))]))

    plans = run_until_settled(scene, [then, first])

    assert [(plan.stage, plan.reason) for plan in plans] == [("budget", ""), ("snip", "some stay"), ("budget", "")]
    assert [d.ids for plan in plans for d in plan.decisions if isinstance(d, Seen)] == [("a",), ("b",), ("c",)]
    assert [bool(plan.verdict) for plan in plans] == [saves == 2, True, True]


def test_where_there_is_nothing_to_do_it_is_asked_once_and_says_why() -> None:
    asked: list[tuple[str, frozenset[str]]] = []

    plans = run_until_settled(History().prompt("Go.").scene(), [Idle("budget", asked), Idle("snip", asked)])

    assert asked == [("budget", frozenset()), ("snip", frozenset())]
    assert [plan.reason for plan in plans] == ["nothing", "nothing"]


def test_every_stage_has_its_place() -> None:
    assert sorted(stage.name for stage in STAGES) == sorted(ORDER)


def test_what_is_no_stage_of_the_pipeline_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        run(History().scene(), [Spy("media")])


CONTENTS: tuple[JSON, ...] = ("", "ok", "line of a file\n" * 300, "line of a file\n" * 500, "x" * 10_000)
STEPS = st.lists(
    st.tuples(st.sampled_from(("Read", "Bash", "prompt")), st.sampled_from(CONTENTS), st.integers(0, 3), st.booleans()),
    min_size=4,
    max_size=30,
)


@given(STEPS, st.booleans(), st.booleans())
@settings(max_examples=40)
def test_memory_and_resume_send_the_same_bytes_at_every_request(
    steps: list[tuple[str, JSON, int, bool]], forced: bool, thinks: bool
) -> None:
    history = History().prompt("Go.")
    for n, (name, content, place, error) in enumerate(steps):
        if name == "prompt":
            history.answer("Done.").prompt(f"Next {n}.")
        else:
            history.use(f"c{n}", name, content, thinking="hm" * thinks, error=error, file_path=f"/{place}")
    decisions: list[Decision] = []
    scene = history.scene(forced=forced, auto_threshold_tokens=30_000)
    for end, message in enumerate(history.messages):
        if message.kind != "response":
            continue
        known = scene.state.replaced
        scene, plans = run(replace(scene, messages=history.messages[:end]), STAGES)
        decisions += [d for plan in plans for d in plan.decisions]
        fresh = resumed(scene, decisions)
        assert fresh.state == scene.state
        assert sent(fresh) == sent(scene)
        assert known.items() <= scene.state.replaced.items()
        assert all(plan.tokens_freed >= 0 for plan in plans)
        assert pairs_are_whole(scene.view().messages)
