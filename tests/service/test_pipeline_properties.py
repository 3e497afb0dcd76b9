"""What holds for all stages in their order, written to a session that goes on between one run and the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from core.context.decisions import Decision, Replaced, Seen, Snipped
from core.context.tokens.window import Measuring
from core.context.view import api_messages
from core.model import JSON, Message, block_text, tool_results, tool_uses
from core.service.history import output
from core.service.operation import Target
from core.service.session import opened
from core.service.stages import StageResult, StageRun, StageSettings, run_stages
from core.stages import collapse, snip
from core.stages.base import Plan, Stage, applied
from core.stages.collapse import Collapse
from core.stages.microcompact import TOOLS, Microcompact, MicrocompactSettings
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip, SnipSettings
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.testing import Transcript
from core.transcript.projects import session_file
from core.transcript.records import decisions_of
from core.turn import pipeline
from tests.disk import messages, on_disk, tree

STAGES: tuple[Stage, ...] = (
    ToolBudget(ToolBudgetSettings(result_chars=9_000, results_chars=12_000, preview_bytes=60, exempt=("Read",))),
    ReadDedup(min_chars=200),
    Snip(SnipSettings(automatic=True)),
    Microcompact(MicrocompactSettings((*TOOLS, "mcp__*"), life="5m")),
    Collapse(),
)
MICRO: tuple[Stage, ...] = tuple(s for s in STAGES if isinstance(s, ToolBudget | ReadDedup | Microcompact))
"""What `compact --how micro` runs: none of them takes a message away."""
LATE = datetime(2026, 3, 1, tzinfo=UTC)

_FILE = "".join(f"{n}\tdef step_{n}(value): return value + {n}\n" for n in range(90))
_CONTENTS: dict[str, JSON] = {
    "none": "",
    "ok": "ok",
    "file": _FILE,
    "changed": _FILE + "# changed\n",
    "long": "x y " * 3_000,
    "list": [{"type": "text", "text": _FILE}],
}
_CALL = st.one_of(
    st.just(("Read", "file", 0, False)),
    st.tuples(
        st.sampled_from(("Read", "Bash", "Edit", "mcp__db__query")),
        st.sampled_from([*_CONTENTS]),
        st.integers(0, 2),
        st.booleans(),
    ),
)
_PROSE = "The value goes through the parser, which hands it on to the writer in parts. " * 120
_STEP: st.SearchStrategy[tuple[str, list[Any], str]] = st.one_of(
    st.tuples(st.just("calls"), st.lists(_CALL, min_size=1, max_size=3), st.sampled_from(("", "", "Hm."))),
    st.tuples(st.just("calls"), st.lists(_CALL, min_size=1, max_size=1), st.just("")),
    st.tuples(st.sampled_from(("turn", "talk")), st.just([]), st.sampled_from(("", "Hm."))),
)
RUNS = st.lists(
    st.tuples(st.lists(_STEP, min_size=3, max_size=14), st.booleans(), st.booleans()), min_size=1, max_size=4
)
"""For each run of the stages: what was said since the last, whether it is told to act, and whether in place."""


@contextmanager
def small_tails() -> Iterator[None]:
    """What snips and spans leave alone, in the proportion of such short sessions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snip, "PROTECTED_TOKENS", 1_000)
        patch.setattr(collapse, "RETAINED_TOKENS", 2_000)
        patch.setattr(collapse, "RETAINED_SHARE", 0.0)
        yield


def grow(made: Transcript, steps: Sequence[Any]) -> None:
    made.prompt("Go on.")
    for kind, calls, thinking in steps:
        if kind != "calls":
            made.answer(_PROSE if kind == "talk" else "Done with that.", thinking).prompt("And the next, please.")
            continue
        for name, content, place, error in calls:
            made.call(name, thinking=thinking, file_path=f"/srv/app/mod{place}.py")
            made.result(_CONTENTS[content], error=error)
    made.answer("All done.")


def _with(message: Message, contents: Mapping[str, str]) -> Message:
    content = tuple(
        {**b, "content": contents.get(str(b.get("tool_use_id")), b.get("content"))} if "content" in b else b
        for b in message.content
    )
    return replace(message, content=content)


@dataclass
class Live:
    """A session on disk, and what a program that never stopped would hold of it."""

    made: Transcript
    path: Path
    rows: int = 0
    foreseen: tuple[Message, ...] = ()
    plans: list[list[Plan]] = field(default_factory=list)

    def goes_on(self, steps: Sequence[Any]) -> None:
        """More is said: the rows hang off the last one, which kept its uuid."""
        grow(self.made, steps)
        new = self.made.rows[self.rows :]
        self.path.write_bytes(self.path.read_bytes() + b"".join(msgspec.json.encode(r) + b"\n" for r in new))
        self.rows = len(self.made.rows)

    def shadow(self) -> tuple[Message, ...]:
        """What it would be without any stage."""
        with on_disk(self.made) as path:
            return messages(path)

    def whole(self, found: Sequence[Message]) -> bytes:
        """What is said, with the content of results that point to others, wherever those are now.

        The folder of a new session's store has the name of that session, which what is decided has a part in.
        """
        contents = results(self.shadow())
        pointers = {d.id: contents[d.id] for d in decided(self.path) if isinstance(d, Replaced) and d.leans_on}
        text = said([_with(m, pointers) for m in found])
        return re.sub(rb"/projects/-srv-app/[0-9a-f-]{36}/", b"/store/", text)

    def staged(self, forced: bool, in_place: bool, stages: Sequence[Stage] = STAGES) -> StageResult:
        """The stages have their say."""
        made: list[Plan] = []

        def choose(run: StageRun) -> list[Plan]:
            made[:] = (
                pipeline.run_until_settled(run.scene, stages) if stages is MICRO else pipeline.run(run.scene, stages)[1]
            )
            self.foreseen = applied(run.scene, Plan("all", tuple(d for p in made for d in p.decisions))).view().messages
            return made

        target = Target(self.path.parents[2] / "locks", None, in_place)
        known = StageSettings(forced=forced, now=LATE, measuring=Measuring(window_tokens=60_000))
        result = run_stages(session_file(self.path), "all", (), choose, target, known)
        self.plans.append([*made])
        self.path = Path(result.output)
        return result


@contextmanager
def live() -> Iterator[Live]:
    made = Transcript().prompt("Begin.").answer("Ready.")
    with on_disk(made) as path, small_tails():
        yield Live(made, path, len(made.rows))


def said(found: Sequence[Message]) -> bytes:
    return msgspec.json.encode(api_messages(found))


def decided(path: Path) -> list[Decision]:
    with opened(session_file(path), whole=True) as session:
        assert session.claude
        return [msgspec.json.decode(raw, type=Decision) for raw in decisions_of(session.claude.log)]


def results(found: Sequence[Message]) -> dict[str, str]:
    """The text of each result by its call."""
    return {str(b["tool_use_id"]): block_text(b) for m in found for b in tool_results(m)}


some = settings(max_examples=15, phases=[Phase.explicit, Phase.generate])
"""Without making a failure smaller: it takes minutes, and little of such a session can go."""


@some
@given(RUNS)
def test_a_resume_sees_what_was_foreseen_and_what_is_said_later_behind_it(runs: Sequence[Any]) -> None:
    with live() as session:
        before = said(messages(session.path))
        for steps, forced, in_place in runs:
            session.goes_on(steps)
            grown = said(messages(session.path))
            assert grown.startswith(before[:-1])
            result = session.staged(forced, in_place)
            before = said(messages(session.path))
            assert session.whole(messages(session.path)) == session.whole(session.foreseen)
            if not result.changed:
                assert before == grown


@some
@given(RUNS)
def test_pairs_are_whole_nothing_grows_and_what_is_at_rest_stays_so(runs: Sequence[Any]) -> None:
    """Where a message goes, a result that points into it is whole again, and a read behind it may show the same as one
    before it: the next run may have something to do.  No decision is made twice, so that it comes to an end.
    """
    with live() as session:
        for steps, forced, in_place in runs:
            session.goes_on(steps)
            result = session.staged(forced, in_place)
            assert all(plan.tokens_freed >= 0 for plan in session.plans[-1])
            assert result.tokens_after <= result.tokens_before
            view = messages(session.path)
            assert [*results(view)] == [str(b["id"]) for m in view for b in tool_uses(m)]

            assert any(not session.staged(forced, in_place).changed for _ in range(4))
            files = tree(session.path.parent)
            assert not session.staged(forced, in_place).changed
            assert tree(session.path.parent) == files


@some
@given(RUNS)
def test_a_second_run_of_stages_that_take_no_message_away_changes_nothing(runs: Sequence[Any]) -> None:
    with live() as session:
        for steps, forced, in_place in runs:
            session.goes_on(steps)
            for stages in (MICRO, STAGES, MICRO):
                session.staged(forced, in_place, stages)
                files = tree(session.path.parent)
                assert stages is STAGES or not session.staged(forced, in_place, stages).changed
                assert stages is STAGES or tree(session.path.parent) == files


@some
@given(RUNS)
def test_decisions_are_appended_in_the_order_of_the_stages_dated_and_never_change(runs: Sequence[Any]) -> None:
    with live() as session:
        before: list[Decision] = []
        texts: dict[str, str] = {}
        for steps, forced, in_place in runs:
            session.goes_on(steps)
            responses = sum(m.kind == "response" for m in messages(session.path))
            session.staged(forced, in_place)
            after = decided(session.path)
            assert after[: len(before)] == before
            new, before = after[len(before) :], after
            order = [pipeline.ORDER.index(stage_of(d)) for d in new]
            assert order == sorted(order)
            assert {getattr(d, "at_request", responses) for d in new} <= {responses}

            shown = results(messages(session.path))
            for decision in (d for d in after if isinstance(d, Replaced)):
                assert texts.setdefault(decision.id, decision.text) == decision.text
                if decision.id in shown and decision.reason != "unchanged":
                    assert shown[decision.id] == decision.text


def stage_of(decision: Decision) -> str:
    """The stage that makes such decisions."""
    match decision:
        case Replaced(reason=reason):
            return {"budget": "budget", "unchanged": "read-dedup", "cleared": "microcompact"}[reason]
        case Seen():
            return "budget"
        case Snipped():
            return "snip"
        case _:
            return "collapse"


@some
@given(RUNS)
def test_whatever_is_not_shown_any_more_is_named_by_what_is_and_can_be_read(runs: Sequence[Any]) -> None:
    named = re.compile(r"foldmark output SESSION (\S+), or|((?:snip|span)-[0-9a-f]{8})\b")
    with live() as session:
        for steps, forced, in_place in runs:
            session.goes_on(steps)
            session.staged(forced, in_place)
            view, whole = messages(session.path), results(session.shadow())
            for ident, content in results(view).items():
                assert content == whole[ident] or ident in content or leans_on(content) in whole or not whole[ident]
            with opened(session_file(session.path), whole=True) as found:
                for names in named.findall(said(view).decode()):
                    assert output(found, "".join(names)).text
                for ident, content in whole.items():
                    assert output(found, ident).text == content or not content
                for message in session.shadow():
                    if message.kind == "prompt":
                        assert output(found, message.uuid).text == block_text(message.content[0])


def leans_on(text: str) -> str:
    """The call that a pointer points to."""
    found = re.search(r"the content is in the result of (\S+) above", text)
    return found[1] if found else ""


@some
@given(RUNS)
def test_what_a_pointer_points_to_is_there_and_whole(runs: Sequence[Any]) -> None:
    with live() as session:
        for steps, forced, in_place in runs:
            session.goes_on(steps)
            session.staged(forced, in_place)
            shown, whole = results(messages(session.path)), results(session.shadow())
            pointed = {leans_on(text) for text in shown.values()} - {""}
            assert {ident: shown.get(ident) for ident in pointed} == {ident: whole[ident] for ident in pointed}


def test_in_a_session_that_is_large_enough_every_stage_has_something_to_do() -> None:
    """What holds above holds of something."""
    again = [("Read", "file", 0, False), ("Edit", "ok", 0, False), ("Read", "changed", 0, False)]
    calls = [*again, ("Read", "changed", 0, False), ("mcp__db__query", "long", 1, False), ("Bash", "list", 2, False)]
    steps = [("calls", calls, ""), ("talk", [], "Hm."), ("turn", [], "Hm."), ("talk", [], "")] * 4
    with live() as session:
        for in_place in (True, False, True):
            session.goes_on(steps)
            assert session.staged(True, in_place).changed
        assert {stage_of(d) for d in decided(session.path)} == {*pipeline.ORDER}
