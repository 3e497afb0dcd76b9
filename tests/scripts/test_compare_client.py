"""The comparison with the real client: its arithmetic, and, where a client is at hand, a few files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.testing import Transcript
from scripts.compare_client import Comparison, differing, main, reason, transcripts
from tests.shared import SHARED, needs_client

FLAT = """
def flat(messages):
    return [(m["role"], "text", b["text"]) for m in messages for b in m["content"]]
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of the shape that the script takes, whose client answers from a file."""
    folder = tmp_path / "shared"
    for name in ("real", "corpus/one/subagents", "client"):
        (folder / name).mkdir(parents=True)
    (folder / "client" / "compare.py").write_text(FLAT, encoding="utf-8")
    runner = folder / "client" / "ns.sh"
    runner.write_text('#!/bin/sh\ncat "$3.answer"\n', encoding="utf-8")
    runner.chmod(0o755)
    return folder


def put(shared: Path, name: str, answer: dict[str, object]) -> Path:
    path = Transcript().prompt("one").answer("about one").write(shared / name)
    Path(f"{path}.answer").write_text(json.dumps(answer), encoding="utf-8")
    return path


def said(*texts: str) -> dict[str, object]:
    roles = ("user", "assistant")
    messages = [{"role": r, "content": [{"text": t}]} for r, t in zip(roles, texts, strict=True)]
    return {"ok": True, "messages": messages}


def run(shared: Path, *more: str) -> int:
    return main(["--shared", str(shared), "--clients", "new", *more])


def test_files_that_say_the_same_are_counted(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(shared, "real/claude-1.jsonl", said("one", "about one"))
    put(shared, "corpus/one/a.jsonl", said("one", "about one"))
    put(shared, "corpus/one/subagents/b.jsonl", said("left", "out"))
    put(shared, "corpus/one/c.jsonl", {"ok": False})

    assert run(shared) == 0
    assert capsys.readouterr().out.startswith("2 pairs: 2 the same, 0 different, 0 of them unexplained")


def test_a_difference_without_a_known_reason_fails_and_is_named(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(shared, "real/claude-1.jsonl", said("one", "something else"))
    put(shared, "real/claude-2.jsonl", said("one", "about one"))

    assert run(shared) == 1
    assert "real/claude-1.jsonl: 2 lines differ: unexplained" in capsys.readouterr().out


def test_answers_are_kept(shared: Path, tmp_path: Path) -> None:
    path = put(shared, "real/claude-1.jsonl", said("one", "about one"))
    cache = tmp_path / "cache"

    assert run(shared, "--cache", str(cache)) == 0
    Path(f"{path}.answer").unlink()
    assert run(shared, "--cache", str(cache)) == 0
    with pytest.raises(SystemExit, match="cannot be run"):
        run(shared)


def test_a_folder_without_the_comparison_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--shared"):
        run(tmp_path)


def test_nothing_compared_is_no_success(shared: Path) -> None:
    assert run(shared, "--only", "nothing has this name") == 1


USE = ["assistant", "use", "toolu_1"]
RESULT = ["user", "result", "toolu_1"]
MORE = ["user", "result", "toolu_2", "y"]


@pytest.mark.parametrize(
    ("client", "name", "ours", "theirs", "reasons"),
    [
        (
            "old",
            "a",
            [[*RESULT, "<tool_reference>"]],
            [[*RESULT, "[Tool references removed - x]"]],
            ["tool-references"],
        ),
        ("new", "a", [[*RESULT, "x"]], [[*RESULT, "x [scrubbed client text, 9 chars]"]], ["folded-reminder"]),
        ("new", "a", [[*USE, "{}"]], [[*USE, '{"a":1}']], ["renewed-input"]),
        ("new", "a", [[*USE, "{}"]], [["assistant", "text", "[Tool use interrupted]"]], ["invented-interruption"]),
        ("old", "a-reversed", [[*USE, "{}"]], [], ["reversed-file"]),
        ("new", "a-reversed", [[*USE, "{}"]], [], ["unexplained"]),
        ("old", "a", [[*RESULT, "x"], MORE], [MORE, [*RESULT, "x"]], ["equal-timestamps"]),
        ("old", "a", [], [["user", "text", "<task-notification> gone"]], ["invented-notification"]),
    ],
)
def test_known_differences_have_a_name(
    client: str, name: str, ours: Sequence[object], theirs: Sequence[object], reasons: list[str]
) -> None:
    comparison = Comparison(client, Path(f"{name}.jsonl"), differing(list(ours), list(theirs)), False)

    assert comparison.reasons == reasons
    assert {reason(comparison, line) for line in comparison.lines} == set(reasons)


@pytest.mark.client
def test_the_view_is_what_the_client_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_client("new", monkeypatch)
    parts = ["plain-chat/", "corpus/thinking/", "V7-old-history"]

    assert len(transcripts(SHARED, parts)) >= 3
    assert main(["--shared", str(SHARED), "--clients", "new", "--only", *parts]) == 0
