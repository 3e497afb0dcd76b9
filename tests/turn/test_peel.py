"""What is peeled off, in which order, and what stays whatever happens."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.context.decisions import Collapsed, Committed, Replaced, fold
from core.model import Message, block_text, tool_uses
from core.stages.base import Scene
from core.turn.events import Row
from core.turn.peel import Peeled, clip, peel
from tests.stages.build import STORE, History

LIMIT = 50_000.0
BIG = "word and number 12\n" * 300


def story() -> History:
    """A superseded read, an old result, a call with a long input, prompts, a last turn."""
    made = History().prompt("First of all.")
    made.use("r1", "Read", BIG, file_path="a.py").use("b1", "Bash", BIG, command="make")
    made.use("w1", "Write", "written", file_path="b.py", content=BIG, edits=[{"new": BIG, "line": 3}]).use(
        "r2", "Read", BIG + "x", file_path="a.py"
    )
    made.answer("Done so far.").prompt("Second.").use("b2", "Bash", BIG, command="test").answer("Fine.")
    return made.prompt("Last.").use("b3", "Bash", BIG, command="lint").answer("Linted.")


def peeled(made: History | Scene, need: float, limit: float = LIMIT) -> Peeled:
    scene = made if isinstance(made, Scene) else made.scene()
    found = peel(scene, need, limit, "/store/page.md")
    assert found is not None
    return found


def told(found: Peeled) -> str:
    (note,) = [row for row in found.layout if isinstance(row, Row) and row.kind == "summary"]
    return block_text(note.message().content[0])


def size(made: History, *idents: str) -> int:
    scene = made.scene()
    return sum(scene.block_tokens([b]) for m in scene.messages for b in m.content if b.get("tool_use_id") in idents)


def test_a_read_that_a_later_one_repeats_goes_first() -> None:
    assert peeled(story(), 1).removed == ("r1",)


def test_then_old_results_the_oldest_first_never_those_of_the_last_turn() -> None:
    made = story()

    assert peeled(made, size(made, "r1")).removed == ("r1", "b1")
    everything = peeled(made, size(made, "r1", "b1", "r2", "b2") * 0.97)
    assert everything.removed == ("r1", "b1", "r2", "b2")


def test_then_the_long_inputs_of_old_calls() -> None:
    made = story()
    found = peeled(made, size(made, "r1", "b1", "r2", "b2") + 10)

    assert found.removed == ("r1", "b1", "r2", "b2", "w1")
    (row,) = [r for r in found.layout if isinstance(r, Row) and r.kind == "response"]
    given_ = tool_uses(row.message())[0]["input"]
    assert isinstance(given_, dict)
    assert given_["file_path"] == "b.py"
    assert len(str(given_["content"])) <= 200
    assert "'line': 3" in str(given_["edits"])
    assert len(str(given_["edits"])) < 300


def test_then_whole_groups_but_what_was_typed_stays() -> None:
    found = peeled(story(), float("inf"))

    kept = [item for item in found.layout if isinstance(item, str)]
    prompts = [m.uuid for m in story().messages if m.kind == "prompt"]
    last_turn = [m.uuid for m in story().messages[-4:]]
    assert kept == [*prompts[:2], *last_turn]
    assert "Done so far." in told(found) or "Fine." in told(found)


def test_of_notes_those_that_were_merged_most_often_go_before_groups() -> None:
    made = story()
    ids = [m.uuid for m in made.messages]
    old = Collapsed("old", tuple(ids[1:3]), "An old note about alpha.py. " * 30, 500, 100, tier=1)
    new = Collapsed("new", tuple(ids[3:5]), "A newer note. " * 30, 500, 100, tier=0)
    state = fold([old, new, Committed(("old", "new"), 0)])
    results = fold([Replaced(i, "gone", "cleared") for i in ("r2", "b2")], state)
    scene = made.scene(state=results)

    found = peeled(scene, 3_400)

    assert "old" not in found.layout
    assert "new" in found.layout
    assert "alpha.py" in told(found)


def test_the_message_that_tells_stands_behind_the_first_prompt_and_names_the_page() -> None:
    found = peeled(story(), 1)

    assert found.layout[0] == "u1"
    assert isinstance(found.layout[1], Row)
    assert "/store/page.md" in told(found)
    assert [m.uuid for m in found.gone] == ["u2", "u3"]


def test_an_earlier_summary_is_taken_up_by_the_new_one() -> None:
    made = story()
    earlier = Message("user", "summary", ({"type": "text", "text": "Keep the parser in omega.py fast."},), ("s0",))
    scene = Scene((earlier, *made.messages), made.scene().model, store_folder=STORE)

    found = peeled(scene, float("inf"))

    assert "s0" not in found.layout
    assert isinstance(found.layout[0], Row)
    assert "omega.py" in told(found)


def test_more_than_enough_typed_text_goes_the_oldest_but_the_first() -> None:
    made = History().prompt("First.")
    for number in range(4):
        made.prompt(f"Text {number}. " + BIG * 5).answer("Read.")
    made.prompt("Last.").answer("Yes.")

    found = peeled(made, float("inf"), 100_000)

    kept = [item for item in found.layout if isinstance(item, str)]
    prompts = [m.uuid for m in made.messages if m.kind == "prompt"]
    assert kept[0] == prompts[0]
    assert prompts[-2] in kept
    assert prompts[1] not in kept


def test_of_a_last_turn_that_fills_it_all_the_newest_rounds_stay() -> None:
    made = History().prompt("Do it all.")
    for number in range(30):
        made.use(f"t{number}", "Bash", BIG, command=f"make {number}")

    found = peeled(made, float("inf"), 30_000)

    kept = [item for item in found.layout if isinstance(item, str)]
    assert kept[0] == "u1"
    assert kept[-1] == made.messages[-1].uuid
    assert 2 < len(kept) < 30


def test_nothing_is_cut_in_front_of_an_unfinished_loop_that_holds_thinking() -> None:
    made = story().prompt("More.").use("z", "Bash", BIG, thinking="Hm.", command="x")

    assert peel(made.scene(), 1, LIMIT, "") is None


def test_where_nothing_can_go_there_is_nothing_to_tell() -> None:
    assert peel(History().prompt("Hi.").scene(), 1, LIMIT, "") is None


@given(st.integers(0, 60_000), st.sampled_from([3_000.0, 20_000.0, 200_000.0]))
@settings(max_examples=40)
def test_pairs_stay_whole_and_enough_goes_if_there_is_enough(need: int, limit: float) -> None:
    made = story()
    found = peel(made.scene(), need, limit, "")
    if found is None:
        assert need == 0
        return
    if limit > 3_000:  # else the last turn is too large as well
        assert {m.uuid for m in made.messages[-4:]} <= {i for i in found.layout if isinstance(i, str)}
    kept = {item for item in found.layout if isinstance(item, str)}
    kept |= {u for row in found.layout if isinstance(row, Row) for u in row.uuids}
    for call, result in pairwise(made.messages):
        if tool_uses(call):
            assert (call.uuid in kept) == (result.uuid in kept)
    assert made.messages[0].uuid in kept
    assert made.messages[-1].uuid in kept


def clipped(made: History, limit: float = 10_000, **fields: Any) -> list[str]:
    return [d.id for d in clip(made.scene(**fields), limit).decisions if isinstance(d, Replaced)]


def test_the_newest_results_are_clipped_the_largest_first_until_they_are_few_enough() -> None:
    made = History().prompt("Go.").calls(("a", "Bash", {}), ("b", "Bash", {"x": 1}), ("c", "Bash", {"x": 2}))
    made.result("a", BIG * 8).result("b", BIG * 2).result("c", BIG * 16)

    assert clipped(made, 60_000) == ["c"]
    assert clipped(made, 20_000) == ["c", "a"]
    assert clipped(made, 1_000_000) == []


def test_older_results_are_not_what_clipping_is_for() -> None:
    made = History().prompt("Go.").use("a", "Bash", BIG * 20).answer("So.")

    assert clipped(made) == []
    assert clip(made.scene(), 10_000).reason


def test_a_read_without_text_and_what_was_cut_before_are_left() -> None:
    made = History().prompt("Go.").use("a", "Read", BIG * 20, file_path="a.py")
    state = fold([Replaced("a", BIG, "budget")])

    assert clipped(made) == ["a"]
    assert clipped(made, state=state) == []


def test_what_cannot_be_previewed_gets_a_line() -> None:
    made = History().prompt("Go.")
    made.use("a", "Search", [{"type": "tool_reference", "tool_name": "x"}, {"type": "text", "text": BIG * 20}])
    (decision,) = clip(made.scene(), 10_000).decisions

    assert isinstance(decision, Replaced)
    assert decision.text == (
        "[Old tool result content cleared; foldmark output SESSION a, or the tool read_persisted_output, shows it]"
    )


@pytest.mark.parametrize("empty", [History(), History().prompt("Hi.")])
def test_an_empty_history_has_no_newest_result(empty: History) -> None:
    assert clipped(empty, 0.0) == []
