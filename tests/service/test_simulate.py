"""A session replayed under policies, as the command reports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.context.tokens.window import Measuring
from core.errors import InputError
from core.service.session import opened
from core.service.simulate import Simulation, SimulationOptions, simulate
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.shared import REAL

DATA = Path(__file__).parents[1] / "data"


def simulated(path: Path, window_tokens: int | None = None, **options: Any) -> Simulation:
    with opened(session_file(path), whole=True, measuring=Measuring(window_tokens=window_tokens)) as session:
        return simulate(session, SimulationOptions(**options))


def by_policy(report: Simulation) -> dict[str, Any]:
    return {r.policy: r for r in report.results}


def test_compactions_of_the_client_are_ignored_and_counted_as_what_it_did() -> None:
    report = simulated(DATA / "cases" / "thrash-1.jsonl")

    found = by_policy(report)
    assert (found["none"].compactions, found["client"].compactions) == (0, 3)
    assert report.requests == found["client"].requests
    assert [*found][:: len(found) - 1] == ["none", "client"]
    assert found["none"].change == 0.0


def test_figures_of_an_unknown_model_are_in_tokens_only() -> None:
    found = by_policy(simulated(DATA / "cases" / "cache-1.jsonl"))["none"]

    assert found.usd is None
    assert found.input_equivalents > 0
    assert (
        found.usage.cache_read_tokens + found.usage.cache_creation_tokens + found.usage.input_tokens > found.peak_tokens
    )


def test_model_cache_and_what_is_read_again_can_be_chosen() -> None:
    report = simulated(
        DATA / "cases" / "cache-1.jsonl", model_id="claude-opus-5-5", life="1h", reread_tokens=(0, 40_000), repeats=2
    )

    assert (report.model, report.cache_life, report.repeats) == ("claude-opus-5-5", "1h", 2)
    assert {r.reread_tokens for r in report.results} == {0, 40_000}
    once = simulated(DATA / "cases" / "cache-1.jsonl")
    assert report.requests == 2 * once.requests
    assert "client" in by_policy(once)
    assert "client" not in by_policy(report)  # what it was charged is of two sessions, not of one twice as long
    cost = by_policy(report)["none"].usd
    assert cost is not None
    assert by_policy(report)["none"].input_equivalents == pytest.approx(cost / 4 * 1e6, abs=15)


def test_a_small_window_makes_it_compact_and_what_is_read_again_costs(tmp_path: Path) -> None:
    made = Transcript().prompt("Read them all.")
    for n in range(8):
        made.use("Read", "line of a file\n" * 1_600, file_path=f"{n}.py")
    path = made.answer("Done.").write(tmp_path / "a.jsonl")

    report = simulated(path, window_tokens=90_000, reread_tokens=(0, 10_000))

    none = [r for r in report.results if r.policy == "none"]
    assert report.auto_threshold_tokens == 57_000
    assert none[0].compactions > 0
    assert none[0].input_equivalents < none[1].input_equivalents


def test_other_formats_are_replayed_as_they_stand() -> None:
    paths = sorted((DATA / "foreign" / "codex").glob("*.jsonl"))
    with_responses = [p for p in paths if _responses(p)]

    report = simulated(with_responses[0])

    assert report.session.format == "codex"
    assert report.requests > 0


def _responses(path: Path) -> int:
    with opened(session_file(path), whole=True) as session:
        return sum(m.kind == "response" for m in session.messages)


def test_a_session_without_usage_has_no_row_of_what_the_client_did(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}\n'
        '{"type":"assistant","uuid":"a","parentUuid":"u","message":{"role":"assistant","id":"m","content":"ho"}}\n',
        encoding="utf-8",
    )

    assert "client" not in by_policy(simulated(path))


def test_without_a_response_there_is_nothing_to_replay(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"user","uuid":"u","message":{"role":"user","content":"hi"}}\n', encoding="utf-8")

    with pytest.raises(InputError, match="holds no response"):
        simulated(path)


def test_each_policy_is_named_before_it_is_replayed() -> None:
    steps: list[str] = []

    with opened(session_file(DATA / "cases" / "cache-1.jsonl"), whole=True) as session:
        report = simulate(session, SimulationOptions(), step=steps.append)

    assert steps == [r.policy for r in report.results if r.policy != "client"]


@pytest.mark.real
@pytest.mark.skipif(not REAL, reason="no real transcripts at hand")
def test_a_real_session_is_replayed_at_the_cost_that_the_client_paid() -> None:
    path = next(p for p in REAL if "auto-and-manual" in p.name)

    found = by_policy(simulated(path))

    assert found["client"].usd == pytest.approx(found["none"].usd, rel=0.05)
    assert found["microcompact"].usd < found["none"].usd
