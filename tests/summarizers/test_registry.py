"""Which summariser a name stands for, with and without what it needs."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from core.api.endpoint import Endpoint
from core.errors import ApiError, SettingsError
from core.settings import Settings
from core.summarizers import AUTO, SUMMARIZERS, SUMMARY_MODEL, Resources, make
from core.summarizers.base import SummaryRequest
from core.summarizers.fallback import Fallback, repairer_of
from core.testing import ScriptedApi, answers
from tests.summarizers.build import answer, said
from tests.summarizers.test_model import endpoint

REQUEST = SummaryRequest([said("Fix it."), answer("Done.")])
GOOD = "<summary>It is fixed.</summary>"


def never() -> Endpoint:
    raise AssertionError("nobody asked for it")


@pytest.mark.parametrize("name", SUMMARIZERS)
def test_a_summariser_has_the_name_it_is_known_by(name: str) -> None:
    with ScriptedApi([]) as api:
        there = lambda: endpoint(api)  # noqa: E731

        assert make(name, Resources(there, there)).name == name
    assert make(name, Resources(fallback=False)).name == name
    assert make(name).name == "extractive"  # what it writes is the same, whichever was chosen


def test_each_can_be_set() -> None:
    assert {*get_args(get_type_hints(Settings)["summarizer"])} == {AUTO, *SUMMARIZERS}


def test_auto_is_the_best_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedApi([]) as api:
        there = lambda: endpoint(api)  # noqa: E731

        assert make(AUTO).name == "extractive"
        assert make(AUTO, Resources(program=there)).name == "claude"
        assert make(AUTO, Resources(there, program=never)).name == "anthropic"


def test_another_name_is_an_error() -> None:
    with pytest.raises(SettingsError) as caught:
        make("nobody")

    assert "anthropic" in caught.value.hint


@pytest.mark.parametrize("name", ["anthropic", "claude", "api"])
def test_without_what_it_needs_the_offline_one_takes_over(name: str) -> None:
    summary = make(name).summarize(REQUEST)

    assert summary.summarizer == "extractive"
    assert f"{name} failed (there is no" in summary.remarks[0]


@pytest.mark.parametrize("name", ["anthropic", "claude", "api"])
def test_without_a_fallback_that_is_an_error(name: str) -> None:
    summarizer = make(name, Resources(fallback=False))

    assert not isinstance(summarizer, Fallback)
    with pytest.raises(ApiError) as caught:
        summarizer.summarize(REQUEST)
    assert caught.value.kind == "auth"
    assert caught.value.hint


def test_the_model_is_the_cheapest_unless_another_is_named() -> None:
    with ScriptedApi([answers.text(GOOD)] * 2) as api:
        make("anthropic", Resources(lambda: endpoint(api))).summarize(REQUEST)
        make("anthropic", Resources(lambda: endpoint(api), model="claude-opus-5")).summarize(REQUEST)

    assert [body["model"] for body in api.bodies] == [SUMMARY_MODEL, "claude-opus-5"]


def test_a_model_mends_its_own_summary_also_behind_a_fallback() -> None:
    assert repairer_of(make("extractive")) is None
    assert repairer_of(make("api")) is None
    assert repairer_of(make("anthropic", Resources(fallback=False))) is not None
    with ScriptedApi([]) as api:
        assert repairer_of(make("claude", Resources(program=lambda: endpoint(api)))) is not None


def test_what_is_not_there_counts_nothing_either() -> None:
    missing = make("api", Resources(fallback=False))

    with pytest.raises(ApiError):
        missing._endpoint.count({})  # type: ignore[attr-defined]
