"""The size of the next request: exact where it was charged for, and near it where something changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from core.context.decisions import Replaced
from core.model import JSON, Block
from core.turn import measure
from core.turn.events import Decided
from core.turn.journal import Journal
from core.turn.loop import Conversation
from core.turn.measure import Memo
from tests.stages.build import History
from tests.turn.fake import Fake, conversation


def story() -> History:
    made = History().prompt("Go.")
    for number in range(8):
        made.use(f"t{number}", "Bash", f"word {number} " * 500, command="make")
    return made


def step(fake: Fake, _body: Mapping[str, JSON]) -> Sequence[Block] | str:
    number = len(fake.bodies)
    return [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}] if number % 9 else "Done."


def results(calls: Sequence[Block]) -> Sequence[Block]:
    return [{"type": "tool_result", "tool_use_id": c["id"], "content": f"word {c['id']} " * 500} for c in calls]


def worked(folder: Path, factor: float) -> tuple[Conversation, Fake]:
    fake = Fake(step, factor=factor, overhead_tokens=9_000)
    talk = conversation(folder, fake, stages=(), tools=results, keep_tokens=5_000, summary_chars=3_000)
    talk.turn("Go.")
    return talk, fake


FACTORS = pytest.mark.parametrize("factor", [0.8, 1.0, 1.4])


@FACTORS
def test_it_is_what_the_api_counted_and_stays_near_that_when_something_goes(factor: float, tmp_path: Path) -> None:
    talk, fake = worked(tmp_path, factor)
    work = talk.work

    assert work.size().total_tokens == charged_tokens(talk)
    assert work.size().source == "usage"

    work.journal.append(Decided("x", tuple(Replaced(f"t{n}", "gone", "cleared", at_request=9) for n in range(1, 6))))
    assert work.size().total_tokens == pytest.approx(fake.count(work.body()), rel=0.05)
    talk.turn("Then?")
    assert work.size().total_tokens == charged_tokens(talk)


@FACTORS
def test_behind_a_compaction_it_is_near_what_will_be_counted(factor: float, tmp_path: Path) -> None:
    talk, fake = worked(tmp_path, factor)

    talk.compact()

    assert talk.work.size().total_tokens == pytest.approx(fake.count(talk.work.body()), rel=0.05)
    talk.turn("Then?")
    assert talk.work.size().source == "usage"


def charged_tokens(talk: Conversation) -> int:
    usage = talk.work.state.messages[-1].usage
    assert usage is not None
    return usage.total_tokens


def test_without_any_figure_it_is_an_estimate_with_what_is_known_to_be_sent_beside(tmp_path: Path) -> None:
    talk = conversation(tmp_path, Fake(), Journal("s", story().messages), overhead_tokens=1_234)

    assert talk.work.size().source == "estimate"
    assert talk.work.size().overhead_tokens == 1_234
    assert talk.work.scene().total_tokens == talk.work.size().total_tokens


def test_what_is_remembered_has_a_bound_and_is_right_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = conversation(tmp_path, Fake(), Journal("s", story().messages)).work.size()
    monkeypatch.setattr(measure, "_MOST_BLOCKS", 3)

    assert conversation(tmp_path, Fake(), Journal("s", story().messages)).work.size() == whole


def test_projections_are_made_once_and_the_oldest_is_forgotten() -> None:
    memo = Memo()
    scenes = [(tuple(story().messages[:n]), story().scene().state) for n in range(1, 12)]
    first = [memo.view(*scene) for scene in scenes]

    assert memo.view(*scenes[-1]) is first[-1]
    assert memo.view(*scenes[0]) is not first[0]
