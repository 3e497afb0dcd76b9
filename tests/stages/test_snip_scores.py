"""What makes a round worth little, which rounds form a range, and which never go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context.rounds import cut_points
from core.stages.base import applied
from core.stages.round_facts import RoundFacts, facts_of
from core.stages.snip import MOST_PROPOSALS, Snip, SnipSettings
from core.stages.snip_scores import MIN_TOKENS, Features, candidates, features
from tests.stages.build import History, pairs_are_whole

BIG = "some words of a file\n" * 210
"""About 1,500 tokens."""
WINDOW = 167_000
"""The automatic threshold of a window of 200,000 tokens."""


def facts(history: History) -> dict[str, RoundFacts]:
    """The facts of each group, by the id of its first message."""
    scene = history.scene()
    messages = scene.messages
    found = facts_of(scene, messages, scene.tokens(messages), [*pairwise(cut_points(messages))])
    return {messages[one.begin].uuid: one for one in found}


def scores(history: History) -> dict[str, Features]:
    found = facts(history)
    return dict(zip(found, features([*found.values()]), strict=True))


def todo(*items: tuple[str, str]) -> dict[str, Any]:
    return {"todos": [{"content": content, "status": status} for content, status in items]}


# Superseded


@pytest.mark.parametrize(
    ("name", "given_"),
    [
        ("Read", {"file_path": "/srv/a.py"}),
        ("Edit", {"file_path": "/srv/a.py", "old_string": "a", "new_string": "b"}),
        ("Write", {"file_path": "/srv/a.py", "content": "new"}),
    ],
)
def test_a_read_is_superseded_when_the_file_is_read_or_changed_later(name: str, given_: dict[str, Any]) -> None:
    history = History().prompt("Go.").use("a", "Read", BIG, file_path="/srv/a.py").use("b", name, "done", **given_)

    assert scores(history)["u2"].superseded > 0.9
    assert scores(history)["u4"].superseded == 0


@pytest.mark.parametrize(
    ("given_", "error"),
    [
        ({"file_path": "/srv/other.py"}, False),
        ({"file_path": "/srv/a.py", "offset": 9}, False),
        ({"file_path": "/srv/a.py"}, True),
    ],
)
def test_a_read_is_not_superseded_by_another_file_a_part_or_a_failure(given_: dict[str, Any], error: bool) -> None:
    history = History().prompt("Go.").use("a", "Read", BIG, file_path="/srv/a.py", limit=50)
    history.use("b", "Read", "text", error=error, **given_)

    assert scores(history)["u2"].superseded == 0


def test_the_same_part_read_again_and_the_same_command_run_again_supersede() -> None:
    history = (
        History().prompt("Go.").use("a", "Read", BIG, file_path="/a", offset=3).use("b", "Bash", BIG, command="make")
    )
    history.use("c", "Read", BIG, file_path="/a", offset=3).use("d", "Bash", BIG, command="cd /srv && make")

    assert scores(history)["u2"].superseded > 0.9
    assert scores(history)["u4"].superseded > 0.9


def test_a_listing_is_superseded_when_all_that_it_named_was_opened() -> None:
    history = History().prompt("Go.").use("a", "Grep", "./src/a.py:1: x\nsrc/b.py:2: x\n" + " " * 900, pattern="x")
    history.use("b", "Read", BIG, file_path="/srv/src/a.py")
    assert scores(history)["u2"].superseded == 0

    history.use("c", "Read", BIG, file_path="/srv/src/b.py")
    assert scores(history)["u2"].superseded > 0.5


def test_an_old_task_list_is_superseded_with_its_call() -> None:
    history = History().prompt("Go.").use("a", "TodoWrite", "ok", **todo(("One", "pending"), ("Two", "pending")))
    history.use("b", "TodoWrite", "ok", **todo(("One", "pending")))

    assert scores(history)["u2"].superseded == 1
    assert facts(history)["u2"].is_open is False
    assert facts(history)["u4"].is_open is True


# Dead


def edited(history: History, ident: str, old: str, new: str, path: str = "/srv/a.py") -> History:
    return history.use(ident, "Edit", "ok", file_path=path, old_string=old, new_string=new)


def test_an_edit_that_a_later_one_takes_back_is_dead() -> None:
    history = edited(edited(History().prompt("Go."), "a", "one", "two"), "b", "two", "one")

    assert scores(history)["u2"].dead == 1
    assert scores(history)["u4"].dead == 0


@pytest.mark.parametrize(
    ("command", "dead"),
    [
        ("git checkout -- a.py", 1),
        ("git restore ./a.py", 1),
        ("git checkout -- b.py", 0),
        ("git checkout main", 0),
        ("git restore .", 1),
        ("git stash", 1),
        ("git stash list", 0),
        ("git commit -m x && echo", 0),
    ],
)
def test_an_edit_is_dead_when_git_takes_it_back(command: str, dead: int) -> None:
    history = edited(History().prompt("Go."), "a", "one", "two").use("b", "Bash", "ok", command=command)

    assert scores(history)["u2"].dead == dead


def test_what_was_committed_is_not_taken_back_by_a_stash() -> None:
    history = edited(History().prompt("Go."), "a", "one", "two").use("b", "Bash", "ok", command="git commit -am x")
    history.use("c", "Bash", "ok", command="git stash")

    assert scores(history)["u2"].dead == 0


def test_a_failure_is_dead_when_something_else_worked_and_not_when_the_same_did() -> None:
    history = History().prompt("Go.").use("a", "Bash", "Exit code 1", command="pytest tests/test_a.py", error=True)
    history.use("b", "Bash", "ok", command="python -m pytest tests/test_a.py -x")
    assert scores(history)["u2"].dead == 1

    history = History().prompt("Go.").use("a", "Bash", "Exit code 1", command="make", error=True)
    history.use("b", "Bash", "ok", command="make")
    assert scores(history)["u2"].dead == 0


@pytest.mark.parametrize(
    ("said", "dead"),
    [("No, not like that.", 1), ("wrong file", 1), ("Stop!", 1), ("Now the next.", 0), ("No problem, go on.", 0)],
)
def test_a_turn_is_dead_when_the_person_turns_it_down(said: str, dead: int) -> None:
    history = History().prompt("First.").answer("One.").prompt("Go.").answer("Did it.").prompt(said).answer("Sorry.")

    assert [scores(history)[u].dead for u in ("u2", "u4", "u6")] == [0, dead, 0]


# Done


def finished(command: str = "git commit -m done") -> History:
    history = History().prompt("Go.").use("a", "Read", "def build_index(): ...", file_path="/srv/a.py")
    return history.use("b", "Bash", "ok", command=command)


def test_what_a_commit_finished_is_done_until_it_is_named_again() -> None:
    assert scores(finished())["u2"].done == 1
    assert scores(finished("git status"))["u2"].done == 0
    assert scores(finished().prompt("Now build_index again."))["u2"].done == 0
    assert scores(finished().use("c", "Read", "x", file_path="/srv/a.py"))["u2"].done == 0
    assert scores(finished().answer("All is well."))["u2"].done == 1


def test_a_completed_task_finishes_what_was_before_it() -> None:
    history = finished("true").use("c", "TodoWrite", "ok", **todo(("One", "completed")))
    assert scores(history)["u2"].done == 1

    again = history.use("d", "Read", "x", file_path="/new").use("e", "TodoWrite", "ok", **todo(("One", "completed")))
    assert scores(again)["u8"].done == 0
    assert scores(again.use("f", "TaskUpdate", "ok", taskId="1", status="completed"))["u8"].done == 1
    assert scores(finished("true").use("c", "TodoWrite", "ok", todos="none"))["u2"].done == 0


# Age and citations


def test_age_grows_with_responses_and_citations_weigh_against() -> None:
    history = History().prompt("Go.").use("a", "Read", "def parse_header(): ...", file_path="/srv/a.py")
    for _ in range(12):
        history.answer("On.")
    assert scores(history)["u2"].age == pytest.approx(0.5)
    assert scores(history)["u2"].cited == 0

    for _ in range(6):
        history.answer("parse_header is it.")
    assert scores(history)["u2"].cited == 1
    assert scores(history)["u2"].ratio < 0.2 * sum(scores(history)["u2"].parts.values()) + 1e-9


def test_the_names_of_arguments_are_no_citations() -> None:
    history = History().prompt("Go.").use("a", "Read", "x", file_path="/srv/a.py")
    history.use("b", "Read", "x", file_path="/srv/b.py")

    assert scores(history)["u2"].cited == 0


# What never goes


@pytest.mark.parametrize("name", ["Skill", "ExitPlanMode"])
def test_skills_plans_and_instructions_stay(name: str) -> None:
    history = History().prompt("Go.").use("a", name, BIG, skill="x").use("b", "Read", BIG, file_path="/srv/CLAUDE.md")

    assert facts(history)["u2"].loads
    assert facts(history)["u4"].loads


def test_open_calls_and_errors_that_stand_stay() -> None:
    history = History().prompt("Go.").use("a", "Bash", "Exit code 1", command="make", error=True)
    history.calls(("b", "Bash", {"command": "sleep"})).prompt("Go on.")
    assert facts(history)["u2"].is_open
    assert facts(history)["u4"].is_open

    assert not facts(history.use("c", "Bash", "ok", command="make"))["u2"].is_open


# Ranges


def reads(count: int, size: int = 1, between: Callable[[History], History] | None = None) -> History:
    """Rounds that are superseded, each about 1,500 tokens or a multiple, and a protected tail.

    Something else may stand between the first half of the rounds and the second.
    """
    history = History().prompt("Go.")
    for n in range(count):
        if between and n == count // 2:
            between(history)
        history.use(f"a{n}", "Read", BIG * size, file_path=f"/srv/m{n}.py")
    for n in range(count):
        history.use(f"b{n}", "Edit", "ok", file_path=f"/srv/m{n}.py", old_string="a", new_string="b")
    for n in range(8):
        history.answer(f"Part {n}.")
    return history.prompt("Last but one.").answer("Yes.").prompt("Last.").answer("Yes.")


def ranges(history: History, protected: int = 10_000, kept: frozenset[str] = frozenset()) -> list[tuple[int, int]]:
    scene = history.scene(auto_threshold_tokens=WINDOW)
    sizes = scene.tokens(scene.messages)
    end = min(protected, len(scene.messages) - 12)
    return [(c.begin, c.end) for c in candidates(scene, scene.messages, sizes, end, kept)]


def test_neighbours_become_one_range_and_prompts_between_them_part_nothing() -> None:
    assert ranges(reads(4)) == [(1, 9)]
    assert ranges(reads(4, between=lambda h: h.prompt("And?"))) == [(1, 10)]


def test_one_small_round_may_lie_between_two_unless_it_is_pinned() -> None:
    history = reads(6, between=lambda h: h.answer("A remark."))

    assert ranges(history) == [(1, 14)]
    assert ranges(history, kept=frozenset({"u8"})) == [(1, 7), (8, 14)]
    assert ranges(reads(6, between=lambda h: h.answer("One.").answer("Two."))) == [(1, 7), (9, 15)]


def test_a_large_round_parts_two_ranges_and_the_protected_tail_ends_them() -> None:
    assert ranges(reads(6, between=lambda h: h.answer("A long remark. " * 300))) == [(1, 7), (8, 14)]
    assert ranges(reads(6), protected=7) == [(1, 7)]


def test_a_range_has_at_least_two_thousand_tokens_and_at_most_a_quarter_of_the_window() -> None:
    assert ranges(reads(1)) == []
    scene = reads(12, size=4).scene(auto_threshold_tokens=WINDOW)

    found = candidates(scene, scene.messages, scene.tokens(scene.messages), len(scene.messages) - 12, frozenset())
    assert len(found) > 1
    assert all(MIN_TOKENS <= c.tokens <= 0.25 * (WINDOW + 13_000) for c in found)


# Proposals


def test_proposals_name_ends_tokens_and_reasons_and_each_can_be_accepted() -> None:
    scene = reads(4).scene(auto_threshold_tokens=10_000_000)
    (proposal,) = Snip().suggest(scene)

    assert (proposal.from_id, proposal.to_id) == ("u2", "u9")
    assert proposal.reasons == ("superseded",)
    assert proposal.tokens > 0
    assert proposal.rank > 0
    assert Snip().plan_range(scene, proposal.from_id, proposal.to_id).decisions == proposal.plan.decisions
    after = applied(scene, proposal.plan)
    assert Snip().suggest(after) == []


def test_what_never_pays_is_proposed_last_and_has_no_rank() -> None:
    scene = reads(4).scene()
    proposals = Snip().suggest(replace(scene, auto_threshold_tokens=scene.total_tokens))

    assert {p.rank for p in proposals} == {0.0}
    assert not any(p.plan.verdict and p.plan.verdict.pays for p in proposals)


def test_pinned_messages_are_in_no_proposal() -> None:
    snip = Snip(SnipSettings(pinned=frozenset({"u4", "u5", "u6"})))

    assert all({"u4", "u6"}.isdisjoint(p.plan.decisions[0].uuids) for p in snip.suggest(reads(6).scene()))  # type: ignore[union-attr]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a.py", "b.py", "c.py"]), st.sampled_from(["Read", "Edit", "Bash"]), st.booleans()),
        max_size=30,
    )
)
def test_proposals_are_few_disjoint_and_free_what_they_say(steps: list[tuple[str, str, bool]]) -> None:
    history = History().prompt("Go.")
    for n, (path, tool, prompt) in enumerate(steps):
        if prompt:
            history.prompt(f"Then {path}.")
        given_: dict[str, Any] = {"command": f"cat {path}"} if tool == "Bash" else {"file_path": f"/srv/{path}"}
        history.use(f"t{n}", tool, BIG, **given_)
    for _ in range(2):
        history.prompt("On.")
    for _ in range(8):
        history.answer("Yes.")
    scene = history.scene()
    found = Snip().suggest(scene)

    assert len(found) <= MOST_PROPOSALS
    covered = [u for p in found for d in p.plan.decisions for u in d.uuids]  # type: ignore[union-attr]
    assert len(covered) == len(set(covered))
    now = scene
    for proposal in found:
        now = applied(now, proposal.plan)
    assert now.total_tokens == scene.total_tokens - sum(p.tokens for p in found)
    assert pairs_are_whole(now.view().messages)
    assert {m.uuid for m in now.view().messages} >= {m.uuid for m in scene.messages if m.kind == "prompt"}
