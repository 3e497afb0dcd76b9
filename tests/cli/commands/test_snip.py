"""`foldmark snip`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from cli.main import run
from core.service.session import opened
from core.testing import Transcript
from core.transcript.projects import session_file

CASE = Path(__file__).parents[2] / "data" / "cases" / "snip-1.jsonl"
FROM, TO = "00000000-0000-4000-8000-00000000000b", "00000000-0000-4000-8000-000000000016"
BIG = "some words of a file\n" * 700


@pytest.fixture
def path(scratch_home: Path) -> Path:
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    folder.mkdir(parents=True)
    return Path(shutil.copy(CASE, folder / "11111111-1111-4111-8111-111111111111.jsonl"))


def test_a_range_becomes_a_new_session_and_undo_takes_it_back(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snip", str(path), FROM, TO]) == 0

    shown = capsys.readouterr().out
    assert "11 messages, " in shown
    assert f"from {FROM[:-1]}a to {TO[:-1]}7" in shown
    assert "on the prompt cache: " in shown
    resumed = shown.partition("claude --resume ")[2].split()[0]
    assert (path.parent / f"{resumed}.jsonl").exists()
    assert run(["undo", resumed]) == 0
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_dry_run_prints_the_verdict_and_writes_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snip", str(path), FROM, TO, "--dry-run"]) == 0

    shown = capsys.readouterr().out
    assert "tokens less, " in shown
    assert re.search(rf"^dry run: would write {path.parent}/[-0-9a-f]+\.jsonl\n\Z", shown, re.MULTILINE)
    assert len([*path.parent.iterdir()]) == 1


def test_a_program_gets_the_ends_the_count_and_the_place(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert run(["snip", str(path), FROM, TO, "--in-place", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["from_id"][-2:], found["to_id"][-2:], found["messages"]) == ("0a", "17", 11)
    assert found["output"] == str(path)
    assert found["changed"] is True
    assert found["stages"][0]["stage"] == "snip"
    assert path.read_bytes().startswith(before)
    assert run(["undo", str(path)]) == 0
    assert path.read_bytes() == before


def test_a_refusal_says_why_and_what_to_do(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snip", str(path), TO, FROM]) == 1
    assert "hint: give the older end first" in capsys.readouterr().err

    assert run(["snip", str(path), "zzzz", TO]) == 2
    assert "no message of the active context has the id" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args", [[], [FROM], [FROM, TO, "--suggest"], [FROM, TO, "--in-place", "--out", "somewhere"], ["", ""]]
)
def test_half_a_question_is_refused(path: Path, args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snip", str(path), *args]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_suggestions_name_ids_that_snip_takes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Transcript(session_id="22222222-2222-4222-8222-222222222222")
    made.prompt("Go.")
    for n in range(8):
        made.use("Read", BIG, file_path=f"/srv/m{n}.py")
    for n in range(8):
        made.use("Write", "ok", file_path=f"/srv/m{n}.py", content="x")
    made.answer("Done.").prompt("Next.").answer("Yes.").prompt("And next.").answer("Yes.")
    source = made.write(path.parent / "22222222-2222-4222-8222-222222222222.jsonl")
    assert run(["snip", str(source), "--suggest", "--json"]) == 0
    (proposal,) = json.loads(capsys.readouterr().out)["proposals"]
    assert proposal["reasons"] == ["superseded"]

    assert run(["snip", str(source), "--suggest"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["FROM", "TO", "MESSAGES", "TOKENS", "PAYS", "WHY"]
    assert line.split()[:2] == [proposal["from_id"], proposal["to_id"]]
    for end, first in ((proposal["from_id"], "Read toolu_"), (proposal["to_id"], "some words of a file")):
        assert run(["output", str(source), end]) == 0
        assert capsys.readouterr().out.startswith(first)
    assert run(["snip", str(source), proposal["from_id"], proposal["to_id"], "--dry-run"]) == 0
    figures = re.match(r"\d+ messages, (\S+)k tokens: [^\n]*\n(\S+)k → (\S+)k tokens\n", capsys.readouterr().out)
    assert figures is not None
    assert float(figures[1]) == pytest.approx(float(figures[2]) - float(figures[3]), abs=0.11)
    assert run(["snip", str(source), proposal["from_id"], proposal["to_id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == proposal["messages"]


def test_where_there_is_nothing_to_propose_it_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snip", str(path), "--suggest"]) == 0
    assert capsys.readouterr().out.startswith("nothing to propose: ")


def test_of_another_clients_file_no_resume_is_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [{"role": r, "content": f"{r} {n} " * 200} for n in range(30) for r in ("user", "assistant")]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    with opened(session_file(path)) as session:
        first, last = session.messages[3].uuid, session.messages[9].uuid
    assert run(["snip", str(path), first, last]) == 0
    out = capsys.readouterr().out
    assert "claude" not in out
    written = out.partition("foldmark undo ")[2].strip()
    assert run(["undo", written]) == 0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("chat")] == [path.name]
