from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.context.decisions import Replaced, Seen
from core.defaults import PREVIEW_BYTES
from core.model import JSON, Block
from core.stages.base import Plan, applied
from core.stages.edits import store_bodies
from core.stages.stand_in import shown_by
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.transcript.store import Store
from tests.disk import stored
from tests.faults import failing
from tests.stages.build import History, image, items, resumed, run, sent, shown, text

LARGE = ToolBudgetSettings(result_chars=200_000)
"""The limit of a message alone (`results_chars`): with the default limit of one result, 50,000, B of the example is
stored for its own size, whatever is beside it.  docs/decisions/tool-budget.md says how the two go together."""
LATER = datetime(2026, 3, 2, tzinfo=UTC)


def replaced(plan: Plan) -> dict[str, str]:
    return {d.id: d.text for d in plan.decisions if isinstance(d, Replaced)}


def seen(plan: Plan) -> tuple[str, ...]:
    return tuple(i for d in plan.decisions if isinstance(d, Seen) for i in d.ids)


def one(content: JSON, name: str = "Bash", **given: Any) -> History:
    return History().prompt("Go.").use("t1", name, content, **given)


def parallel(*results: tuple[str, JSON], name: str = "Bash") -> History:
    history = History().prompt("Go.").calls(*((ident, name, {}) for ident, _ in results))
    for ident, content in results:
        history.result(ident, content)
    return history


# One result


@pytest.mark.parametrize(("chars", "goes"), [(50_000, False), (50_001, True)])
def test_a_result_over_the_limit_is_stored_and_a_preview_stands_for_it(chars: int, goes: bool) -> None:
    plan = ToolBudget().plan(one("x" * chars).scene())
    assert ("t1" in replaced(plan)) is goes
    assert seen(plan) == (() if goes else ("t1",))
    assert [body.id for body in plan.bodies] == (["t1"] if goes else [])
    assert (plan.tokens_freed > 10_000) is goes


def test_the_preview_says_how_much_there_is_and_where_and_begins_like_the_output() -> None:
    lines = "".join(f"line {n:06}\n" for n in range(10_000))
    _, scene = run(ToolBudget(), one(lines).scene())
    said = str(shown(scene, "t1")["content"])
    assert said.startswith("<persisted-output>\nBash gave 120,000 characters (text, 120,000 bytes)")
    assert said.endswith("\n</persisted-output>")
    assert f"  path: /store/tool-results/t1.txt\nRead it there in parts, or search it; {shown_by('t1')}. It" in said
    preview = said.split("It begins:\n\n")[1].removesuffix("\n</persisted-output>")
    assert lines.startswith(preview + "\n")
    assert PREVIEW_BYTES - 12 < len(preview) <= PREVIEW_BYTES


@pytest.mark.parametrize(
    ("output", "preview"),
    [
        ("x" * 300, "x" * 100),  # a line without an end
        ("a\n" + "x" * 300, "a\n" + "x" * 98),  # a cut at the only line end would leave nothing
        ("x" * 99 + "é" * 200, "x" * 99),  # no half character
        ("y" * 60 + "\n" + "x" * 300, "y" * 60),
    ],
)
def test_the_preview_is_cut_at_a_line_end_or_between_characters(output: str, preview: str) -> None:
    settings = ToolBudgetSettings(result_chars=1, preview_bytes=100)
    plan = ToolBudget(settings).plan(one(output * 10).scene())
    assert f"It begins:\n\n{preview}\n</persisted-output>" in replaced(plan)["t1"]


def test_a_result_that_is_no_longer_than_its_preview_stays() -> None:
    plan = ToolBudget(ToolBudgetSettings(result_chars=10)).plan(one("x" * 1_000).scene())
    assert replaced(plan) == {}
    assert seen(plan) == ("t1",)


@pytest.mark.parametrize(
    ("name", "limits", "goes"),
    [
        ("Grep", (("Grep", 20_000),), True),
        ("mcp__db__query", (("mcp__db__*", 20_000),), True),
        ("mcp__other__query", (("mcp__db__*", 20_000),), False),
        ("Grep", (("Grep", 90_000),), False),
    ],
)
def test_what_a_tool_declares_counts_where_it_is_lower(
    name: str, limits: tuple[tuple[str, int], ...], goes: bool
) -> None:
    settings = ToolBudgetSettings(declared_chars=limits)
    assert ("t1" in replaced(ToolBudget(settings).plan(one("x" * 30_000, name).scene()))) is goes
    assert "t1" in replaced(ToolBudget(settings).plan(one("x" * 60_000, name).scene()))


@pytest.mark.parametrize(
    ("name", "exempt", "stays"),
    [
        ("Read", None, True),
        ("memory", None, True),
        ("mcp__memory__read_graph", None, True),
        ("mcp__plugin_foldmark_foldmark__read_persisted_output", None, True),
        ("mcp__db__query", None, False),
        ("mcp__db__query", ("mcp__db__*",), True),
        ("mcp__dbx__query", ("mcp__db__*",), False),
        ("Read", (), False),
    ],
)
def test_exempt_tools_keep_their_results(name: str, exempt: tuple[str, ...] | None, stays: bool) -> None:
    settings = ToolBudgetSettings() if exempt is None else ToolBudgetSettings(exempt=exempt)
    plan = ToolBudget(settings).plan(one("x" * 300_000, name).scene())
    assert (replaced(plan) == {}) is stays
    assert (seen(plan) == ("t1",)) is stays


def test_an_error_stays_an_error() -> None:
    history = History().prompt("Go.").use("t1", "Bash", "x" * 60_000, error=True)
    _, scene = run(ToolBudget(), history.scene())
    assert shown(scene, "t1")["is_error"] is True
    assert "persisted-output" in str(shown(scene, "t1")["content"])


@pytest.mark.parametrize("content", ["", [], None, [text("")]])
def test_an_empty_result_says_so(content: JSON) -> None:
    plan, scene = run(ToolBudget(), one(content).scene())
    said = shown(scene, "t1")["content"]
    sentence = "Bash finished without any output."
    assert said == (sentence if not isinstance(content, list) else [text(sentence)])
    assert plan.bodies == ()
    assert plan.tokens_freed == 0


def test_an_empty_result_that_was_sent_before_stays_as_it_was() -> None:
    history = one("").answer("Done.", thinking="Hm.")
    assert seen(ToolBudget().plan(history.scene(now=LATER))) == ()
    assert replaced(ToolBudget().plan(history.scene(now=LATER))) == {}


def test_an_empty_error_says_that_it_failed() -> None:
    _, scene = run(ToolBudget(), History().prompt("Go.").use("t1", "Bash", "", error=True).scene())
    assert shown(scene, "t1") == {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": "Bash failed and said nothing.",
        "is_error": True,
    }


# Lists, images


def test_a_list_stays_a_list_and_its_json_is_stored() -> None:
    content: list[JSON] = [text("x" * 30_000), text("y" * 30_000)]
    plan, scene = run(ToolBudget(), one(content).scene())
    (block,) = items(scene, "t1")
    assert block["type"] == "text"
    assert "60,001 characters (JSON, 60,053 bytes)" in block["text"]
    assert "path: /store/tool-results/t1.json" in block["text"]
    assert plan.bodies[0].content["content"] == content


def test_images_stay_where_the_text_beside_them_goes() -> None:
    content: list[JSON] = [image(), text("x" * 60_000), image(b"other")]
    plan, scene = run(ToolBudget(), one(content).scene())
    first, *media = items(scene, "t1")
    assert "persisted-output" in first["text"]
    assert media == [image(), image(b"other")]
    assert plan.bodies[0].content["content"] == [text("x" * 60_000)]


@pytest.mark.parametrize("block", [image(b"i" * 500_000), image(b"%PDF" + b"p" * 500_000, "application/pdf")])
def test_images_and_documents_are_never_stored(block: Block) -> None:
    plan = ToolBudget().plan(one([block]).scene())
    assert (replaced(plan), seen(plan)) == ({}, ("t1",))


def test_references_to_tools_stay_what_they_are() -> None:
    content: JSON = [text("x" * 60_000), {"type": "tool_reference", "tool_name": "Grep"}]
    assert replaced(ToolBudget().plan(one(content).scene())) == {}


def test_other_blocks_are_previewed_by_their_json() -> None:
    content: JSON = [{"type": "search_result", "title": "t" * 60_000}]
    assert '[{"type":"search_result","title":"ttt' in replaced(ToolBudget().plan(one(content).scene()))["t1"]


# All results of a response


ABC = (("a", "A" * 120_000), ("b", "B" * 90_000), ("c", "C" * 20_000))


def test_of_120_90_and_20_thousand_only_the_largest_goes() -> None:
    plan, scene = run(ToolBudget(LARGE), parallel(*ABC).scene())
    assert [*replaced(plan)] == ["a"]
    assert seen(plan) == ("b", "c")
    assert shown(scene, "b")["content"] == "B" * 90_000


def test_by_default_the_second_goes_for_its_own_size() -> None:
    plan, scene = run(ToolBudget(), parallel(*ABC).scene())
    assert [*replaced(plan)] == ["a", "b"]
    assert seen(plan) == ("c",)
    assert shown(scene, "c")["content"] == "C" * 20_000


def test_of_tools_without_a_limit_of_their_own_only_the_message_counts() -> None:
    """Read is one, unless it is made to count; then it is stored as the example says, and so is any tool's."""
    plan, _ = run(ToolBudget(), parallel(*ABC, name="Read").scene())
    assert replaced(plan) == {}
    plan, _ = run(ToolBudget(ToolBudgetSettings(exempt=(), result_chars=200_000)), parallel(*ABC, name="Read").scene())
    assert [*replaced(plan)] == ["a"]


def test_the_example_is_the_same_after_resume_and_with_another_template(monkeypatch: pytest.MonkeyPatch) -> None:
    history = parallel(*ABC)
    plan, scene = run(ToolBudget(LARGE), history.scene())
    before = sent(scene)
    monkeypatch.setattr("core.stages.stand_in._STAND_IN", "[{name} {size} {path} {id} {preview}]")
    again = resumed(scene, plan.decisions)
    assert sent(again) == before
    for settings in (LARGE, ToolBudgetSettings(), ToolBudgetSettings(result_chars=100, results_chars=100)):
        later, scene_later = run(ToolBudget(settings), again)
        assert later.decisions == ()
        assert sent(scene_later) == before


def test_what_was_seen_stays_when_the_next_turn_is_over_the_limit() -> None:
    history = parallel(*ABC)
    plan, _ = run(ToolBudget(LARGE), history.scene())
    history.calls(("d", "Bash", {}), ("e", "Bash", {})).result("d", "D" * 150_000).result("e", "E" * 60_000)
    later = ToolBudget(LARGE).plan(resumed(history.scene(), plan.decisions))
    assert [*replaced(later)] == ["d"]
    assert seen(later) == ("e",)


def test_results_that_come_later_make_room_for_those_that_were_seen() -> None:
    history = History().prompt("Go.").calls(("a", "Bash", {}), ("b", "Bash", {})).result("a", "A" * 150_000)
    plan, _ = run(ToolBudget(LARGE), history.scene())
    assert seen(plan) == ("a",)
    history.result("b", "B" * 60_000)
    assert [*replaced(ToolBudget(LARGE).plan(resumed(history.scene(), plan.decisions)))] == ["b"]


def test_results_of_several_rows_count_together_and_those_of_other_responses_do_not() -> None:
    apart = History().prompt("Go.")
    for n in range(5):
        apart.use(f"t{n}", "Bash", "x" * 45_000)
    assert replaced(ToolBudget().plan(apart.scene())) == {}
    together = parallel(*((f"t{n}", "x" * 45_000) for n in range(5)))
    assert [*replaced(ToolBudget().plan(together.scene()))] == ["t0"]


def test_exempt_results_take_room_but_stay() -> None:
    history = History().prompt("Go.").calls(("r", "Read", {}), ("b", "Bash", {}))
    history.result("r", "R" * 190_000).result("b", "B" * 20_000)
    assert [*replaced(ToolBudget().plan(history.scene()))] == ["b"]


def test_what_cannot_fit_is_stored_as_far_as_possible() -> None:
    history = parallel(*((f"t{n}", "x" * 3_000) for n in range(4)))
    plan = ToolBudget(ToolBudgetSettings(results_chars=100)).plan(history.scene())
    assert [*replaced(plan)] == ["t0", "t1", "t2", "t3"]


# What the client stored


def test_what_the_client_stored_is_left_alone() -> None:
    history = parallel(("a", "<persisted-output>" + "a" * 3_000), ("b", "b" * 2_900))
    stage = ToolBudget(ToolBudgetSettings(results_chars=5_000), persisted=frozenset({"a"}))
    assert [*replaced(stage.plan(history.scene()))] == ["b"]


def test_a_stored_output_that_is_gone_is_said_to_be_gone() -> None:
    path = "/gone/tool-results/t1.txt"
    history = one(f"<persisted-output>\nToo large. Saved to: {path}\n\nPreview:\na\nb\n</persisted-output>")
    stage = ToolBudget(persisted=frozenset({"t1"}), gone={"t1": path})
    _, scene = run(stage, history.scene())
    said = str(shown(scene, "t1")["content"])
    assert path not in said
    assert "gone" in said
    assert "\na\nb\n" in said
    assert run(stage, scene)[0].decisions == ()


# Cost, thinking, storage


def old_and_large() -> History:
    history = History().prompt("Go.").use("t1", "Bash", "x" * 52_000)
    for n in range(30):
        history.use(f"r{n}", "Read", f"{n} " * 9_000)
    return history


def test_an_old_result_goes_only_where_that_pays() -> None:
    plan = ToolBudget().plan(old_and_large().scene())
    assert replaced(plan) == {}
    assert "t1" not in seen(plan)
    assert plan.reason == "1 of 1 stay: it would cost more than it saves"
    assert plan.verdict is not None
    assert not plan.verdict.pays
    assert [*replaced(ToolBudget().plan(old_and_large().scene(forced=True)))] == ["t1"]
    assert [*replaced(ToolBudget().plan(old_and_large().scene(now=LATER)))] == ["t1"]


def test_an_old_result_that_does_not_pay_does_not_hold_up_a_new_one() -> None:
    history = old_and_large().use("t2", "Bash", "y" * 60_000)
    plan = ToolBudget().plan(history.scene())
    assert [*replaced(plan)] == ["t2"]
    assert plan.verdict is not None
    assert plan.verdict.rewritten_tokens == 0


def test_a_new_result_goes_also_in_a_tool_loop_that_holds_thinking() -> None:
    history = History().prompt("Go.").use("t1", "Bash", "x" * 60_000, thinking="Hm.")
    history.use("t2", "Bash", "y" * 60_000, thinking="Hm, hm.").use("t3", "Bash", "z" * 60_000)
    plan, scene = run(ToolBudget(), history.scene(forced=True))
    assert [*replaced(plan)] == ["t2", "t3"]
    assert seen(plan) == ()
    assert any(b.get("type") == "thinking" for b in scene.view().messages[3].content)


def test_results_without_a_call_are_nobodys() -> None:
    assert ToolBudget().plan(History().prompt("Go.").result("lost", "x" * 90_000).scene()).decisions == ()


def test_without_a_store_nothing_is_decided() -> None:
    plan = ToolBudget().plan(one("x" * 60_000).scene(store_folder=""))
    assert plan.decisions == ()
    assert plan.reason == "there is no store for outputs"


def test_bodies_are_stored_and_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    output = "".join(f"line {n} é\n" for n in range(6_000))
    scene = one(output).scene(store_folder=str(store.folder))
    plan = ToolBudget().plan(scene)
    assert store_bodies(store, scene, plan) == plan
    body = stored(store, "t1")
    assert body is not None
    assert (body.kind, body.name) == ("output", "Bash")
    assert store.read(body) == output.encode()
    assert f"path: {store.folder / 't1.txt'}\n" in replaced(plan)["t1"]


def test_a_result_that_cannot_be_stored_stays_whole_and_the_failure_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    store.put("b", "what another program stored")
    history = parallel(("a", "a" * 60_000), ("b", "b" * 70_000), ("c", "c"))
    scene = history.scene(store_folder=str(store.folder))
    plan = ToolBudget().plan(scene)
    left = store_bodies(store, scene, plan)
    assert [*replaced(left)] == ["a"]
    assert [body.id for body in left.bodies] == ["a"]
    assert left.reason.startswith("b stays, it could not be stored: ")
    assert 0 < left.tokens_freed < plan.tokens_freed
    scene = applied(scene, left)
    assert shown(scene, "b")["content"] == "b" * 70_000
    assert [*replaced(ToolBudget().plan(scene))] == ["b"]  # it was not decided about


def test_on_a_full_disk_everything_stays(tmp_path: Path) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    scene = one("x" * 60_000).scene(store_folder=str(store.folder))
    with failing(1, errno.ENOSPC):
        left = store_bodies(store, scene, ToolBudget().plan(scene))
    assert (left.decisions, left.bodies, left.tokens_freed) == ((), (), 0)
    assert "No space left" in left.reason
