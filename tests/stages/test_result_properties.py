"""What holds for the stages that replace results and media, over histories that grow as sessions do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.context.decisions import Decision, MediaReplaced, Replaced
from core.model import JSON, Block, Message, is_media, tool_results
from core.stages.base import Plan, Scene, Stage, applied
from core.stages.edits import store_bodies
from core.stages.media import Media, MediaSettings
from core.stages.read_dedup import ReadDedup
from core.stages.stand_in import shown_by
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.transcript.blob import media_blob
from core.transcript.store import Store
from core.turn.pipeline import run_until_settled
from tests.disk import stored
from tests.stages.build import STORE, History, image, pairs_are_whole, resumed, sent, text

BUDGET = ToolBudget(ToolBudgetSettings(result_chars=600, results_chars=1_200, preview_bytes=60))
DEDUP = ReadDedup(min_chars=200)

_FILE = "".join(f"{n}\tline {n}\n" for n in range(60))
_CONTENTS: tuple[JSON, ...] = (
    "",
    "short",
    _FILE,
    _FILE + "changed\n",
    "é" * 590,
    "x" * 5_000,
    [],
    [text("y" * 700)],
    [text("y" * 400), text("z" * 500)],
    [image(), text("w" * 800), image(b"other")],
    [image(b"%PDF-1.7", "application/pdf")],
)
_TOOLS: tuple[tuple[str, dict[str, JSON]], ...] = (
    ("Read", {"file_path": "/a.py"}),
    ("Read", {"file_path": "/a.py", "offset": 3}),
    ("Bash", {"command": "make"}),
    ("Edit", {"file_path": "/a.py", "new_string": "x"}),
    ("mcp__db__query", {}),
)

_any_result = st.tuples(st.sampled_from(_TOOLS), st.sampled_from(_CONTENTS), st.booleans())
_the_file = st.just((_TOOLS[0], _FILE, False))
_result = st.one_of(_any_result, _the_file, _any_result)
_calls = st.tuples(st.just("calls"), st.lists(_result, min_size=1, max_size=4), st.sampled_from(["", "", "Hm."]))
_step = st.one_of(
    _calls,
    _calls,
    st.tuples(st.just("prompt"), st.sampled_from(["Go on.", image(), image(b"user")])),
    st.tuples(st.just("answer"), st.sampled_from(["", "Hm."]), st.one_of(st.just(1), st.integers(1, 4_000))),
)
"""What is said; answers of any length, so that what an edit in front of them costs is near what it saves."""
_MEDIA = (Media(), Media(MediaSettings("large")), Media(MediaSettings("large", max_bytes=30)))
_stages = st.one_of(
    st.just([BUDGET, DEDUP]), st.lists(st.sampled_from([BUDGET, DEDUP, *_MEDIA]), min_size=1, max_size=3)
)
_MOST_WORDS = 20_000
"""An answer of so many makes every edit in front of it cost more than it saves."""
_growth = st.lists(st.tuples(_step, _stages, st.booleans()), min_size=1, max_size=7)


def grow(history: History, step: Any) -> None:
    match step:
        case ("prompt", content):
            history.prompt(content)
        case ("answer", thinking, times):
            history.answer("Done. " * times, thinking)
        case ("calls", results, thinking):
            first = len(history.messages)
            calls = [(f"t{first}_{n}", name, given) for n, ((name, given), _, _) in enumerate(results)]
            history.calls(*calls, thinking=thinking)
            for (ident, _, _), (_, content, error) in zip(calls, results, strict=True):
                history.result(ident, content, error)


def in_steps(growth: Sequence[Any]) -> list[tuple[Scene, Stage, Plan]]:
    """The scene before each plan of a session that grows, with all decisions so far."""
    history, scene = History().prompt("First."), None
    out: list[tuple[Scene, Stage, Plan]] = []
    for step, stages, forced in growth:
        grow(history, step)
        state = scene.state if scene else history.scene().state
        scene = history.scene(state=state, forced=forced)
        for stage in stages:
            plan = stage.plan(scene)
            out.append((scene, stage, plan))
            scene = applied(scene, plan)
    return out


def settled(scene: Scene, stage: Stage) -> Scene:
    """The scene after all that a stage has to do; media is no part of the pipeline."""
    plans = [stage.plan(scene)] if stage.name == "media" else run_until_settled(scene, [stage])
    return reduce(applied, plans, scene)


@given(_growth)
def test_pairs_stay_whole_and_nothing_grows(growth: Sequence[Any]) -> None:
    for scene, _, plan in in_steps(growth):
        after = applied(scene, plan)
        assert pairs_are_whole(after.view().messages)
        assert [m.uuid for m in after.view().messages] == [m.uuid for m in scene.view().messages]
        assert plan.tokens_freed >= 0
        if plan.bodies:
            assert plan.tokens_freed == scene.total_tokens - after.total_tokens > 0


@given(_growth)
def test_a_second_run_changes_nothing(growth: Sequence[Any]) -> None:
    for scene, stage, _ in in_steps(growth):
        if stage.name == "media" and not stage.settings.max_bytes:  # type: ignore[attr-defined]
            continue  # the half of what is left is half as much each time
        again = stage.plan(settled(scene, stage))
        assert again.decisions == ()
        assert again.bodies == ()


@given(
    st.lists(_calls, min_size=1, max_size=2),
    _calls,
    st.sampled_from([BUDGET, DEDUP]),
    st.lists(st.integers(0, 80), min_size=1, max_size=4),
)
def test_a_second_run_changes_nothing_where_an_edit_just_does_not_pay(
    old: Sequence[Any], new: Any, stage: Stage, more_words: Sequence[int]
) -> None:
    """What was not sent yet goes in any case, and gets longer where it was empty: that is no reason to leave what is in
    front of it to the next run.
    """

    def scene(words: int) -> Scene:
        history = History().prompt("First.")
        for step in (*old, ("answer", "", words), ("prompt", "Go on."), new):
            grow(history, step)
        return history.scene()

    least = bisect_left(range(_MOST_WORDS), True, key=lambda words: bool(stage.plan(scene(words)).reason))
    for words in more_words:
        found = scene(least + words)
        assert stage.plan(settled(found, stage)).decisions == ()


@given(_growth)
def test_decisions_hold_for_good(growth: Sequence[Any]) -> None:
    texts: dict[str, str] = {}
    seen: frozenset[str] = frozenset()
    for scene, _, plan in in_steps(growth):
        for decision in plan.decisions:
            if isinstance(decision, Replaced):
                assert decision.id not in texts
                assert decision.reason != "budget" or decision.id not in seen
        state = applied(scene, plan).state
        assert texts.items() <= {r.id: r.text for r in state.replaced.values()}.items()
        assert seen <= state.seen
        texts = {r.id: r.text for r in state.replaced.values()}
        seen = state.seen


@given(_growth)
def test_memory_equals_resume_at_every_prefix_of_the_log(growth: Sequence[Any]) -> None:
    log: list[Decision] = []
    for scene, _, plan in in_steps(growth):
        now = scene
        for decision in plan.decisions:
            now = applied(now, Plan("one", (decision,)))
            log.append(decision)
            assert sent(now) == sent(resumed(now, log))


@given(_growth)
def test_what_is_written_out_with_its_decisions_is_sent_the_same(growth: Sequence[Any]) -> None:
    for scene, _, plan in in_steps(growth):
        after = applied(scene, plan)
        assert sent(replace(after, messages=after.view().messages)) == sent(after)


def _results(messages: Sequence[Message]) -> dict[str, JSON]:
    """The content of every result but its images and documents, by its call."""
    found: dict[str, JSON] = {}
    for result in (r for m in messages for r in tool_results(m)):
        content = result["content"]
        without = [item for item in content if not is_media(item)] if isinstance(content, list) else content
        found[str(result["tool_use_id"])] = without
    return found


def _media(scene: Scene) -> dict[str, JSON]:
    """Every image and document, by the id of its body."""
    blocks: list[JSON] = [block for message in scene.messages for block in message.content]
    for result in (r for m in scene.messages for r in tool_results(m)):
        blocks += result["content"] if isinstance(result["content"], list) else []
    return {media_blob(b).id: b for b in blocks if isinstance(b, dict) and is_media(b)}


def _originals(scene: Scene) -> dict[str, JSON]:
    """What may go: results as the model sees them, with the notes of what gave way, and images and documents."""
    return _results(scene.view().messages) | _media(scene)


def _read_back(store: Store, ident: str, original: JSON) -> JSON:
    """A body as what it was before it was stored."""
    body = stored(store, ident)
    assert body is not None
    raw = store.read(body)
    match original:
        case str():
            return raw.decode()
        case {"source": {"media_type": str(kind)}}:
            return image(raw, kind)
        case [{"type": "text"}]:
            return [text(raw.decode())]
    decoded: JSON = msgspec.json.decode(raw)
    return decoded


@settings(max_examples=40)
@given(_growth)
def test_nothing_goes_without_a_body_that_reads_back(
    tmp_path_factory: pytest.TempPathFactory, growth: Sequence[Any]
) -> None:
    store = Store(tmp_path_factory.mktemp("s") / "tool-results")
    for scene, _, plan in in_steps(growth):
        assert store_bodies(store, scene, plan) == plan
        originals = _originals(scene)
        for decision in plan.decisions:
            if isinstance(decision, Replaced) and originals[decision.id] not in ("", [], [text("")]):
                ident = decision.id
                assert shown_by(ident) in decision.text or decision.reason == "unchanged"
            elif isinstance(decision, MediaReplaced):
                ident = decision.body
                assert f"saved at {STORE}/{ident}." in decision.text
            else:
                continue
            assert _read_back(store, ident, originals[ident]) == originals[ident]


def test_an_image_that_gave_way_reads_back_by_its_note_when_the_result_around_it_goes_too(tmp_path: Path) -> None:
    store = Store(tmp_path / "tool-results")
    history = History().prompt("First.").use("t1", "Bash", [image(), text("w" * 800), image(b"other")])
    scene = history.answer("Done.").prompt("Go on.").scene()
    originals = _originals(scene)
    for stage in (Media(), BUDGET):
        plan = stage.plan(scene)
        assert store_bodies(store, scene, plan) == plan
        scene = applied(scene, plan)
    notes = [*scene.state.media["t1"].values()]
    body = stored(store, "t1")
    assert body is not None
    for note in notes:
        assert note.text in sent(scene).decode()
        assert note.text in store.read(body).decode()
        assert _read_back(store, note.body, originals[note.body]) == originals[note.body]
    assert len(notes) == 2


def _holders(scene: Scene) -> dict[str, Block]:
    return {str(r["tool_use_id"]): r for m in scene.view().messages for r in tool_results(m)}


@given(_growth)
def test_a_pointer_leads_to_a_whole_result_in_view(growth: Sequence[Any]) -> None:
    for scene, _, plan in in_steps(growth):
        after = applied(scene, plan)
        holders, before = _holders(after), _results(scene.messages)
        for replaced in after.state.replaced.values():
            if replaced.leans_on and holders[replaced.id]["content"] == replaced.text:
                assert holders[replaced.leans_on]["content"] == before[replaced.id]
