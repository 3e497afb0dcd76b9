from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from core.context.decisions import CacheEdited, Decision, Replaced, Snipped, fold
from core.model import JSON
from core.stages.base import Plan, Scene
from core.stages.read_dedup import ReadDedup
from tests.stages.build import History, image, resumed, run, sent, shown, text

PATH = "/srv/app/parser.py"
CODE = "".join(f"{n}\tdef f{n}(): ...\n" for n in range(200))
LATER = datetime(2026, 3, 2, tzinfo=UTC)


def stubs(plan: Plan) -> dict[str, str]:
    """The later results, and the earlier ones that they point to."""
    return {d.id: d.leans_on for d in plan.decisions if isinstance(d, Replaced)}


def read(history: History, ident: str, content: JSON = CODE, **given: Any) -> History:
    return history.use(ident, "Read", content, **{"file_path": PATH, **given})


def twice(**given: JSON) -> History:
    return read(read(History().prompt("Go."), "r1", **given), "r2", **given)


def test_the_later_of_two_equal_reads_points_to_the_earlier() -> None:
    plan, scene = run(ReadDedup(), twice().scene())
    assert stubs(plan) == {"r2": "r1"}
    assert shown(scene, "r1")["content"] == CODE
    said = str(shown(scene, "r2")["content"])
    assert PATH in said
    assert "r1" in said
    assert len(said) < 150
    assert plan.tokens_freed > 1_000
    assert [body.content["content"] for body in plan.bodies] == [CODE]


def test_every_later_read_points_to_the_first_that_is_whole() -> None:
    plan, scene = run(ReadDedup(), read(twice(), "r3").scene())
    assert stubs(plan) == {"r2": "r1", "r3": "r1"}
    assert ReadDedup().plan(scene).decisions == ()
    history = read(read(twice(), "r3"), "r4")
    later = ReadDedup().plan(resumed(history.scene(), plan.decisions))
    assert stubs(later) == {"r4": "r1"}


def test_reads_in_one_response_are_told_apart_by_their_order() -> None:
    history = History().prompt("Go.").calls(("r1", "Read", {"file_path": PATH}), ("r2", "Read", {"file_path": PATH}))
    plan = ReadDedup().plan(history.result("r1", CODE).result("r2", CODE).scene())
    assert stubs(plan) == {"r2": "r1"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({}, {"offset": 10}, False),
        ({"offset": 10, "limit": 5}, {"offset": 10, "limit": 6}, False),
        ({"offset": 10, "limit": 5}, {"offset": 10, "limit": 5}, True),
        ({"file_path": "/srv/app/other.py"}, {}, False),
    ],
)
def test_the_same_file_and_range_is_meant(first: dict[str, JSON], second: dict[str, JSON], same: bool) -> None:
    history = read(read(History().prompt("Go."), "r1", **first), "r2", **second)
    assert stubs(ReadDedup().plan(history.scene())) == ({"r2": "r1"} if same else {})


def test_another_content_is_no_repetition_and_the_next_read_points_to_it() -> None:
    history = read(read(read(History().prompt("Go."), "r1"), "r2", CODE + "new\n"), "r3", CODE + "new\n")
    assert stubs(ReadDedup().plan(history.scene())) == {"r3": "r2"}


@pytest.mark.parametrize(
    ("name", "given", "changes"),
    [
        ("Edit", {"file_path": PATH, "old_string": "a", "new_string": "b"}, True),
        ("Write", {"file_path": PATH, "content": ""}, True),
        ("Bash", {"command": "sed -i s/a/b/ parser.py"}, True),
        ("Bash", {"command": "ls"}, False),
        ("Edit", {"file_path": "/srv/app/other.py"}, False),
        ("mcp__files__patch", {"target": "app/parser.py"}, True),
        ("Task", {"prompt": "Tidy parser.py up"}, True),
        ("Grep", {"pattern": "f1", "path": PATH}, False),
    ],
)
@pytest.mark.parametrize("parallel", [False, True])
def test_what_may_have_changed_the_file_ends_the_repetition(
    name: str, given: dict[str, Any], changes: bool, parallel: bool
) -> None:
    history = History().prompt("Go.")
    if parallel:
        history.calls(("r1", "Read", {"file_path": PATH}), ("x", name, given)).result("r1", CODE).result("x", "Done.")
    else:
        read(history, "r1").use("x", name, "Done.", **given)
    assert stubs(ReadDedup().plan(read(history, "r2").scene())) == ({} if changes else {"r2": "r1"})


@pytest.mark.parametrize(
    "content",
    [
        [image()],
        [text(CODE), image()],
        "x" * 999,  # a stub would save nothing
    ],
)
def test_images_and_short_results_stay(content: JSON) -> None:
    history = read(read(History().prompt("Go."), "r1", content), "r2", content)
    assert ReadDedup().plan(history.scene()).decisions == ()


def test_pdfs_errors_and_other_tools_stay() -> None:
    history = read(read(History().prompt("Go."), "p1", file_path="/a.pdf"), "p2", file_path="/a.PDF")
    read(read(history, "p3", file_path="/a.pdf"), "p4", file_path="/a.pdf")
    for n in range(2):
        history.use(f"b{n}", "Bash", CODE, command="cat x").use(f"e{n}", "Read", CODE, error=True, file_path="/e.py")
    assert ReadDedup().plan(history.scene()).decisions == ()


def test_lists_of_text_are_compared_too() -> None:
    history = read(read(History().prompt("Go."), "r1", [text(CODE)]), "r2", [text(CODE)])
    plan, scene = run(ReadDedup(), history.scene())
    assert stubs(plan) == {"r2": "r1"}
    assert isinstance(shown(scene, "r2")["content"], list)


def test_what_is_small_stays() -> None:
    history = History().prompt("Go.")
    for n in range(2):
        history.use(f"r{n}", "Read", "x" * 200, file_path="/a.py")
    assert stubs(ReadDedup(min_chars=201).plan(history.scene())) == {}
    assert stubs(ReadDedup(min_chars=200).plan(history.scene())) == {"r1": "r0"}


# The earlier result has to be there


def gone(kind: str) -> list[Decision]:
    match kind:
        case "snipped":
            return [Snipped("s1", ("u2", "u3"), "[2 messages removed]")]
        case "cleared":
            return [Replaced("r1", "[cleared]", "cleared")]
        case _:
            return [CacheEdited(("r1",), "u5")]


@pytest.mark.parametrize("kind", ["snipped", "cleared", "on the server"])
def test_nothing_points_to_a_result_that_is_not_there_or_not_whole(kind: str) -> None:
    scene = twice().scene(state=fold(gone(kind)))
    assert ReadDedup().plan(scene).decisions == ()


@pytest.mark.parametrize("kind", ["snipped", "cleared", "on the server"])
def test_the_content_comes_back_when_the_earlier_result_goes_later(kind: str) -> None:
    scene = twice().scene()
    plan = ReadDedup().plan(scene)
    after = resumed(scene, [*plan.decisions, *gone(kind)])
    assert shown(after, "r2")["content"] == CODE
    assert ReadDedup().plan(after).decisions == ()


def test_what_another_points_to_stays_whole_when_the_change_in_front_of_it_is_snipped() -> None:
    history = read(History().prompt("Go."), "r1").use("e", "Edit", "ok", file_path=PATH)
    scene = read(read(history, "r2"), "r3").scene()
    plan, after = run(ReadDedup(), scene)
    assert stubs(plan) == {"r3": "r2"}

    snipped = resumed(scene, [*plan.decisions, Snipped("s1", ("u4", "u5"), "[2 messages removed]")])
    assert ReadDedup().plan(snipped).decisions == ()
    assert shown(snipped, "r2")["content"] == CODE
    assert shown(snipped, "r3") == shown(after, "r3")


def test_the_content_comes_back_when_a_compaction_leaves_the_earlier_result_behind() -> None:
    scene = twice().scene()
    plan = ReadDedup().plan(scene)
    tail = Scene(scene.messages[3:], scene.model, fold(plan.decisions))
    assert shown(tail, "r2")["content"] == CODE


def test_the_stub_stands_in_a_history_that_was_written_with_it() -> None:
    scene = twice().scene()
    plan, after = run(ReadDedup(), scene)
    written = Scene(after.view().messages, scene.model, fold(plan.decisions))
    assert sent(written) == sent(after)


# Cost


def test_an_old_repetition_goes_only_where_that_pays() -> None:
    history = twice()
    for n in range(30):
        history.use(f"x{n}", "Bash", f"{n} " * 9_000)
    plan = ReadDedup().plan(history.scene())
    assert plan.decisions == ()
    assert plan.reason == "1 of 1 stay: it would cost more than it saves"
    assert stubs(ReadDedup().plan(history.scene(now=LATER))) == {"r2": "r1"}
    assert stubs(ReadDedup().plan(history.scene(forced=True))) == {"r2": "r1"}


def test_in_a_tool_loop_with_thinking_only_what_is_new_goes() -> None:
    history = read(History().prompt("Go."), "r1")
    history.use("x", "Bash", "ok", thinking="Hm.")
    read(history, "r2")
    assert stubs(ReadDedup().plan(history.scene())) == {"r2": "r1"}
    history.use("y", "Bash", "ok", thinking="Hm.")
    assert ReadDedup().plan(history.scene(forced=True)).decisions == ()
