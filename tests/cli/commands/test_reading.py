"""`foldmark context`, `view`, `output`, `search`, `undo`, `doctor`: the commands that show, and the way back."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cli.main import run
from core.testing import SESSION_ID, Transcript
from core.transcript import backwards, reader
from core.transcript.front import Front

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def made(scratch_home: Path) -> Transcript:
    """A session with all that there is to show."""
    session = Transcript().prompt("Find the needle.").use("Grep", "hay\nthe Needle\nhay\n\x1b[31mred", pattern="needle")
    session.answer("It is on line 2.", thinking="Hm.").beside("custom-title", customTitle="Needles\x1b[2J")
    session.write(scratch_home / ".claude" / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    return session


def text(capsys: Capture, *args: str) -> str:
    assert run(args) == 0
    return capsys.readouterr().out


def document(capsys: Capture, *args: str) -> Any:
    assert run([*args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


# context


@pytest.mark.parametrize("name", ["long.jsonl", SESSION_ID, "folder", "none", "nul\0", "pipe.jsonl", "latest"])
def test_a_long_session_is_read_while_the_program_loads(
    made: Transcript, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for n in range(100):
        made.prompt(f"Question {n}").answer("word " * 50)
    made.write(tmp_path / "long.jsonl")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "latest")
    monkeypatch.chdir(tmp_path)
    alone = (run(["context", name, "--json"]), capsys.readouterr())
    with (
        patch.multiple(backwards, BATCH_BYTES=1_000, TWO_PROCESSES_BYTES=4_000),
        patch.object(reader, "can_fork", lambda: True),
        patch.object(reader, "Front", wraps=Front) as front,
    ):
        assert (run(["context", name, "--json"]), capsys.readouterr()) == alone

    assert front.call_count == (name == "long.jsonl")


def test_context_shows_kinds_tools_and_the_largest_parts(made: Transcript, capsys: Capture) -> None:
    out = text(capsys, "context", SESSION_ID)

    for shown in (
        "Needles",
        "system prompt, tools, memory files",
        "there is room",
        "as the API counted",
        "the next request",
    ):
        assert shown in out
    assert "\x1b" not in out
    largest = out.partition("The largest parts")[2]
    assert re.search(rf"{made.calls[0]} +Grep result ", largest)
    assert re.search(rf"{made.rows[1]['uuid']} +Grep call ", largest)
    assert largest.count(made.calls[0]) == 1
    assert "estimated" not in out
    assert "window assumed" not in out
    shares = [float(line.split()[-1][:-1]) for line in out.splitlines() if line.endswith("%")]
    assert 99 < sum(shares[: out.split("\n\n")[1].count("%")]) < 101


def test_context_has_stable_keys(made: Transcript, capsys: Capture) -> None:
    found = document(capsys, "context", SESSION_ID)

    assert found["session"] == {**found["session"], "id": SESSION_ID, "format": "claude-code"}
    assert {*found["tokens"]} == {"total", "source", "tail", "margin"}
    assert {"window_tokens", "auto_threshold_tokens", "blocking_tokens", "state"} <= {*found["window"]}
    assert {"by_kind", "by_tool", "largest", "messages", "boundaries"} <= {*found}


def test_context_of_a_session_without_usage_is_an_estimate(tmp_path: Path, capsys: Capture) -> None:
    path = Transcript(model="claude-next-9").prompt("Hello").write(tmp_path / "a.jsonl")
    assert "a window assumed for an unknown model: --window sets it" in text(capsys, "context", str(path))
    out = text(capsys, "context", str(path), "--window", "50000")
    assert "estimated, ±" in out
    assert "of 50.0k tokens" in out
    assert "the next request costs" not in out
    empty = tmp_path / "b.jsonl"
    empty.write_bytes(b"")
    assert text(capsys, "context", str(empty)).endswith("\n\nthe session holds no messages\n")


# view


def test_view_prints_the_messages_as_the_model_gets_them(made: Transcript, capsys: Capture) -> None:
    out = text(capsys, "view", SESSION_ID)

    ids = [str(row["uuid"]) for row in made.rows if row["type"] in ("user", "assistant")]
    heads = [line for line in out.splitlines() if line.startswith("──")]
    assert out.startswith(f"── user {ids[0]}\nFind the needle.\n\n── assistant {ids[1]}\n")
    assert [head.split()[1] for head in heads] == ["user", "assistant", "user", "assistant"]
    assert heads[2] == "── user", "results have ids of their own"
    assert text(capsys, "output", SESSION_ID, heads[0].split()[2]) == "Find the needle.\n"
    assert f'[call {made.calls[0]}] Grep {{"pattern": "needle"}}' in out
    assert f"[result of {made.calls[0]}]\nhay\nthe Needle\nhay\n" in out
    assert "Hm.\nIt is on line 2." in out
    assert "\x1b" not in out


def test_view_as_json_is_what_the_api_takes(made: Transcript, capsys: Capture) -> None:
    found = document(capsys, "view", SESSION_ID)

    assert [m["role"] for m in found["messages"]] == ["user", "assistant", "user", "assistant"]
    assert found["messages"][0]["content"] == [{"type": "text", "text": "Find the needle."}]
    assert found["warnings"] == []


def test_view_shows_errors_pictures_and_lists(tmp_path: Path, capsys: Capture) -> None:
    picture: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    session = Transcript().prompt("Look").call("Read", "Bash").result([{"type": "text", "text": "one"}, picture, "odd"])
    session.result(None, session.calls[0], error=True)
    out = text(capsys, "view", str(session.write(tmp_path / "a.jsonl")))
    assert f"[result of {session.calls[1]}]\none\n[image]\n" in out
    assert f"[result of {session.calls[0]}, an error]\n\n" in out


def test_view_depends_on_the_version_of_the_client(tmp_path: Path, capsys: Capture) -> None:
    session = Transcript().prompt("Go").attachment("queued_command", "More", role="user").answer("Done")
    path = str(session.write(tmp_path / "a.jsonl"))
    assert "More" in text(capsys, "view", path)
    assert "More" not in text(capsys, "view", path, "--client", "2.1.197")


def test_view_of_metadata_alone_is_empty_and_damage_is_reported_beside_it(tmp_path: Path, capsys: Capture) -> None:
    assert text(capsys, "view", str(DATA / "cases" / "boundary-6.jsonl")) == ""
    path = tmp_path / "a.jsonl"
    path.write_bytes(Transcript().prompt("One").data() + b'{"type":"user","uuid":"x"')
    assert run(["view", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err != ""
    assert "One" in captured.out


def test_a_file_of_several_conversations_needs_a_pick(capsys: Capture) -> None:
    path = str(DATA / "foreign" / "claude-ai-export" / "conversations.json")
    assert run(["view", path]) == 2
    assert "--pick takes an id, a title or a number" in capsys.readouterr().err
    for command in (["view"], ["context"], ["output"], ["check"], ["compact", "--dry-run"], ["redact", "--check"]):
        assert text(capsys, command[0], path, *command[1:], "--pick", "1") != ""
    assert run(["search", path, "the", "--pick", "1"]) == 0
    assert run(["snip", path, "--suggest", "--pick", "1"]) == 0


@pytest.mark.parametrize(
    "name", ["cases/boundary-6.jsonl", "foreign/codex/sample.jsonl", "foreign/messages-api/request.json"]
)
def test_a_pick_that_picks_nothing_is_refused(name: str, capsys: Capture) -> None:
    path = str(DATA / name)
    assert run(["context", path, "--pick", "1"]) == 0
    assert run(["context", path, "--pick", "abc"]) == 2
    assert f"{path.rpartition('/')[2]} holds one conversation: 'abc' picks none" in capsys.readouterr().err
    assert run(["check", path, str(DATA / "foreign" / "claude-ai-export"), path + "x", "--pick", "1"]) == 2


def test_options_that_would_do_nothing_are_refused(made: Transcript, capsys: Capture) -> None:
    chat = str(DATA / "foreign" / "codex" / "sample.jsonl")
    for args in (
        ["view", SESSION_ID, "--client", "abc"],
        ["view", chat, "--client", "2.1.197"],
        ["output", SESSION_ID, "--grep", "x"],
        ["output", SESSION_ID, "--lines", "5"],
        ["search", SESSION_ID, ""],
        ["check", SESSION_ID, "--out", "somewhere"],
        ["check", SESSION_ID, chat, "--pick", "1"],
        ["redact", SESSION_ID, "--check", "--out", "somewhere"],
        ["snip", SESSION_ID, "--suggest", "--dry-run"],
        ["report", SESSION_ID, "--pick", "1"],
        ["compact", SESSION_ID, "--how", "full", "--force"],
        ["compact", SESSION_ID, "--how", "micro", "--keep", "5k"],
        ["compact", SESSION_ID, "--how", "memory", "--summarizer", "auto"],
        ["compact", SESSION_ID, "--how", "memory", "--batch"],
        ["compact", SESSION_ID, "--model", "claude-haiku-5-5"],
        ["compact", SESSION_ID, "--no-fallback"],
        ["compact", "--all", "--pick", "1"],
        ["memory", "update", SESSION_ID, "--model", "claude-haiku-5-5"],
        ["memory", "refresh", SESSION_ID, "--model", "claude-haiku-5-5"],
        ["memory", "refresh", SESSION_ID, "--max-usd", "1"],
        ["memory", "refresh", SESSION_ID, "--max-tokens", "10k"],
    ):
        assert (run(args), args) == (2, args)
        assert capsys.readouterr().err.startswith("error: ")


def test_a_folder_is_no_session(made: Transcript, capsys: Capture, tmp_path: Path) -> None:
    assert run(["context", str(tmp_path)]) == 2
    shown = capsys.readouterr().err
    assert f"error: {tmp_path} is a folder\n" in shown
    assert f"foldmark sessions {tmp_path}" in shown


def test_an_unknown_format_is_an_error_and_no_empty_view(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n', encoding="utf-8")
    for command in ("view", "context", "output"):
        assert run([command, str(path)]) == 1
        error = capsys.readouterr().err
        assert "error: a.jsonl is no conversation" in error
        assert error.count("a Gemini CLI chat") == 1
        assert run([command, str(path), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["error"]["kind"] == "UnknownFormat"


# colours


@pytest.mark.parametrize(
    ("env", "wanted"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["", "no colour", "dumb"],
)
def test_colours_are_for_terminals_that_want_them(
    made: Transcript, capsys: Capture, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], wanted: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    out = text(capsys, "view", SESSION_ID)
    assert ("\x1b[" in out) is wanted
    assert "the Needle" in out


# output and search


def test_output_lists_ids_and_prints_one(made: Transcript, capsys: Capture) -> None:
    listed = text(capsys, "output", SESSION_ID)
    assert listed.splitlines()[0].split() == ["ID", "WHAT", "WHERE", "CHARS", "BEGINS", "WITH"]
    line = next(line for line in listed.splitlines() if line.startswith(made.calls[0]))
    assert line.split(maxsplit=5)[1:] == ["Grep", "result", "active", "27", "hay the Needle hay  [31mred"]
    assert text(capsys, "output", SESSION_ID, made.calls[0]) == "hay\nthe Needle\nhay\n [31mred\n"
    assert [o["kind"] for o in document(capsys, "output", SESSION_ID)["outputs"]].count("result") == 1
    found = document(capsys, "output", SESSION_ID, made.calls[0])
    assert found["text"].endswith("\x1b[31mred")
    assert (found["kind"], found["name"], found["where"]) == ("result", "Grep", "active")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [("2:2", "the Needle"), ("2:3", "the Needle\nhay"), ("2", "the Needle"), (":1", "hay"), ("3:", "hay\n [31mred")],
)
def test_output_prints_lines(made: Transcript, capsys: Capture, lines: str, expected: str) -> None:
    assert text(capsys, "output", SESSION_ID, made.calls[0], "--lines", lines) == expected + "\n"


def test_output_prints_the_lines_that_match(made: Transcript, capsys: Capture) -> None:
    assert text(capsys, "output", SESSION_ID, made.calls[0], "--grep", "^h") == "1: hay\n3: hay\n"


def test_output_says_when_there_is_nothing_to_print(made: Transcript, capsys: Capture) -> None:
    for args, said in ((["--grep", "straw"], "no line matches"), (["--lines", "9:"], f"{made.calls[0]} has 4 lines")):
        assert run(["output", SESSION_ID, made.calls[0], *args]) == 0
        assert capsys.readouterr() == ("", said + "\n")


def test_output_says_what_is_wrong(made: Transcript, capsys: Capture) -> None:
    assert run(["output", SESSION_ID, "nothing"]) == 2
    assert "error: no text has the id 'nothing'" in capsys.readouterr().err
    assert run(["output", SESSION_ID, made.calls[0], "--lines", "two"]) == 2
    assert run(["output", SESSION_ID, made.calls[0], "--lines", "5:3"]) == 2
    assert run(["output", SESSION_ID, made.calls[0], "--grep", "("]) == 2
    assert run(["search", SESSION_ID, "(", "--regex"]) == 2


def test_an_output_whose_file_is_gone_gives_what_is_left(capsys: Capture) -> None:
    out = text(capsys, "output", str(DATA / "cases" / "persist-1.jsonl"), "toolu_m")
    assert "Preview (first 2KB):" in out
    assert "toolu_m: the stored output toolu_m.txt is gone" in out


def test_search_prints_where_each_line_is(made: Transcript, capsys: Capture) -> None:
    out = text(capsys, "search", SESSION_ID, "NEEDLE")
    assert f"{made.calls[0]}:2 (Grep result, active)  the Needle" in out
    assert len(out.splitlines()) == 3
    assert [h["line"] for h in document(capsys, "search", SESSION_ID, "ne{2}", "--regex")["hits"]] == [1, 2]


def test_search_tells_when_there_is_more_or_nothing(made: Transcript, capsys: Capture) -> None:
    assert run(["search", SESSION_ID, "needle", "--limit", "1"]) == 0
    assert "--limit shows more" in capsys.readouterr().err
    assert run(["search", SESSION_ID, "straw"]) == 0
    assert capsys.readouterr() == ("", "not found\n")


def test_search_and_output_find_what_a_compaction_took_out(
    made: Transcript, scratch_home: Path, capsys: Capture
) -> None:
    made.prompt("More " * 9_000).answer("Done.")
    made.write(scratch_home / ".claude" / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    new = document(capsys, "compact", SESSION_ID, "--keep", "0")["output_id"]
    assert made.calls[0] in {h["id"] for h in document(capsys, "search", new, "the needle")["hits"]}
    assert text(capsys, "output", new, made.calls[0], "--lines", "2:2") == "the Needle\n"


# undo


def test_undo_removes_a_new_session_and_says_so(made: Transcript, scratch_home: Path, capsys: Capture) -> None:
    made.prompt("More " * 9_000).answer("Done.")
    path = made.write(scratch_home / ".claude" / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    result = document(capsys, "compact", SESSION_ID, "--keep", "0")
    out = text(capsys, "undo", result["output_id"])
    assert out == f"removed: {result['output']}\nits source is as it was: {path}\n"
    assert [*path.parent.iterdir()] == [path]

    before = path.read_bytes()
    document(capsys, "compact", SESSION_ID, "--keep", "0", "--in-place")
    assert text(capsys, "undo", SESSION_ID) == f"taken back: compact of {path}\n"
    assert path.read_bytes() == before
    document(capsys, "compact", SESSION_ID, "--keep", "0", "--in-place")
    assert document(capsys, "undo", SESSION_ID) == {
        "path": str(path),
        "op": "compact",
        "removed": False,
        "source_path": str(path),
    }


def test_where_nothing_was_done_there_is_nothing_to_undo(made: Transcript, capsys: Capture) -> None:
    assert run(["undo", SESSION_ID]) == 1
    assert capsys.readouterr().err.endswith("holds nothing that Foldmark wrote\nhint: there is nothing to undo\n")
    assert run(["undo", str(DATA / "foreign" / "messages-api" / "request.json")]) == 1


def test_of_a_session_that_was_left_as_it_is_what_was_made_of_it_is_named(
    made: Transcript, scratch_home: Path, capsys: Capture
) -> None:
    made.prompt("More " * 9_000).answer("Done.")
    made.write(scratch_home / ".claude" / "projects" / "-srv-app" / f"{SESSION_ID}.jsonl")
    result = document(capsys, "compact", SESSION_ID, "--keep", "0")
    assert run(["undo", SESSION_ID]) == 1
    assert capsys.readouterr().err.endswith(f"hint: name what was made of it: {result['output']}\n")


# doctor


def test_doctor_shows_checks_and_settings(made: Transcript, capsys: Capture) -> None:
    out = text(capsys, "doctor")
    assert "✓ transcripts: 1 session in" in out
    assert "keep_tokens" in out
    found = document(capsys, "doctor")
    assert found["ok"] is True
    assert "keep_tokens" in {line["name"] for line in found["settings"]}


def test_doctor_fails_when_something_has_to_be_put_right(
    made: Transcript, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models.json").write_text("{", encoding="utf-8")
    monkeypatch.setenv("FOLDMARK_MODELS_FILE", str(tmp_path / "models.json"))
    assert run(["doctor"]) == 1
    assert "✗ model table: " in capsys.readouterr().out
    assert run(["doctor", "--json"]) == 1


def test_doctor_names_a_server_that_does_not_start_and_writes_nothing_as_a_dash(
    made: Transcript, capsys: Capture, scratch_home: Path
) -> None:
    config = scratch_home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text('{"mcpServers": {"foldmark": {"command": "/gone/python"}}}', encoding="utf-8")
    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert (
        "✗ Cursor: what it starts as foldmark is not there: /gone/python\n  foldmark setup cursor sets it anew" in out
    )
    assert re.search(r"Cursor +registered, does not start", out)
    assert re.search(r"models_file +- ", out)
    assert re.search(r"allowed_roots +- ", out)


def test_doctor_gives_advice(capsys: Capture) -> None:
    out = text(capsys, "doctor")
    assert "· transcripts: " in out
    assert "  set CLAUDE_CONFIG_DIR" in out


def test_doctor_goes_on_where_a_setting_is_wrong(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDMARK_KEEP_TOKENS", "many")

    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "✗ settings: FOLDMARK_KEEP_TOKENS: keep_tokens cannot be 'many'\n" in out
    assert "  allowed: a whole number from 0 to 1,000,000,000, in digits alone, like 60000\n" in out
    assert "summary_tokens" in out
    assert run(["sessions"]) == 2
