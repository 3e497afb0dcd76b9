"""Stages and the facts they go by take work in proportion to the history."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from core.context import decisions as records
from core.context.decisions import Decision, MediaReplaced, Replaced, Seen, fold
from core.context.rounds import cut_points
from core.stages.base import Stored
from core.stages.edits import Edit, choose
from core.stages.read_dedup import ReadDedup
from core.stages.round_facts import facts_of
from tests.stages.build import History
from tests.work import grows_linearly

LONG = "1\tdef parse(): ...\n" * 60


def failing(count: int) -> Callable[[], object]:
    """Commands that fail and are never mended, between edits that no commit ends."""
    history = History().prompt("Go.")
    for n in range(count):
        history.use(f"f{n}", "Bash", "Exit code 1\nno", error=True, command=f"make part{n}")
        history.use(f"e{n}", "Edit", "done", file_path=f"/srv/a{n}.py", old_string=f"a{n}", new_string=f"b{n}")
        history.use(f"c{n}", "Bash", "ok", command=f"ls dir{n}")
    scene = history.scene()
    messages = scene.messages
    sizes, spans = [1] * len(messages), [*pairwise(cut_points(messages))]
    return lambda: facts_of(scene, messages, sizes, spans)


def reading(count: int) -> Callable[[], object]:
    """Many files that are read, and commands that name none of them."""
    history = History().prompt("Go.")
    for n in range(count):
        history.use(f"r{n}", "Read", LONG, file_path=f"/srv/parser{n}.py")
        history.use(f"b{n}", "Bash", "ok", command=f"run step{n}")
    scene = history.scene()
    view = tuple(scene.messages)
    return lambda: [*ReadDedup()._pairs(scene, view)]


def choosing(count: int) -> Callable[[], object]:
    history = History().prompt("Go.")
    for n in range(count):
        history.use(f"r{n}", "Read", LONG, file_path=f"/srv/parser{n}.py")
    scene = history.scene()
    edits = [
        Edit(at, Replaced(m.uuid, "short", "unchanged"), 100, Stored(m.uuid, "Read", {}))
        for at, m in enumerate(scene.messages)
        if m.kind == "results"
    ]
    return lambda: choose(scene, scene.messages, edits)


@pytest.mark.parametrize("work_of", [failing, reading, choosing])
def test_twice_the_history_is_twice_the_work(work_of: Callable[[int], Callable[[], object]]) -> None:
    assert grows_linearly(work_of, 40)


def test_a_fold_makes_one_state_however_many_decisions_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[records.State] = []

    def counted(*fields: object) -> records.State:
        made.append(state(*fields))  # type: ignore[arg-type]
        return made[-1]

    state = records.State
    decisions: list[Decision] = [Seen((f"t{n}",)) for n in range(20)]
    decisions += [Replaced(f"r{n}", "short", "cleared") for n in range(20)]
    decisions += [MediaReplaced("r1", f"media-{n}", "note") for n in range(20)]
    start = fold(())
    monkeypatch.setattr(records, "State", counted)

    assert len(fold(decisions, start).seen) == 40
    assert len(made) == 1
