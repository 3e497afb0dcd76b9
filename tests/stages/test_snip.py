"""Snips: what a range grows to, what is refused, what stays, and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.context.decisions import Collapsed, Committed, Nudged, Snipped, fold
from core.context.short_ids import ShortIds
from core.errors import FoldmarkError, IdNotFound, InputError
from core.model import Message, block_text, tool_results, tool_uses
from core.service.session import opened
from core.stages.base import Scene, applied
from core.stages.snip import PROTECTED_RESPONSES, Snip, SnipPlan, SnipSettings
from core.stages.stand_in import shown_by
from core.transcript.projects import session_file
from tests.stages.build import MODEL, History, pairs_are_whole, resumed, sent

CASES = Path(__file__).parents[1] / "data" / "cases"
LONG = "line\n" * 400


def uuid(n: int) -> str:
    return f"00000000-0000-4000-8000-{n:012x}"


def case(name: str) -> Scene:
    with opened(session_file(CASES / f"{name}.jsonl")) as session:
        return Scene(session.messages, MODEL, store_folder="/store")


def steps(count: int, prompts: int = 1) -> History:
    """A prompt in every so many rounds; each round is a response (2n), its result (2n + 1)."""
    history = History()
    for n in range(count):
        if n % prompts == 0:
            history.prompt(f"Step {n}.")
        history.use(f"t{n}", "Read", f"{LONG}{n}", file_path=f"/srv/m{n}.py")
    return history


def taken(plan: SnipPlan) -> Snipped:
    (decision,) = plan.decisions
    assert isinstance(decision, Snipped)
    return decision


def refused(scene: Scene, from_id: str, to_id: str, **more: frozenset[str]) -> FoldmarkError:
    with pytest.raises(FoldmarkError) as caught:
        Snip().plan_range(scene, from_id, to_id, **more)
    assert caught.value.hint
    return caught.value


# The case: from a result to a call, three steps further on.


def test_a_range_grows_to_whole_pairs_and_reports_its_true_ends_and_its_count() -> None:
    plan = Snip().plan_range(case("snip-1"), uuid(0xB), uuid(0x16))

    assert (plan.first, plan.last, plan.count) == (uuid(0xA), uuid(0x17), 11)
    assert plan.tokens_freed > 0
    assert plan.verdict is not None
    assert plan.verdict.deleted_tokens == plan.tokens_freed


def test_what_a_person_wrote_in_the_range_stays() -> None:
    scene = case("snip-1")
    after = applied(scene, Snip().plan_range(scene, uuid(0xB), uuid(0x16)))

    left = [m.uuid for m in after.view().messages if m.kind == "prompt"]
    assert left == [m.uuid for m in scene.messages if m.kind == "prompt"]
    assert pairs_are_whole(after.view().messages)


def test_what_a_person_wrote_goes_when_it_is_named() -> None:
    scene = case("snip-1")
    plan = Snip().plan_range(scene, uuid(0x9), uuid(0xB))

    assert taken(plan).uuids == (uuid(0x9), uuid(0xA), uuid(0xB))


@pytest.mark.parametrize(
    ("from_id", "to_id", "says"),
    [
        ("ffffffff-0000-4000-8000-000000000000", uuid(0x16), "no message of the active context has the id"),
        (uuid(0x16), uuid(0xB), "stands behind"),
        (uuid(0x1), uuid(120), "whole history"),
        (uuid(0xB), uuid(120), "protected tail"),
        ("00000000", uuid(0x16), "120 ids begin with"),
    ],
)
def test_a_range_that_cannot_go_is_refused_with_a_clear_message(from_id: str, to_id: str, says: str) -> None:
    assert says in str(refused(case("snip-1"), from_id, to_id))


def test_what_is_snipped_already_is_refused_and_the_refusal_names_its_page() -> None:
    scene = case("snip-1")
    plan = Snip().plan_range(scene, uuid(0xB), uuid(0x16))
    after = applied(scene, plan)
    page = f"snip-{taken(plan).id[:8]}"

    for name in (uuid(0xB), uuid(0x17), taken(plan).id, page):
        error = refused(after, name, uuid(0x30))
        assert "snipped already" in str(error)
        assert page in error.hint


def test_undo_restores_the_same_view() -> None:
    scene = case("snip-1")
    after = applied(scene, Snip().plan_range(scene, uuid(0xB), uuid(0x16)))
    name = after.state.snips[0].id[:8]

    back = applied(after, Snip().undo(after, name))
    assert sent(back) == sent(scene)
    assert not back.state.snips


# The last boundary


def test_ids_before_the_last_boundary_are_refused_as_such() -> None:
    scene = case("thrash-1")
    earlier = frozenset({uuid(0x9)})

    assert "before the last compaction" in str(refused(scene, uuid(0x9), uuid(0x16), earlier=earlier))
    assert "no message of the active context" in str(refused(scene, uuid(0x9), uuid(0x16)))


def test_a_summary_is_not_snipped() -> None:
    scene = case("thrash-1")
    summary = next(m.uuid for m in scene.messages if m.kind == "summary")

    assert "summary of an earlier compaction" in str(refused(scene, summary, uuid(0x17)))


def test_only_the_last_of_three_boundaries_counts() -> None:
    assert [m.kind for m in case("thrash-1").messages].count("summary") == 1


# Names and protections


def test_short_ids_calls_and_starts_of_ids_name_the_ends() -> None:
    scene = steps(20).scene()
    plain = Snip().plan_range(scene, "u2", "u6")
    short = ShortIds.of(scene.messages).short

    assert Snip().plan_range(scene, short("u2"), f"[id:{short('u6')}]").decisions == plain.decisions
    assert Snip().plan_range(scene, "t0", "u6").first == "u2"


def test_a_short_history_is_protected_as_a_whole() -> None:
    history = steps(PROTECTED_RESPONSES - 1)

    assert "protected tail" in str(refused(history.scene(), "u2", "u3"))


def test_one_turn_of_many_rounds_is_protected_only_as_far_as_the_newest_tokens_go() -> None:
    scene = steps(90, prompts=1_000).scene()
    messages = scene.messages

    assert Snip().plan_range(scene, messages[1].uuid, messages[8].uuid).count == 8
    assert "protected tail" in str(refused(scene, messages[1].uuid, messages[-20].uuid))


def test_nothing_is_snipped_in_front_of_an_unfinished_tool_loop_that_holds_thinking() -> None:
    scene = steps(12).use("last", "Read", "x", thinking="Hm.").scene()

    assert "thinking" in str(refused(scene, "u2", "u6"))
    assert Snip().suggest(scene) == []


def test_pinned_messages_and_the_lines_of_other_snips_stay() -> None:
    scene = steps(20).scene()
    inner = applied(scene, Snip().plan_range(scene, "u5", "u6"))
    snip = Snip(SnipSettings(pinned=frozenset({"u9", "u8"})))
    after = applied(inner, snip.plan_range(inner, "u2", "u12"))

    left = {m.uuid for m in after.view().messages}
    assert {"u8", "u9", inner.state.snips[0].id} <= left
    assert not left & {"u2", "u3", "u11", "u12"}
    covered = [u for s in after.state.snips for u in s.uuids]
    assert len(covered) == len(set(covered))


def test_what_a_note_stands_for_is_refused() -> None:
    scene = steps(20).scene()
    span = Collapsed("5" * 36, ("u2", "u3"), "A note.")
    scene = replace(scene, state=fold([span, Committed((span.id,))]))

    assert "folded into a note already" in str(refused(scene, "u3", "u6"))


def test_a_range_without_rounds_and_one_that_is_too_small_are_refused() -> None:
    history = History().prompt("First.")
    history._add("user", "attachment", ({"type": "text", "text": "An attachment."},))
    history._add("user", "attachment", ({"type": "text", "text": "Another."},))
    history._add("user", "attachment", ({"type": "text", "text": "A third."},))
    for n in range(12):
        history.prompt("More.").use(f"t{n}", "Read", "x", file_path="/a")
    scene = history.scene()
    pinned = Snip(SnipSettings(pinned=frozenset({"u4"})))

    with pytest.raises(InputError, match="is as long as"):
        Snip().plan_range(scene, "u4", "u4")
    with pytest.raises(InputError, match="nothing in that range can go"):
        pinned.plan_range(scene, "u4", "u4")


def test_a_message_that_nothing_is_sent_of_cannot_be_an_end() -> None:
    history = steps(4)
    history._add("assistant", "response", ({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},))
    for n in range(4, 20):
        history.prompt(f"Step {n}.").use(f"t{n}", "Read", LONG, file_path=f"/srv/m{n}.py")
    scene = history.scene()
    after = applied(scene, Snip().plan_range(scene, "u2", "u3"))

    assert "holds nothing that is sent" in str(refused(after, "u13", "u16"))


# The line in its place


def test_the_line_says_how_much_went_what_was_done_and_how_to_get_it_back() -> None:
    history = History().prompt("Go.").use("a", "Edit", "ok", file_path="/srv/app/a.py", new_string=LONG, old_string="x")
    history.use("b", "Bash", "5 passed", command="cd /srv && pytest -q").use("c", "Read", LONG, file_path="/srv/b.py")
    history.use("d", "Bash", "Exit code 2", command="make", error=True).use("e", "WebSearch", "found", query="q")
    last = history.messages[-1].uuid
    for n in range(10):
        history.prompt("More.").use(f"t{n}", "Read", "x", file_path="/x")
    plan = Snip().plan_range(history.scene(), "u2", last)

    marker = taken(plan).marker
    assert marker.startswith("[10 messages, ")
    assert "removed: edited a.py; read b.py; ran pytest -q (ok), make (exit 2); used WebSearch; " in marker
    page = f"snip-{taken(plan).id[:8]}"
    assert marker.endswith(f"{shown_by(page)}, as does /store/tool-results/compacted-{page}.md]")
    assert "\n" not in marker


def test_a_long_list_is_counted_and_an_unknown_store_is_not_named() -> None:
    scene = steps(30).scene(store_folder="")
    marker = taken(Snip().plan_range(scene, "u2", "u24")).marker

    assert "read m3.py, m4.py, m5.py, m6.py, m7.py and 3 more; foldmark output SESSION snip-" in marker
    assert marker.endswith("]")
    assert "as does" not in marker


# Undo


def test_undo_of_an_unknown_snip_lists_those_that_there_are() -> None:
    scene = steps(20).scene()
    with pytest.raises(IdNotFound, match="no snip has the id 'x'") as caught:
        Snip().undo(scene, "x")
    assert caught.value.hint == "there are none"

    after = applied(scene, Snip().plan_range(scene, "u2", "u3"))
    after = applied(after, Snip().plan_range(after, "u8", "u9"))
    with pytest.raises(IdNotFound, match="2 ids begin with snip") as caught:
        Snip().undo(after, "snip")
    assert caught.value.hint.count("snip-") == 2


def test_a_snip_that_was_written_out_is_not_undone_by_a_decision() -> None:
    scene = steps(20).scene()
    after = applied(scene, Snip().plan_range(scene, "u2", "u3"))
    written = replace(after, messages=after.view().messages)

    with pytest.raises(InputError, match="not in this transcript any more"):
        Snip().undo(written, "snip")


# As a stage


def test_by_itself_the_stage_does_nothing_and_automatic_it_takes_what_pays() -> None:
    history = History().prompt("Go.")
    for n in range(40):
        history.use(f"a{n}", "Read", LONG * 4, file_path=f"/srv/m{n % 4}.py")
    scene = history.prompt("Next.").scene(auto_threshold_tokens=10_000_000)
    automatic = Snip(SnipSettings(automatic=True))
    plan = automatic.plan(scene)

    assert Snip().plan(scene).decisions == ()
    assert plan.decisions
    assert all(isinstance(d, Snipped) for d in plan.decisions)
    assert applied(scene, plan).total_tokens == scene.total_tokens - plan.tokens_freed
    assert automatic.plan(steps(20).scene()).reason == "no range is worth it"


# Properties

_step = st.tuples(st.sampled_from(["prompt", "answer", "use", "pair", "meta", "open"]), st.integers(1, 400))


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    history = History().prompt("The first.")
    for n, (kind, size) in enumerate(draw(st.lists(_step, min_size=8, max_size=30))):
        words = "word " * size
        match kind:
            case "prompt":
                history.prompt(words)
            case "answer":
                history.answer(words, "Hm." if size % 3 else "")
            case "use":
                history.use(f"t{n}", "Read", words, file_path=f"/srv/m{size % 4}.py")
            case "pair":
                history.calls((f"a{n}", "Bash", {"command": "ls"}), (f"b{n}", "Grep", {"pattern": "x"}))
                history.result(f"a{n}", words).result(f"b{n}", "none", error=True)
            case "meta":
                history._add("user", "meta", ({"type": "text", "text": words},))
            case "open":
                history.calls((f"o{n}", "Bash", {"command": "sleep"}))
    history.prompt("Last but one.").prompt("Last.")
    for n in range(PROTECTED_RESPONSES):
        history.answer(f"Done {n}.")
    return history.scene()


def planned(scene: Scene, ends: tuple[int, int]) -> SnipPlan:
    first, last = sorted(end % (len(scene.messages) - 10) for end in ends)
    try:
        return Snip().plan_range(scene, scene.messages[first].uuid, scene.messages[last].uuid)
    except FoldmarkError:
        assume(False)
        raise


ENDS = st.tuples(st.integers(0, 99), st.integers(0, 99))


@given(scenes(), ENDS)
def test_pairs_are_whole_after_any_accepted_range_and_there_is_one_line_with_an_id(
    scene: Scene, ends: tuple[int, int]
) -> None:
    plan = planned(scene, ends)
    before, after = scene.view().messages, applied(scene, plan).view().messages

    assert unpaired(after) <= unpaired(before)
    gone = {m.uuid for m in before} - {m.uuid for m in after}
    (marker,) = [m for m in after if m.uuid == taken(plan).id]
    assert f"snip-{taken(plan).id[:8]}" in block_text(marker.content[0])
    assert gone == {*taken(plan).uuids}
    assert plan.count == len(gone)
    assert plan.tokens_freed > 0
    assert applied(scene, plan).total_tokens <= scene.total_tokens - plan.tokens_freed


@given(scenes(), ENDS)
def test_a_second_run_is_refused_and_undo_gives_the_same_view(scene: Scene, ends: tuple[int, int]) -> None:
    plan = planned(scene, ends)
    after = applied(scene, plan)

    with pytest.raises(InputError, match="already"):
        Snip().plan_range(after, plan.first, plan.last)
    assert sent(applied(after, Snip().undo(after, taken(plan).id))) == sent(scene)


@given(scenes(), st.lists(ENDS, min_size=1, max_size=4))
def test_memory_equals_resume_at_every_prefix_and_no_message_goes_twice(
    scene: Scene, ranges: list[tuple[int, int]]
) -> None:
    decisions: list[Snipped | Nudged] = [Nudged(1, 1, scene.messages[-1].uuid)]
    now = scene
    for ends in ranges:
        first, last = sorted(end % len(scene.messages) for end in ends)
        try:
            plan = Snip().plan_range(now, scene.messages[first].uuid, scene.messages[last].uuid)
        except FoldmarkError:
            continue
        decisions.append(taken(plan))
        now = applied(now, plan)
    for count in range(len(decisions) + 1):
        assert resumed(scene, decisions[:count]).view() == replace(scene, state=fold(decisions[:count])).view()
    covered = [u for s in now.state.snips for u in s.uuids]
    assert len(covered) == len(set(covered))


def unpaired(messages: tuple[Message, ...]) -> set[str]:
    calls = {str(b["id"]) for m in messages for b in tool_uses(m)}
    return calls ^ {str(b["tool_use_id"]) for m in messages for b in tool_results(m)}
