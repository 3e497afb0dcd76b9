"""`foldmark compact` with a model: through the real SDK, against an API that follows a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.main import run
from core.testing import ScriptedApi, Transcript, answers
from core.testing.answers import Answer, Failure
from core.testing.api import Reaction
from tests.disk import tree

Capture = pytest.CaptureFixture[str]
CASES = Path(__file__).parents[2] / "data" / "cases"
GOOD = answers.text("<summary>\n## Current work\n- The modules were looked at.\n</summary>")
REPLIES = json.loads((CASES / "compactfail-3.replies.json").read_text("utf-8"))


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A session that is longer than what is kept, and ends in a request."""
    made = Transcript()
    for turn in range(12):
        made.prompt(f"Step {turn}: look at module {turn}. " * 10)
        made.use("Read", f"line of part {turn}\n" * 400, file_path=f"m{turn}.py").answer(f"Module {turn} is fine.")
    return made.prompt("Now fix the login bug.").write(tmp_path / "work" / "case.jsonl")


def asked(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, script: Sequence[Reaction], *args: str, code: int = 0
) -> tuple[Any, ScriptedApi]:
    """What the command says as JSON, and what the API was asked."""
    with ScriptedApi(script, batch_polls=0) as api:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        assert run(["compact", "--keep", "1000", "--json", *args]) == code
        captured = capsys.readouterr()
        lines = [json.loads(line) for line in captured.out.splitlines()]
        return (lines[0] if len(lines) == 1 else lines), api


def test_nothing_leaves_the_machine_unless_that_was_asked_for(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    result, api = asked(monkeypatch, capsys, [GOOD], str(case))

    assert result["summarizer"] == "extractive"
    assert api.requests == []


@pytest.mark.parametrize("name", ["anthropic", "auto"])
def test_a_model_writes_the_summary(case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, name: str) -> None:
    args = ("--summarizer", name, "--model", "claude-opus-5")
    result, api = asked(monkeypatch, capsys, [GOOD], str(case), *args)

    assert result["summarizer"] == "anthropic"
    assert "The modules were looked at." in Path(result["output"]).read_text("utf-8")
    assert result["usage"]["output_tokens"] > 0
    [body] = api.bodies
    assert body["model"] == "claude-opus-5"


def test_a_dry_run_asks_no_model(case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    result, api = asked(monkeypatch, capsys, [GOOD], str(case), "--summarizer", "anthropic", "--dry-run")

    assert (result["summarizer"], result["changed"], api.requests) == ("extractive", False, [])
    assert result["warnings"] == ["anthropic is not asked in a dry run: the figures are those of the offline summary"]


@pytest.mark.parametrize(
    ("args", "warnings"),
    [
        (
            ["--summarizer", "anthropic"],
            ["anthropic failed (there is no key for the model API); extractive took over"],
        ),
        (
            ["--summarizer", "anthropic", "--no-fallback"],
            [
                "anthropic is not asked in a dry run: the figures are those of the offline summary",
                "there is no key for the model API: the run would fail",
            ],
        ),
        ([], []),
    ],
    ids=["rescued", "alone", "by-rule"],
)
def test_a_dry_run_says_that_the_key_is_missing(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, args: list[str], warnings: list[str]
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    assert run(["compact", "--keep", "1000", "--json", "--dry-run", str(case), *args]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == warnings


def test_a_dry_run_is_about_the_session_that_the_run_writes(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    args = [str(case), "--summarizer", "anthropic"]
    assert run(["compact", str(case), "--keep", "1000"]) == 0  # by rule, which says nothing of a model's
    capsys.readouterr()
    planned, _ = asked(monkeypatch, capsys, [GOOD], *args, "--dry-run")
    written, _ = asked(monkeypatch, capsys, [GOOD], *args)

    assert (planned["reason"], planned["output_id"]) == ("dry run", written["output_id"])
    assert asked(monkeypatch, capsys, [GOOD], *args, "--dry-run")[0]["reason"] == "the same was written before"


def test_a_request_that_is_too_long_twice_fits_at_last(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    script: list[Reaction] = [answers.prompt_too_long(30_000, 25_000), answers.prompt_too_long(), GOOD]
    result, api = asked(monkeypatch, capsys, script, str(case), "--summarizer", "anthropic")

    assert (result["summarizer"], len(api.bodies)) == ("anthropic", 3)
    assert any("rounds were too much" in remark for remark in result["warnings"])
    assert "Now fix the login bug." in Path(result["output"]).read_text("utf-8").partition("isCompactSummary")[2]


def rubbish(line: str) -> Answer:
    reply = REPLIES[line]
    return Answer(tuple(reply), "tool_use") if isinstance(reply, list) else answers.text(reply)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        *(([rubbish(line)], "not usable") for line in "abcdf"),
        ([answers.prompt_too_long()] * 4, "too long"),
        ([Failure(401, "authentication_error", "invalid x-api-key")], "key"),
    ],
    ids=[*"abcdf", "too long for good", "no access"],
)
def test_what_fails_for_good_leaves_all_bytes_as_they_were(
    case: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    script: list[Reaction],
    said: str,
) -> None:
    before = tree(case.parent)
    result, _ = asked(monkeypatch, capsys, script, str(case), "--summarizer", "anthropic", "--no-fallback", code=1)

    assert said in result["error"]["message"]
    assert result["error"]["hint"]
    assert tree(case.parent) == before


def test_without_that_option_the_offline_summary_takes_over_and_says_so(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    result, _ = asked(monkeypatch, capsys, [answers.prompt_too_long()] * 4, str(case), "--summarizer", "anthropic")

    assert (result["summarizer"], result["changed"]) == ("extractive", True)
    assert "anthropic failed" in result["warnings"][0]


def test_a_summary_that_is_cut_says_so(case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    cut = answers.cut_off(REPLIES["e"]["text"])
    result, _ = asked(monkeypatch, capsys, [cut, cut], str(case), "--summarizer", "anthropic")

    assert any("is cut" in remark for remark in result["warnings"])


def test_many_sessions_in_one_batch(case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    other = case.parent / "other.jsonl"
    other.write_bytes(case.read_bytes().replace(b"login bug", b"logout bug"))
    results, api = asked(monkeypatch, capsys, [GOOD, GOOD], str(case), str(other), "--batch")

    assert [r["summarizer"] for r in results] == ["batch", "batch"]
    assert sum(request.path.endswith("/batches") for request in api.requests) == 1
    assert all("The modules were looked at." in Path(r["output"]).read_text("utf-8") for r in results)


def test_a_batch_that_is_not_taken_is_replaced_by_offline_summaries(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert run(["compact", "--keep", "1000", "--json", str(case), "--batch"]) == 0
    result = json.loads(capsys.readouterr().out)

    assert result["summarizer"] == "extractive"
    assert "there is no key" in result["warnings"][0]


def test_a_batch_that_takes_longer_is_gone_on_with(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from core.summarizers import batch

    monkeypatch.setattr(batch, "POLL_S", 1e9)
    with ScriptedApi([GOOD], batch_polls=2) as api:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        command = ["compact", "--keep", "1000", "--json", str(case), "--batch"]
        assert run(command) == 1
        first = json.loads(capsys.readouterr().out)
        assert run(command) == 0
        second = json.loads(capsys.readouterr().out)

    assert first["error"]["kind"] == "SummaryPending"
    assert second["summarizer"] == "batch"
    assert sum(request.path.endswith("/batches") for request in api.requests) == 1


def test_the_program_is_found_on_the_path(case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    folder = case.parent / "bin"
    folder.mkdir()
    program = folder / "claude"
    said = json.dumps({"type": "result", "subtype": "success", "result": "<summary>By the program.</summary>"})
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\nprint({said!r})\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(folder))
    assert run(["compact", "--keep", "1000", "--json", str(case), "--summarizer", "auto"]) == 0
    result = json.loads(capsys.readouterr().out)

    assert result["summarizer"] == "claude"
    assert "By the program." in Path(result["output"]).read_text("utf-8")


def test_auto_with_nothing_at_hand_is_offline(case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("PATH", str(case.parent))
    assert run(["compact", "--keep", "1000", "--json", str(case), "--summarizer", "auto"]) == 0

    assert json.loads(capsys.readouterr().out)["summarizer"] == "extractive"


@pytest.mark.parametrize(
    "args",
    [
        ["--batch", "--dry-run"],
        ["--batch", "--jobs", "2"],
        ["--batch", "--summarizer", "extractive"],
        ["--how", "micro", "--batch"],
        ["--how", "micro", "--model", "m"],
    ],
)
def test_what_does_not_go_together_is_refused(case: Path, capsys: Capture, args: list[str]) -> None:
    assert run(["compact", str(case), *args]) == 2
    assert "--summarizer" in capsys.readouterr().err or "--batch" in args


def test_sessions_that_need_no_summary_are_not_in_the_batch(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    small = Transcript().prompt("Hello").answer("Hi.").write(case.parent / "small.jsonl")
    results, api = asked(monkeypatch, capsys, [GOOD], str(case), str(small), "--batch")

    assert sorted(r["summarizer"] for r in results) == ["", "batch"]
    assert len(api.requests[0].body["requests"]) == 1  # type: ignore[arg-type]


def test_a_batch_that_cannot_be_looked_at_is_an_error_and_stays(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from core.errors import ApiError
    from core.summarizers.batch import BatchSummarizer

    def broken(*_: object) -> bool:
        raise ApiError("network", "no answer", "try again later")

    monkeypatch.setattr(BatchSummarizer, "wait", broken)
    before = tree(case.parent)
    result, _ = asked(monkeypatch, capsys, [GOOD], str(case), "--batch", code=1)

    assert result["error"]["message"] == "no answer"
    assert tree(case.parent) == before
