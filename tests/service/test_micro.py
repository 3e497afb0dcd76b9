"""Shortening tool results alone: when a copy is written, and what the result says of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.compaction.full import Options
from core.context.view import api_messages
from core.errors import WriteFailed
from core.model import JSON, Block, block_text, tool_results
from core.service.check import check
from core.service.compact import CompactResult, compact
from core.service.history import output, readable_ids
from core.service.job import Choices
from core.service.operation import Operation, Target
from core.service.session import opened
from core.service.stages import StageResult, StageSettings, run_stages
from core.service.undo import undo
from core.stages.base import Plan, applied
from core.stages.microcompact import TOOLS, Microcompact, MicrocompactSettings
from core.stages.read_dedup import ReadDedup
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.summarizers.extractive import Extractive
from core.testing import Transcript
from core.transcript.projects import session_file
from core.transcript.records import Record
from core.transcript.store import INDEX, Store
from core.transcript.writer import append
from core.turn import pipeline
from tests.disk import messages, tree
from tests.stages.build import History

DATA = Path(__file__).parents[1] / "data"
UNSIGNED: Block = {"type": "thinking", "thinking": "Hm.", "signature": ""}
DEFAULT = StageSettings()
FORCED = StageSettings(forced=True)
SMALL = ToolBudgetSettings(result_chars=5_000)


def shortened(
    path: Path,
    known: StageSettings = DEFAULT,
    budget: ToolBudgetSettings | None = None,
    *,
    in_place: bool = False,
    out_dir: Path | None = None,
) -> CompactResult:
    target = Target(path.parent.parent / "locks", out_dir, in_place)
    options = Options(0, 3_000)
    return compact(
        session_file(path), Extractive(), Choices(options, target, settings=known, how="micro", budget=budget)
    )


def transcripts(folder: Path) -> set[Path]:
    return set(folder.rglob("*.jsonl"))


def test_a_message_without_content_is_no_reason_to_write_a_copy(tmp_path: Path) -> None:
    made = Transcript().prompt("Look").use("Read", "x = 1\n", file_path="a.py").respond(UNSIGNED).prompt("More")
    path = made.use("Read", "y = 2\n", file_path="b.py").respond(UNSIGNED).write(tmp_path / "a.jsonl")
    assert not all(m.content for m in messages(path))

    result = shortened(path)

    assert (result.changed, result.how, result.output) == (False, "none", str(path))
    assert result.loss.reachable == 0
    assert transcripts(tmp_path) == {path}


def test_what_was_written_is_named_also_when_it_saves_nothing(tmp_path: Path) -> None:
    path = Transcript().prompt("Look").use("Bash", "", command="true").write(tmp_path / "a.jsonl")

    result = shortened(path)

    assert (result.changed, result.how) == (True, "micro")
    assert result.tokens_after == result.tokens_before
    assert transcripts(tmp_path) == {path, Path(result.output)}
    assert Path(result.output).stem == result.output_id != path.stem


def test_in_place_the_transcript_itself_is_named(tmp_path: Path) -> None:
    path = (
        Transcript().prompt("Look").use("Read", "x = 1\n", file_path="a.py").answer("Done").write(tmp_path / "a.jsonl")
    )
    before = path.read_bytes()

    result = shortened(path, in_place=True)

    assert (result.changed, result.how, result.output) == (True, "micro", str(path))
    assert path.read_bytes().startswith(before)
    assert not shortened(path, in_place=True).changed


def busy() -> Transcript:
    made = Transcript().prompt("Look")
    for n in range(30):
        made.use("Bash", f"line {n} of code\n" * 700, command=f"cat src/mod{n}.py").answer(f"Read {n}.")
    return made


def test_what_comes_to_something_else_is_another_session(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "a.jsonl")
    cold = StageSettings(now=datetime(2030, 1, 1, tzinfo=UTC))
    asked = [
        (StageSettings(forced=True), None),
        (cold, SMALL),
        (cold, replace(SMALL, preview_bytes=100)),
    ]
    results = [shortened(path, known, budget) for known, budget in asked]

    assert [r.changed for r in results] == [True] * len(asked), results
    assert len({r.output_id for r in results}) == len({Path(r.output).read_bytes() for r in results}) == len(asked)


def test_what_comes_to_the_same_is_the_same_session_wherever_it_is_written(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "a.jsonl")
    cold = StageSettings(now=datetime(2030, 1, 1, tzinfo=UTC))
    first = shortened(path, cold, SMALL)
    again = shortened(path, replace(cold, now=datetime(2031, 1, 1, tzinfo=UTC)), SMALL)
    elsewhere = shortened(path, cold, SMALL, out_dir=tmp_path / "other")

    assert first.changed
    assert (again.changed, again.reason, again.output) == (False, "the same was written before", first.output)
    assert elsewhere.output_id == first.output_id
    assert str(Path(elsewhere.output).with_suffix("")) in Path(elsewhere.output).read_text()
    assert str(Path(first.output).with_suffix("")) not in Path(elsewhere.output).read_text()


# cache-1 and micro-1: what is told of the cache, and what a resume sends


def case(name: str, folder: Path) -> Path:
    return Path(shutil.copy(DATA / "cases" / f"{name}.jsonl", folder / "11111111-1111-4111-8111-111111111111.jsonl"))


def cleared(path: Path, in_place: bool = False) -> StageResult:
    """After a long pause: all but the two newest results that may go."""
    stage = Microcompact(MicrocompactSettings((*TOOLS, "mcp__*"), time_based=True, keep_newest=2))
    known = StageSettings(now=datetime(2026, 1, 5, 12, tzinfo=UTC))
    target = Target(path.parent.parent / "locks", None, in_place)
    return run_stages(session_file(path), "micro", (), lambda run: [stage.plan(run.scene)], target, known)


def placeholders(path: Path | str) -> dict[str, str]:
    """The calls whose results were cleared, and the id that the placeholder of each names."""
    results = {str(b["tool_use_id"]): block_text(b) for m in messages(path) for b in tool_results(m)}
    named = {ident: re.search(r"foldmark output SESSION (\S+), or", text) for ident, text in results.items()}
    return {ident: found[1] for ident, found in named.items() if found}


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(("name", "count"), [("cache-1", 6), ("micro-1", 2)])
def test_one_edit_clears_all_that_may_go_and_a_second_run_none(
    tmp_path: Path, name: str, count: int, in_place: bool
) -> None:
    path = case(name, tmp_path)
    before = messages(path)
    result = cleared(path, in_place)
    after = messages(result.output)

    assert placeholders(result.output) == {ident: ident for ident in placeholders(result.output)}
    assert len(placeholders(result.output)) == count
    assert [m.uuids for m in after] == [m.uuids for m in before]
    assert not cleared(Path(result.output), in_place).changed
    assert messages(result.output) == after
    whole = {str(b["tool_use_id"]): block_text(b) for m in before for b in tool_results(m)}
    with opened(session_file(Path(result.output))) as session:
        for ident in placeholders(result.output):
            assert output(session, ident).text == whole[ident]


def test_a_turn_behind_an_edit_keeps_every_byte_of_what_is_before_it(tmp_path: Path) -> None:
    path = Path(cleared(case("cache-1", tmp_path)).output)
    before = msgspec.json.encode(api_messages(messages(path)))

    made = Transcript("22222222-2222-4222-8222-222222222222")
    made.last = messages(path)[-1].uuids[-1]
    path.write_bytes(path.read_bytes() + made.prompt("And then?").answer("Nothing.").data())

    assert msgspec.json.encode(api_messages(messages(path))).startswith(before[:-1])


def test_the_report_says_how_many_cached_tokens_an_edit_throws_away(tmp_path: Path) -> None:
    result = shortened(busy().write(tmp_path / "a.jsonl"), StageSettings(forced=True))

    (verdict,) = result.verdicts
    assert re.match(r"microcompact: [\d.]+k tokens less, [\d.]+k to cache anew: pays after \d+ requests?$", verdict)


def large_results(folder: Path) -> Path:
    made = Transcript()
    for number in range(8):
        made.prompt(f"Look at {number}").use("Read", f"line {number}\n" * 900, file_path=f"{number}.py").answer("Done")
    return made.write(folder / "projects" / "p" / f"{made.session_id}.jsonl")


def all_gone(path: Path) -> list[str]:
    with opened(session_file(path), whole=True) as session:
        return [f.message for f in check(session).findings if f.kind == "gone-output"]


def test_an_undo_leaves_alone_what_another_operation_is_about_to_lean_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, forget = large_results(tmp_path), Store.forget
    assert shortened(path, FORCED, in_place=True).changed

    def slow(store: Store, files: Collection[str]) -> None:
        monkeypatch.undo()
        second.append(pool.submit(shortened, path, FORCED, in_place=True))
        with suppress(TimeoutError):
            second[0].result(0.5)  # it waits for the transcript
        forget(store, files)

    monkeypatch.setattr(Store, "forget", slow)
    second: list[Future[CompactResult]] = []
    with ThreadPoolExecutor(1) as pool:
        undo(session_file(path), tmp_path / "claude", path.parent.parent / "locks")
    assert second[0].result().changed
    assert all_gone(path) == []
    assert Store.beside(path).files()


@pytest.mark.parametrize("fault", [KeyboardInterrupt, WriteFailed])
def test_in_place_what_is_broken_off_leaves_nothing_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    path = large_results(tmp_path)
    before = tree(path.parent)

    def broken_off(*_: object) -> None:
        assert Store.beside(path).files()
        raise fault("stop")

    monkeypatch.setattr("core.service.operation.append", broken_off)
    with pytest.raises(fault):
        shortened(path, FORCED, in_place=True)
    assert tree(path.parent) == before


def test_in_place_what_was_broken_off_when_it_was_written_keeps_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_results(tmp_path)

    def late(*args: Any) -> None:
        append(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr("core.service.operation.append", late)
    with pytest.raises(KeyboardInterrupt):
        shortened(path, FORCED, in_place=True)
    assert all_gone(path) == []
    assert Store.beside(path).files()


def test_where_the_whole_store_is_gone_it_is_said_and_the_old_rows_are_read(tmp_path: Path) -> None:
    path = large_results(tmp_path)
    result = shortened(path, FORCED, in_place=True)
    files = {*Store.beside(path).files()} - {INDEX}
    shutil.rmtree(path.with_suffix(""))

    assert result.changed
    assert {message.split(":")[0] for message in all_gone(path)} == files
    with opened(session_file(path), whole=True) as session:
        texts = {Path(file).stem: output(session, Path(file).stem).text for file in files}
    assert all(text.startswith("line ") for text in texts.values())


@pytest.mark.parametrize("with_source", [True, False])
def test_of_a_new_session_whose_store_is_gone_the_source_is_read(tmp_path: Path, with_source: bool) -> None:
    source = large_results(tmp_path)
    path = Path(shortened(source, FORCED).output)
    ident = next(Path(file).stem for file in Store.beside(path).files() if file != INDEX)
    shutil.rmtree(path.with_suffix(""))
    if not with_source:
        source.unlink()

    assert any(message.startswith(f"{ident}.txt: ") for message in all_gone(path))
    with opened(session_file(path), whole=True) as session:
        text = output(session, ident).text
        assert (ident in readable_ids(session)) is with_source
    assert text.startswith("line ") if with_source else text.endswith("is gone; this is what is left]")


def test_a_repaired_copy_is_not_asked_for_the_store_of_its_source(tmp_path: Path) -> None:
    path = large_results(tmp_path)
    shortened(path, FORCED, in_place=True)
    with path.open("ab") as file:
        file.write(b"{torn\n")
    with opened(session_file(path), whole=True) as session:
        copy = check(session, tmp_path / "projects" / "p").output
    assert copy
    assert all_gone(Path(copy)) == []


def test_a_block_that_is_taken_back_leaves_what_the_session_was_made_with(tmp_path: Path) -> None:
    path = Path(shortened(large_results(tmp_path), FORCED).output)
    made = tree(path.parent)
    store = Store.beside(path)
    body = next(body for body in store.bodies() if body.kind == "output")
    with opened(session_file(path), whole=True) as session:
        operation = Operation(session, Target(tmp_path / "locks", in_place=True), session.file.id)
        with operation.pending():
            operation.store.put(body.id, store.read(body).decode(), body.name)
            operation.write(Record(op="x", id="x", session_id=path.stem, source=operation.source), b"")
    undo(session_file(path), tmp_path / "claude", tmp_path / "locks")
    assert tree(path.parent) == made


def test_in_place_a_transcript_that_is_gone_may_come_back_and_keeps_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_results(tmp_path)

    def removed(*_: object) -> None:
        path.unlink()
        raise WriteFailed("gone")

    monkeypatch.setattr("core.service.operation.append", removed)
    with pytest.raises(WriteFailed):
        shortened(path, FORCED, in_place=True)
    assert Store.beside(path).files()


@pytest.mark.parametrize("cached", [{}, {"ephemeral_1h_input_tokens": 100}])
@pytest.mark.parametrize("words", range(6_000, 18_000, 2_000))
def test_a_run_on_the_result_expects_what_the_first_did_and_changes_nothing(
    tmp_path: Path, words: int, cached: dict[str, JSON]
) -> None:
    """The rows say how long the shorter requests would have been: those to come grow as those that were charged."""
    made = Transcript().prompt("Begin.").use("mcp__db__query", "z y " * 20_000).answer("Done. " * words)
    made.prompt("Go on.").use("mcp__db__query", "z y " * 60_000).answer("All done.")
    for message in (row["message"] for row in made.rows if row["type"] == "assistant"):
        assert isinstance(message, dict)
        assert isinstance(message["usage"], dict)
        message["usage"] = {**message["usage"], "cache_creation_input_tokens": 100, "cache_creation": cached}
    result = shortened(made.write(tmp_path / f"{made.session_id}.jsonl"))

    assert result.changed
    assert not shortened(Path(result.output)).changed


@pytest.mark.parametrize("builds", range(4, 12))
def test_one_run_does_all_that_two_would_do(builds: int) -> None:
    """What microcompact frees moves the threshold away: then a large old result in front of it is worth its cost."""
    stages = (ToolBudget(), ReadDedup(), Microcompact())
    history = History().prompt("First.").use("q", "mcp__db__query", "z " * 28_000).answer("So.").prompt("Go on.")
    for n in range(builds):
        history.use(f"b{n}", "Bash", f"{n} x y " * 6_000, command=f"make {n}")
    scene = history.answer("Done.").prompt("Go on.").scene()
    once = pipeline.run(scene, stages)[1]
    plans = pipeline.run_until_settled(scene, stages)
    after = applied(scene, Plan("micro", tuple(d for plan in plans for d in plan.decisions)))

    assert all(plan.decisions == () for plan in pipeline.run(after, stages)[1])
    assert sum(plan.tokens_freed for plan in plans) == scene.total_tokens - after.total_tokens
    assert [bool(plan.bodies) for plan in once] == [builds < 9, False, builds >= 5]
    assert [plan.stage for plan in plans[3:]] == ["budget"] * (builds >= 9)
    assert [plan.reason for plan in plans if plan.stage == "budget"] == [""] * (len(plans) - 2)
