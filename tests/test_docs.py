"""Every command in the documentation is one that works."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.main import foldmark, run
from tests.disk import tree

ROOT = Path(__file__).parents[1]
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "mcp_server").rglob("*.md"))]
"""What people wrote; the pages of single commands and tools are made from the code."""
SESSION_ID = "6f0d4a52-1f0e-4e0b-9a35-3d0f6a1c7b11"
SHELLS = ("", "sh", "console")
WAITS = {"serve", "hook", "ask"}
"""Commands that wait for somebody, or for a model: only their arguments are looked at."""


def commands() -> Iterator[str]:
    for path in WRITTEN:
        if path.parent.name in ("commands", "tools", "decisions") and path.is_relative_to(ROOT / "docs"):
            continue
        language: str | None = None  # of the block that a line is in
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                language = None if language is not None else line[3:]
            text = line.removeprefix("$ ").split("  #")[0].strip()
            if language in SHELLS and re.match(r"foldmark( |\Z)", text):
                yield text


FOUND = [*dict.fromkeys(commands())]


@pytest.fixture
def project(scratch_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the sample session, and the folder that it was held in."""
    folder = tmp_path / "shop"
    folder.mkdir()
    home = scratch_home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    home.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "session.jsonl", home / f"{SESSION_ID}.jsonl")
    shutil.copy(ROOT / "examples" / "session.jsonl", folder / "session.jsonl")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("text", FOUND)
def test_a_documented_command_works(text: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = shlex.split(text)[1:]
    if not args:
        assert run([]) == 0
        return
    if args[0] in WAITS:
        group = click.Context(foldmark, info_name="foldmark")
        command = foldmark.get_command(group, args[0])
        assert command is not None
        assert command.make_context(args[0], args[1:], parent=group).command is command
        return
    if args[0] == "setup":
        args.append("--yes")
    if args[0] == "undo":
        assert run(["compact", "latest"]) == 0
    if args[0] == "compact" and "memory" in args:
        assert run(["memory", "update", "latest"]) == 0
    assert run(args) == 0, capsys.readouterr().err


def test_there_are_some() -> None:
    assert len(FOUND) > 5


def test_the_readmes_first_commands_work_one_after_the_other(project: Path, scratch_home: Path) -> None:
    use = (ROOT / "README.md").read_text(encoding="utf-8").split("## Use")[1].split("```")[1]
    lines = [shlex.split(line, comments=True) for line in use.splitlines() if line.startswith("foldmark")]
    before = tree(scratch_home / ".claude")

    for line in lines:
        assert run(line[1:]) == 0, line
        if line[1:2] == ["compact"]:
            made = tree(scratch_home / ".claude")
            assert made != before
            assert run(line[1:]) == 0
            assert tree(scratch_home / ".claude") == made, "what was just made is not compacted again"
            assert run(["report", "latest"]) == 0

    assert lines[-1][1:] == ["undo", "latest"]
    assert tree(scratch_home / ".claude") == before


MEASURES = sorted({*re.findall(r"`python -m ([\w.]+)`", (ROOT / "docs" / "measurements.md").read_text("utf-8"))})


@pytest.mark.parametrize("module", MEASURES)
def test_a_measurement_says_what_it_takes(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert module.rpartition(".")[2] in done.stdout
