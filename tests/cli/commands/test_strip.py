"""`foldmark strip`."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from pathlib import Path

import pytest

from cli.main import run
from core.model import JSON
from core.testing import Transcript
from tests.stages.build import PNG

CASE = Path(__file__).parents[2] / "data" / "cases" / "image-1.jsonl"


@pytest.fixture
def path(scratch_home: Path) -> Path:
    folder = scratch_home / ".claude" / "projects" / "-srv-app"
    folder.mkdir(parents=True)
    return Path(shutil.copy(CASE, folder / "11111111-1111-4111-8111-111111111111.jsonl"))


def test_without_a_choice_all_are_listed_and_nothing_is_written(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["strip", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 26
    assert lines[4].split() == ["toolu_i3", "image/png", "unreadable", "9", "B", "/w/3.png"]
    assert lines[5].split()[2] == "1x1"

    assert run(["strip", str(path), "--json"]) == 0
    assert [m["unreadable"] for m in json.loads(capsys.readouterr().out)["media"]].index(True) == 3
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("chosen", ["--bad", "toolu_i3"])
def test_the_bad_one_goes_and_the_session_can_be_resumed_and_taken_back(
    path: Path, capsys: pytest.CaptureFixture[str], chosen: str
) -> None:
    assert run(["strip", str(path), chosen]) == 0
    out = capsys.readouterr().out
    assert "toolu_i3" in out
    assert "toolu_i4" not in out
    resumed = out.partition("claude --resume ")[2].split()[0]
    assert (path.parent / f"{resumed}.jsonl").exists()

    assert run(["undo", resumed]) == 0
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_where_nothing_is_to_be_done_that_is_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["strip", str(path), "--all", "--in-place", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["changed"], len(done["media"]), done["op"]) == (True, 25, "strip")

    assert run(["strip", str(path), "--old"]) == 0
    assert capsys.readouterr().out == "nothing written: there are no images or documents\n"
    assert run(["strip", str(path)]) == 0
    assert capsys.readouterr().out == "no images or documents\n"


def test_where_none_is_bad_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source: JSON = {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()}
    made = Transcript().prompt("Look").answer("I see").prompt("And").answer("Yes")
    made.rows[0]["message"] = {"role": "user", "content": [{"type": "image", "source": source}]}
    path = made.write(tmp_path / "a.jsonl")

    assert run(["strip", str(path), "--bad"]) == 0
    assert capsys.readouterr().out == "nothing written: the API takes all images and documents\n"
    assert run(["strip", str(path), "--all", "--dry-run", "--in-place"]) == 0
    assert capsys.readouterr().out.endswith(f"dry run: would append to {path}\n")


def test_pages_of_a_document_are_counted_and_what_has_no_extent_has_none(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pdf: JSON = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjcgL1R5cGUgL1BhZ2U="}
    link: JSON = {"type": "url", "url": "https://example.org/a.png"}
    made = Transcript().prompt("x").answer("ok")
    made.rows[0]["message"] = {
        "role": "user",
        "content": [{"type": "document", "source": pdf}, {"type": "image", "source": link}],
    }
    assert run(["strip", str(made.write(path.parent / "b.jsonl"))]) == 0

    _, first, second = capsys.readouterr().out.splitlines()
    assert "1 page" in first
    assert second.split()[1:4:2] == ["url", "B"]


@pytest.mark.parametrize(
    "wrong",
    [("toolu_i3", "--bad"), ("--bad", "--in-place", "--out", "x"), ("--dry-run",), ("--out", "x"), ("--in-place",)],
)
def test_what_makes_no_sense_together_is_refused(
    path: Path, capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...]
) -> None:
    assert run(["strip", str(path), *wrong]) == 2
    assert "error: " in capsys.readouterr().err
