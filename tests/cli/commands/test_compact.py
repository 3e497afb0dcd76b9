"""`foldmark compact`."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_config_path

from cli.main import run
from core.memory.files import MemoryFiles, State
from core.memory.notes import Notes, item
from core.testing import SESSION_ID, Transcript
from core.transcript.formats import find_format
from core.transcript.projects import session_file
from tests.disk import messages, tree

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[2] / "data"
OTHER_ID = "22222222-2222-4222-8222-222222222222"


def long_session(session_id: str = SESSION_ID, turns: int = 12, cwd: str = "/srv/app") -> Transcript:
    made = Transcript(session_id, cwd=cwd)
    for turn in range(turns):
        made.prompt(f"Prompt {turn}: look at part {turn}. " * 10)
        made.use("Read", f"line of part {turn}\n" * 400, file_path=f"part{turn}.py").answer(f"Part {turn} is fine.")
    return made


@pytest.fixture
def project(scratch_home: Path) -> Path:
    """A project folder with two sessions, of which one has grown long."""
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    long_session().write(folder / f"{SESSION_ID}.jsonl")
    Transcript(OTHER_ID).prompt("Hello").answer("Hi.").write(folder / f"{OTHER_ID}.jsonl")
    return folder


def compact(capsys: Capture, *args: str, code: int = 0) -> Any:
    """What the command says as JSON: one document, or one for each session."""
    assert run(["compact", *args, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = [json.loads(line) for line in captured.out.splitlines()]
    return lines[0] if len(lines) == 1 else lines


def test_a_person_sees_before_and_after_and_how_to_go_on(project: Path, capsys: Capture) -> None:
    assert run(["compact", SESSION_ID[:4], "--keep", "1000"]) == 0
    out = capsys.readouterr().out

    new = next(path for path in project.glob("*.jsonl") if path.stem not in (SESSION_ID, OTHER_ID))
    assert out.startswith("Prompt 0: look at part 0.")
    assert "before  █" in out
    assert "% saved); " in out
    assert f"written: {new}" in out
    assert f"claude --resume {new.stem}" in out
    assert f"foldmark undo {new.stem}" in out
    assert run(["undo", new.stem]) == 0
    assert {path.stem for path in project.iterdir()} == {SESSION_ID, OTHER_ID}


def test_a_program_gets_one_document(project: Path, capsys: Capture) -> None:
    result = compact(capsys, SESSION_ID, "--keep", "1000")

    assert result["changed"] is True
    assert result["session"]["id"] == SESSION_ID
    assert result["loss"]["gone"] == 0
    assert Path(result["output"]).parent == project
    assert messages(result["output"])[0].kind == "summary"


def test_what_lies_outside_the_clients_folder_is_named_by_its_path(tmp_path: Path, capsys: Capture) -> None:
    path = long_session().write(tmp_path / "my sessions" / "a.jsonl")
    assert run(["compact", str(path)]) == 0
    out = capsys.readouterr().out

    (new,) = set(path.parent.glob("*.jsonl")) - {path}
    assert f"foldmark undo '{new}'" in out
    assert f"claude --resume '{new}'" in out


def test_there_is_nothing_to_do(project: Path, tmp_path: Path, capsys: Capture) -> None:
    before = tree(project)
    assert run(["compact", OTHER_ID]) == 0
    assert re.search(
        r"\AHello\nnothing written: only \d+ tokens are messages, and the newest 20\.0k stay\n", capsys.readouterr().out
    )

    for name, data in (("empty", b""), ("metadata", (DATA / "cases" / "boundary-6.jsonl").read_bytes())):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(data)
        for more in ((), ("--in-place",), ("--keep", "0")):
            result = compact(capsys, str(path), *more)
            assert (result["changed"], result["how"]) == (False, "none")
        assert path.read_bytes() == data
    assert tree(project) == before


def test_without_any_session_it_says_so_but_to_a_timer(scratch_home: Path, capsys: Capture) -> None:
    assert run(["compact", "--all"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("there is no session in ")
    assert "give the path of a transcript" in out
    for silent in (["--if-over", "100k"], ["--json"]):
        assert run(["compact", "--all", *silent]) == 0
        assert capsys.readouterr().out == ""


def test_a_second_run_changes_nothing(project: Path, capsys: Capture) -> None:
    first = compact(capsys, SESSION_ID, "--keep", "500")
    before = tree(project)
    for name in (SESSION_ID, first["output_id"]):
        assert compact(capsys, name, "--keep", "500")["changed"] is False
    assert run(["compact", SESSION_ID, "--keep", "500"]) == 0
    assert capsys.readouterr().out.endswith(
        f"nothing written: the same was written before: {first['output']}\n"
        f"resume with:  claude --resume {first['output_id']}\n"
        f"take back with:  foldmark undo {first['output_id']}\n"
    )
    assert tree(project) == before


def test_in_place_and_back(project: Path, capsys: Capture) -> None:
    path = project / f"{SESSION_ID}.jsonl"
    before = path.read_bytes()
    assert run(["compact", SESSION_ID, "--in-place", "--keep", "500"]) == 0
    assert f"claude --resume {SESSION_ID}" in capsys.readouterr().out
    assert path.read_bytes().startswith(before)
    assert messages(path)[0].kind == "summary"

    assert run(["undo", SESSION_ID]) == 0
    assert path.read_bytes() == before


def test_a_dry_run_writes_nothing_and_shows_what_would_be(project: Path, capsys: Capture, scratch_home: Path) -> None:
    before = tree(scratch_home)
    assert run(["compact", SESSION_ID, "--dry-run", "--in-place"]) == 0
    out = capsys.readouterr().out
    assert f"dry run: would append to {project / SESSION_ID}.jsonl\n" in out
    assert [line.startswith("Prompt 0:") for line in out.splitlines()].count(True) == 1
    assert "\nwritten" not in out
    assert "after " in out
    assert "resume" not in out
    assert tree(scratch_home) == before


def test_many_sessions_are_one_line_each_and_a_total(project: Path, capsys: Capture, scratch_home: Path) -> None:
    third = "33333333-3333-4333-8333-333333333333"
    long_session(third).write(project / f"{third}.jsonl")
    assert run(["compact", str(project), "--keep", "500", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(".jsonl “")[0] for line in lines[:3]] == [SESSION_ID, OTHER_ID, third]
    assert sum("saved), dry run: would write " in line for line in lines) == 2
    assert sum("left alone: only " in line for line in lines) == 1
    assert re.fullmatch(r"3 sessions: \S+ → \S+ tokens \(\d+% saved\) in 2; 1 left alone, 0 failed", lines[3])
    assert len(lines) == 4
    assert run(["compact", str(project), "--keep", "500", "--out", str(scratch_home / "out")]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "resume one with:  claude --resume NAME",
        "take one back with:  foldmark undo NAME",
        "NAME is one of the files written",
    ]
    assert run(["compact", str(project), "--keep", "500"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "NAME is one of the files written, without its folder and .jsonl"
    written = [path for path in project.glob("*.jsonl") if path.stem not in (SESSION_ID, OTHER_ID, third)]
    assert [run(["undo", path.stem]) for path in written] == [0, 0]
    capsys.readouterr()

    results = compact(capsys, str(project), "--keep", "500")
    assert sorted((r["session"]["id"][0], r["changed"]) for r in results) == [("1", True), ("2", False), ("3", True)]


def test_of_many_sessions_the_one_that_was_written_is_named(project: Path, capsys: Capture) -> None:
    assert run(["compact", str(project), "--keep", "500"]) == 0
    [new] = [path.stem for path in project.glob("*.jsonl") if path.stem not in (SESSION_ID, OTHER_ID)]

    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"resume with:  claude --resume {new}",
        f"take back with:  foldmark undo {new}",
    ]


def test_two_jobs_do_the_same_as_one(project: Path, tmp_path: Path, capsys: Capture) -> None:
    long_session("33333333-3333-4333-8333-333333333333").write(project / "33333333-3333-4333-8333-333333333333.jsonl")
    (project / "broken.jsonl").write_text('{"x": 1}\n', encoding="utf-8")
    one = compact(capsys, str(project), "--out", str(tmp_path / "one"), code=1)
    two = compact(capsys, str(project), "--out", str(tmp_path / "two"), "--jobs", "2", code=1)

    assert json.dumps(one).replace("/one/", "/two/") == json.dumps(two)
    assert [*tree(tmp_path / "one")] == [*tree(tmp_path / "two")]


def test_one_that_fails_does_not_end_the_others(project: Path, capsys: Capture) -> None:
    (project / "broken.jsonl").write_text('{"x": 1}\n', encoding="utf-8")
    results = compact(capsys, str(project), code=1)
    failed = [r for r in results if "error" in r]
    assert [(r["session"], r["error"]["kind"]) for r in failed] == [
        ({"path": str(project / "broken.jsonl")}, "UnknownFormat")
    ]
    assert any(r.get("changed") for r in results)

    assert run(["compact", str(project)]) == 1
    captured = capsys.readouterr()
    assert "broken.jsonl: error: broken.jsonl is no conversation" in captured.err
    assert "; hint: It reads " in captured.err  # what to do is said here, too
    assert len(captured.err.splitlines()) == 1
    assert captured.out.splitlines()[-1] == "4 sessions: nothing to do; 3 left alone, 1 failed"
    assert "nothing written: the same was written before" in captured.out


def test_not_even_a_fault_ends_the_others(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, *_: object) -> None:
        raise ZeroDivisionError(name)

    monkeypatch.setattr("core.service.session.find_format", lambda p: fail(p) if p.stem == OTHER_ID else find_format(p))
    results = compact(capsys, str(project), code=1)
    assert ["error" in r for r in results].count(True) == 1
    assert next(r for r in results if "error" in r)["error"]["kind"] == "ZeroDivisionError"


def test_small_and_busy_sessions_are_left_alone(project: Path, capsys: Capture) -> None:
    assert "no more than 900k tokens" in compact(capsys, SESSION_ID, "--if-over", "900k")["reason"]
    assert "a short time ago" in compact(capsys, SESSION_ID, "--idle", "50m")["reason"]
    os.utime(project / f"{SESSION_ID}.jsonl", (0, 0))
    assert compact(capsys, SESSION_ID, "--idle", "2d", "--if-over", "20000")["changed"] is True


def test_a_timer_hears_of_what_was_written_and_of_nothing_else(project: Path, capsys: Capture) -> None:
    args = ["compact", "--all", "--if-over", "21k", "--keep", "500"]
    assert run(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{SESSION_ID}.jsonl “Prompt 0: look at part 0.")
    assert re.fullmatch(r"2 sessions: \S+ → \S+ tokens \(\d+% saved\) in 1; 1 left alone, 0 failed", lines[1])
    assert len(lines) == 4

    assert run(args) == 0
    assert capsys.readouterr().out == ""
    assert run([*args, "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    (project / "broken.jsonl").write_text('{"x": 1}\n', encoding="utf-8")
    assert run(args) == 1
    assert capsys.readouterr().out == "4 sessions: nothing to do; 3 left alone, 1 failed\n"


@pytest.mark.parametrize(
    "args",
    [
        ["compact"],
        ["compact", "no-such-session"],
        ["compact", SESSION_ID, "--in-place", "--out", "x"],
        ["compact", SESSION_ID, "--keep", "-1"],
        ["compact", SESSION_ID, "--idle", "soon"],
        ["compact", SESSION_ID, "--jobs", "0"],
        ["compact", SESSION_ID, "--summarizer", "nobody"],
        ["compact", SESSION_ID, "--how", "partial"],
        ["compact", SESSION_ID, "--how", "full", "--up-to", "x"],
        ["compact", SESSION_ID, "--how", "auto", "--from", "x"],
        ["compact", SESSION_ID, "--up-to", "x", "--from", "y"],
        ["compact", SESSION_ID, "--from", "x", "--keep", "5"],
        ["compact", SESSION_ID, "--from", "x", "--force"],
        ["compact", SESSION_ID, "--how", "micro", "--instructions", "x"],
        ["compact", "-"],
        ["compact", "-", "--in-place"],
    ],
)
def test_wrong_usage_is_exit_code_2(project: Path, capsys: Capture, args: list[str]) -> None:
    before = tree(project)
    assert run(args) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert run([*args, "--json"]) == 2
    assert "error" in json.loads(capsys.readouterr().out)
    assert tree(project) == before


def test_several_sessions_that_answer_to_a_name_are_listed_and_none_is_touched(project: Path, capsys: Capture) -> None:
    Transcript().prompt("Twin").write(project.parent / "-srv-other" / f"{SESSION_ID}.jsonl")
    before = tree(project.parent)
    assert run(["compact", SESSION_ID]) == 2
    err = capsys.readouterr().err
    assert "-srv-app" in err
    assert "-srv-other" in err
    assert tree(project.parent) == before


def test_the_folder_that_a_session_ran_in_may_be_gone(project: Path, capsys: Capture) -> None:
    gone = "33333333-3333-4333-8333-333333333333"
    long_session(gone, cwd="/deleted/folder").write(project.parent / "-deleted-folder" / f"{gone}.jsonl")
    result = compact(capsys, gone[:6])
    assert result["changed"] is True
    assert result["restored"] == []
    assert Path(result["output"]).name == f"{result['output_id']}.jsonl"


def test_unknown_content_is_refused_by_name_and_nothing_is_written(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"hello": "world"}\n', encoding="utf-8")
    assert run(["compact", str(path)]) == 1
    assert "error: chat.jsonl is no conversation of a client that Foldmark knows" in capsys.readouterr().err
    assert [*tree(tmp_path)] == ["chat.jsonl"]


def test_another_clients_file_is_named_when_it_cannot_be_changed_in_place(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "full.jsonl"
    path.write_bytes((DATA / "foreign" / "cases" / "foreign-1.jsonl").read_bytes())
    before = tree(tmp_path)
    assert run(["compact", str(path), "--in-place"]) == 1
    assert "full.jsonl looks like a Codex rollout" in capsys.readouterr().err
    assert tree(tmp_path) == before


def test_another_clients_file_is_not_said_to_be_resumed(tmp_path: Path, capsys: Capture) -> None:
    turns = [{"role": r, "content": f"{r} {n} " * 200} for n in range(30) for r in ("user", "assistant")]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    assert run(["compact", str(path), "--keep", "1000"]) == 0
    out = capsys.readouterr().out
    assert "written: " in out
    assert "claude" not in out

    result = compact(capsys, str(path), "--keep", "1000", "--markdown")
    assert result["output"].endswith(".md")


def test_a_transcript_of_claude_code_becomes_no_markdown(project: Path, capsys: Capture) -> None:
    before = tree(project)
    assert run(["compact", SESSION_ID, "--markdown"]) == 1
    assert f"{SESSION_ID}.jsonl is a Claude Code transcript" in capsys.readouterr().err
    assert tree(project) == before


def test_standard_input_needs_a_folder(
    project: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stdin(io.TextIOWrapper):
        def isatty(self) -> bool:
            return False

    def pipe() -> None:
        monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(long_session().data())))

    pipe()
    assert compact(capsys, "-", "--dry-run")["reason"] == "dry run"
    pipe()
    result = compact(capsys, "-", "--out", str(tmp_path / "out"))
    assert messages(result["output"])[0].kind == "summary"
    # whoever piped it in has it still
    assert run(["undo", result["output"]]) == 0
    assert "its source was standard input" in capsys.readouterr().out
    assert not Path(result["output"]).exists()


def test_files_that_come_back_are_named(project: Path, tmp_path: Path, capsys: Capture) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "part3.py").write_text("x", encoding="utf-8")
    path = long_session(cwd=str(app)).write(tmp_path / "a.jsonl")
    assert run(["compact", str(path), "--keep", "0"]) == 0
    assert "put back: part3.py" not in capsys.readouterr().out  # five newer ones are gone
    (app / "part11.py").write_text("x", encoding="utf-8")
    assert run(["compact", str(path), "--keep", "10"]) == 0
    assert "put back: part11.py" in capsys.readouterr().out


def test_tool_results_alone_can_be_shortened(tmp_path: Path, capsys: Capture) -> None:
    made = Transcript().prompt("Look").use("Bash", "out\n" * 40_000, command="x").answer("Done.")
    path = made.write(tmp_path / "a.jsonl")
    assert run(["compact", str(path), "--how", "micro"]) == 0
    out = capsys.readouterr().out
    assert "all messages stay, large and old tool results are shortened and stored whole" in out
    assert "on the prompt cache: 0 tokens" not in out
    (new,) = set(tmp_path.glob("*.jsonl")) - {path}
    assert len(str(messages(new))) < len(str(messages(path))) / 10


def test_one_part_is_named_by_a_message(project: Path, capsys: Capture) -> None:
    shown = messages(project / f"{SESSION_ID}.jsonl")
    result = compact(capsys, SESSION_ID, "--up-to", shown[24].uuid)
    assert (result["how"], result["loss"]["reachable"]) == ("partial", 24)
    assert run(["compact", SESSION_ID, "--from", shown[24].uuid]) == 0
    assert f"24 messages kept word for word, {len(shown) - 24} summarised and stored" in capsys.readouterr().out
    assert run(["compact", SESSION_ID, "--from", "zzzz"]) == 2
    assert "no message of the active context has the id 'zzzz'" in capsys.readouterr().err


def test_notes_stand_for_what_they_tell_of_unless_somebody_is_to_write_a_summary(
    project: Path, capsys: Capture
) -> None:
    file = session_file(project / f"{SESSION_ID}.jsonl")
    covers = messages(file.path)[-5].uuids[-1]
    files = MemoryFiles.beside(file)
    assert run(["compact", SESSION_ID, "--how", "memory"]) == 1
    assert "the session has no notes" in capsys.readouterr().err
    with files.locked(1):
        notes = Notes(SESSION_ID, 1, covers).with_items("goal", [item("g1-1", "Look at all", "", [covers], 1)])
        files.save(files.read(), notes, [], State())

    assert compact(capsys, SESSION_ID, "--dry-run", "--keep", "500", "--summarizer", "extractive")["how"] == "full"
    assert run(["compact", SESSION_ID, "--keep", "500"]) == 0
    assert re.search(
        r"made from the notes: .* stored \(--how full writes a summary\)$", capsys.readouterr().out, re.MULTILINE
    )


def test_the_users_hooks_are_asked_and_those_of_a_project_are_not(
    project: Path, scratch_home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = user_config_path("foldmark", appauthor=False)
    config.mkdir(parents=True)
    told = scratch_home / "told.json"
    (config / "foldmark.toml").write_text(
        f"session_start = ['echo Pinned: port 8080']\npost_compact = ['cat > {told}', 'exit 3']\n", encoding="utf-8"
    )
    assert run(["compact", SESSION_ID, "--keep", "500"]) == 0
    out = capsys.readouterr().out
    assert "put back: hooks" in out
    assert "note: the PostCompact hook 'exit 3' ended with status 3" in out
    assert json.loads(told.read_text(encoding="utf-8"))["session_id"] == SESSION_ID

    monkeypatch.setenv("FOLDMARK_PRE_COMPACT", "echo Not now >&2; exit 2")
    assert run(["compact", SESSION_ID, "--keep", "400"]) == 1
    assert "a hook forbids the compaction: Not now" in capsys.readouterr().err
    monkeypatch.delenv("FOLDMARK_PRE_COMPACT")

    folder = scratch_home / "work"
    folder.mkdir()
    (folder / "foldmark.toml").write_text("pre_compact = ['touch ran']", encoding="utf-8")
    monkeypatch.chdir(folder)
    assert run(["compact", SESSION_ID, "--keep", "300"]) == 2
    assert "pre_compact cannot be set by a project" in capsys.readouterr().err
    assert not (folder / "ran").exists()


def test_settings_choose_what_the_command_line_does_not(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDMARK_KEEP_TOKENS", "0")
    assert compact(capsys, SESSION_ID, "--dry-run")["loss"]["kept"] == 0
    assert compact(capsys, SESSION_ID, "--dry-run", "--keep", "2000")["loss"]["kept"] > 0


def test_a_folder_that_refuses_is_named(project: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    before = tree(project)
    assert run(["compact", SESSION_ID, "--out", str(tmp_path / "file" / "below")]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err
    assert tree(project) == before


def test_titles_cannot_steer_the_terminal(project: Path, capsys: Capture) -> None:
    made = long_session().beside("custom-title", customTitle="\x1b[2Jgone")
    made.write(project / f"{SESSION_ID}.jsonl")
    assert run(["compact", SESSION_ID]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_all_sessions_of_the_client_can_be_asked_for(scratch_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    for name in ("a", "b"):
        Transcript().prompt("Hello").answer("Yes.").write(folder / f"{name}.jsonl")

    assert run(["compact", "--all"]) == 0
    assert "2 sessions: nothing to do; 2 left alone, 0 failed" in capsys.readouterr().out
    assert run(["compact"]) == 2
    assert run(["compact", "--all", "a"]) == 2
