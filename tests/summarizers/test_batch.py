"""Summaries in batches: asked for together, waited for, gone on with by another run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.api import batches
from core.api.anthropic import Access, AnthropicEndpoint
from core.errors import ApiError, SummaryPending, SummaryRejected
from core.model import JSON
from core.summarizers.base import SummaryRequest
from core.summarizers.batch import POLL_S, BatchSummarizer, Waiting
from core.summarizers.extractive import Extractive
from core.summarizers.fallback import Fallback
from core.summarizers.model import ModelSummarizer
from core.testing import ScriptedApi, answers
from core.testing.api import Reaction, Request
from tests.summarizers.build import answer, said

REQUESTS = [SummaryRequest([said(f"Never push {n}."), answer("Done.")]) for n in range(3)]


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def echo(request: Request) -> answers.Answer:
    """A summary that says which request it is for."""
    number = str(request.body).partition("Never push ")[2][:1]
    return answers.text(f"<summary>About {number}.</summary>")


def summarizer(api: ScriptedApi, folder: Path) -> BatchSummarizer:
    time = Time()
    endpoint = AnthropicEndpoint(Access("key", base_url=api.url), clock=time.clock, sleep=time.sleep)
    return BatchSummarizer(endpoint, ModelSummarizer(endpoint, "claude-haiku-4-5"), folder)


def ask(batch: BatchSummarizer, requests: list[SummaryRequest] = REQUESTS) -> None:
    for request in requests:
        with pytest.raises(SummaryPending):
            batch.summarize(request)


def waiting(deadline_s: float = 600) -> Waiting:
    time = Time()
    return Waiting(time.clock, time.sleep, deadline_s)


def test_all_are_asked_for_in_one_batch_and_each_gets_its_own(tmp_path: Path) -> None:
    with ScriptedApi(echo, batch_polls=3) as api:
        batch = summarizer(api, tmp_path / "b")
        ask(batch)
        assert batch.submit() == 3
        assert batch.wait(waiting())
        texts = [batch.summarize(request).text for request in REQUESTS]
        batch.forget()

    assert all(f"About {n}." in text and f"Never push {n}." in text for n, text in enumerate(texts))
    assert [r.path.rpartition("/")[2] for r in api.requests] == ["batches", *["msgbatch_1"] * 3, "results"]
    assert [*(tmp_path / "b").glob("*.json")] == []


def test_another_run_goes_on_with_what_was_submitted(tmp_path: Path) -> None:
    with ScriptedApi(echo, batch_polls=4) as api:
        first = summarizer(api, tmp_path / "b")
        ask(first, REQUESTS[:2])
        first.submit()
        assert not first.wait(waiting(POLL_S))
        with pytest.raises(SummaryPending):
            first.summarize(REQUESTS[0])

        second = summarizer(api, tmp_path / "b")
        ask(second)
        assert second.submit() == 1  # the third one is new
        assert second.wait(waiting())
        assert all("About" in second.summarize(request).text for request in REQUESTS)

    assert sum(r.path.endswith("batches") for r in api.requests) == 2


def test_what_failed_in_the_batch_failed_for_good(tmp_path: Path) -> None:
    script: list[Reaction] = [
        answers.prompt_too_long(),
        answers.text("no tags"),
        answers.text("<summary>fine</summary>"),
    ]
    with ScriptedApi(script) as api:
        batch = summarizer(api, tmp_path)
        ask(batch)
        batch.submit()
        batch.wait(waiting())
        with pytest.raises(ApiError) as caught:
            batch.summarize(REQUESTS[0])
        with pytest.raises(SummaryRejected):
            batch.summarize(REQUESTS[1])
        rescued = Fallback(batch, Extractive()).summarize(REQUESTS[0])
        assert "fine" in Fallback(batch, Extractive()).summarize(REQUESTS[2]).text

    assert caught.value.kind == "too-long"
    assert rescued.summarizer == "extractive"


def test_a_batch_that_the_api_has_forgotten_is_submitted_again_by_the_next_run(tmp_path: Path) -> None:
    with ScriptedApi(echo) as api:
        lost = summarizer(api, tmp_path)
        ask(lost, REQUESTS[:1])
        lost.submit()
    with ScriptedApi(echo) as api:
        batch = summarizer(api, tmp_path)
        ask(batch, REQUESTS[:1])
        assert batch.submit() == 0
        assert batch.wait(waiting())
        with pytest.raises(ApiError):
            batch.summarize(REQUESTS[0])
        batch.forget()
        again = summarizer(api, tmp_path)
        ask(again, REQUESTS[:1])
        assert again.submit() == 1


def test_a_failure_that_may_pass_ends_the_wait_and_keeps_the_note(tmp_path: Path) -> None:
    with ScriptedApi(echo) as api:
        batch = summarizer(api, tmp_path)
        ask(batch)
        batch.submit()
    with pytest.raises(ApiError) as caught:
        batch.wait(waiting())

    assert caught.value.kind == "network"
    assert len([*tmp_path.glob("*.json")]) == 1


def test_a_damaged_note_is_no_note(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.json")
    with ScriptedApi(echo) as api:
        batch = summarizer(api, tmp_path)
        ask(batch)

        assert batch.submit() == 3


class Canned:
    def __init__(self, answer: JSON) -> None:
        self._answer = answer

    def call(self, method: str, path: str, body: object = None) -> JSON:
        return self._answer


def test_any_results_are_read() -> None:
    one = '{"custom_id":"a","result":{"type":"expired"}}'

    assert isinstance(batches.outcomes(Canned(f"{one}\nnot JSON\n[]\n"), "b")["a"], ApiError)
    assert batches.outcomes(Canned({"custom_id": "a", "result": {"type": "canceled"}}), "b").keys() == {"a"}
    assert batches.outcomes(Canned(None), "b") == {}
    with pytest.raises(ApiError):
        batches.submit(Canned({}), {})


def test_lots_fit_into_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_BYTES", 30)
    bodies: dict[str, dict[str, JSON]] = {str(n): {"x": "y" * 10} for n in range(4)}

    assert [[*lot] for lot in batches.portions(bodies)] == [["0"], ["1"], ["2"], ["3"]]
    monkeypatch.setattr(batches, "MOST_BYTES", 100)
    monkeypatch.setattr(batches, "MOST_REQUESTS", 3)
    assert [[*lot] for lot in batches.portions(bodies)] == [["0", "1", "2"], ["3"]]
    assert [*batches.portions({})] == []
