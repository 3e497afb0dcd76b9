"""What fills the window."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings

from core.compaction.full import Options
from core.context.tokens.window import Measuring
from core.service.compact import compact
from core.service.context import LARGEST, ContextReport, context_report
from core.service.job import Choices
from core.service.operation import Target
from core.service.session import opened
from core.summarizers.base import Summary, SummaryRequest
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import on_disk
from tests.sessions import transcripts

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"


class Short:
    """A summariser of few words."""

    name = "short"

    def summarize(self, request: SummaryRequest) -> Summary:
        assert request.messages
        return Summary("So far.", self.name)


def report(path: Path, window_tokens: int | None = None) -> ContextReport:
    with opened(session_file(path), measuring=Measuring(window_tokens=window_tokens)) as session:
        return context_report(session)


@settings(max_examples=40)
@given(made=transcripts())
def test_the_parts_are_the_whole(made: Transcript) -> None:
    with on_disk(made) as path:
        found = report(path)

    # what a response holds is shared among its blocks in whole tokens
    assert found.tokens.total - 12 * found.messages <= sum(found.by_kind.values()) <= found.tokens.total
    assert sum(found.by_tool.values()) <= found.by_kind.get("results", 0)
    assert [*found.by_kind.values()] == sorted(found.by_kind.values(), reverse=True)
    assert len(found.largest) <= LARGEST
    assert [p.tokens for p in found.largest] == sorted((p.tokens for p in found.largest), reverse=True)
    assert all(0 < p.share <= 1 for p in found.largest)


def test_a_report_names_tools_and_the_largest_parts(tmp_path: Path) -> None:
    made = (
        Transcript()
        .prompt("Look")
        .use("Read", "text " * 3_000, file_path="a.py")
        .use("Bash", "out " * 500, command="x")
    )
    made.answer("Done.", thinking="Hm. " * 200)
    found = report(made.write(tmp_path / "a.jsonl"))

    assert [*found.by_tool] == ["Read", "Bash"]
    assert (found.largest[0].id, found.largest[0].tool, found.largest[0].kind) == (made.calls[0], "Read", "results")
    assert {"system", "results", "thinking", "tool_use", "prompt", "text"} <= {*found.by_kind}
    assert found.by_kind["system"] == 20_000
    assert (found.tokens.source, found.tokens.tail) == ("usage", 0)
    assert found.window.model == "claude-opus-4-8"
    assert found.window.state == "ok"
    assert found.next_request_usd["cold"] > found.next_request_usd["warm"] > 0  # type: ignore[operator]
    assert found.boundaries == []


def test_a_call_and_its_result_have_ids_of_their_own(tmp_path: Path) -> None:
    made = Transcript().prompt("Write").use("Write", "text " * 900, content="text " * 999)
    call, result = report(made.write(tmp_path / "a.jsonl")).largest[:2]

    assert (call.kind, call.tool, call.id) == ("response", "Write", made.rows[1]["uuid"])
    assert (result.kind, result.tool, result.id) == ("results", "Write", made.calls[0])


def test_results_whose_calls_are_gone_are_of_an_unknown_tool(tmp_path: Path) -> None:
    found = report(Transcript().prompt("Look").result("text", "toolu_none").write(tmp_path / "a.jsonl"))
    assert [*found.by_tool] == ["?"]


def test_results_in_one_message_are_each_charged_to_their_tool(tmp_path: Path) -> None:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": name, "input": {}} for n, name in enumerate(("Read", "Bash"))]
    texts = ("word " * 20_000, "ok")
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text} for n, text in enumerate(texts)]
    roles = (("user", "Look"), ("assistant", calls), ("user", results))
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": [{"role": role, "content": content} for role, content in roles]}))

    found = report(path)

    assert found.by_tool["Read"] > 100 * found.by_tool["Bash"] > 0
    assert sum(found.by_tool.values()) == found.by_kind["results"]


def test_boundaries_are_listed(tmp_path: Path) -> None:
    made = Transcript().prompt("One").answer("1").boundary("So far.").prompt("Two").boundary("Then.").answer("2")
    found = report(made.write(tmp_path / "a.jsonl"))

    assert [b.uuid for b in found.boundaries] == [
        r["uuid"] for r in made.rows if r.get("subtype") == "compact_boundary"
    ]
    assert found.boundaries[0].timestamp == made.rows[2]["timestamp"]
    assert found.boundaries[0].offset < found.boundaries[1].offset


def test_the_window_is_the_models_or_the_one_that_was_set(tmp_path: Path) -> None:
    path = Transcript().prompt("x").answer("y").write(tmp_path / "a.jsonl")
    assert report(path, 50_000).window.window_tokens == 50_000
    assert report(path, 50_000).window.state == "compact"
    assert report(path, 60_000).window.state == "warning"
    assert report(path).window.window_tokens > 50_000
    unknown = report(Transcript(model="claude-next-9").prompt("x").answer("y").write(tmp_path / "b.jsonl"))
    assert (unknown.window.known_model, unknown.window.model) == (False, "claude-next-9")
    assert unknown.window.assumed
    assert not report(path).window.assumed
    assert not report(tmp_path / "b.jsonl", 50_000).window.assumed


def test_of_an_empty_session_nothing_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")
    found = report(path)
    assert (found.messages, found.largest, found.by_tool) == (0, [], {})
    assert (found.tokens.total, found.by_kind, found.window.state) == (0, {}, "ok")


def test_messages_are_counted_as_a_compaction_counts_them(tmp_path: Path) -> None:
    made = Transcript().prompt("Look").respond({"type": "text", "text": "First"}, {"type": "text", "text": "then"})
    path = made.prompt("More").answer("Done").write(tmp_path / "a.jsonl")
    with opened(session_file(path)) as session:
        assert report(path).messages == len(session.messages) == 4
        assert len(session.claude.chain.entries if session.claude else ()) == 5


def test_other_clients_sessions_have_one_too() -> None:
    found = report(FOREIGN / "messages-api" / "request.json")
    assert found.session.format == "messages"
    assert found.messages > 0
    assert found.boundaries == []


@pytest.mark.parametrize("name", ["codex/sample.jsonl", "gemini-json/session-2026-01-10T10-00-0a0a0a0a.json"])
def test_what_is_written_of_another_clients_session_is_measured_as_it_was(tmp_path: Path, name: str) -> None:
    source = Path(shutil.copy(FOREIGN / name, tmp_path))
    result = compact(session_file(source), Short(), Choices(Options(0, 3_000), Target(tmp_path / "locks")))
    written = Path(result.output)

    assert result.tokens_before == report(source).tokens.total
    assert result.tokens_after == report(written).tokens.total < result.tokens_before
    assert report(written).tokens.source == "estimate"

    written.write_text(written.read_text() + "\n")  # now only the messages tell
    assert report(written).tokens.total < result.tokens_after


def test_a_secret_in_the_place_of_a_tools_name_is_not_shown(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    made = Transcript().prompt("Begin.").use(secret, "some lines\n" * 99).answer("Done.")

    found = report(made.write(tmp_path / "s.jsonl"))
    assert [name for name in found.by_tool if name.startswith("[REDACTED:")]
    assert [part.tool for part in found.largest if part.tool.startswith("[REDACTED:")]
    assert secret not in str(found.to_json())
