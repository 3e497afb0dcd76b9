"""The tasks of a clone: the documentation is not built with a link that leads nowhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import dev


@pytest.mark.parametrize(("link", "code"), [("#here", 0), ("#gone", 1)])
def test_a_broken_link_fails(link: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scripts", "docs"):
        (tmp_path / name).mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Here\n\nLook [there]({link}).\n", encoding="utf-8")
    shutil.copy(dev.ROOT / "scripts" / "mkdocs.yml", tmp_path / "scripts")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(dev, "prepare", lambda _: None)

    assert dev.docs([]) == code


@pytest.mark.parametrize(("args", "code"), [(["--help"], 0), (["-h"], 0), ([], 2), (["tests"], 2)])
def test_the_tasks_are_listed(args: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.main(args) == code
    assert "dev.py demo" in capsys.readouterr().out


@pytest.mark.parametrize(("extra", "said"), [("", "setting up .venv"), ("[dev]", "adding what tests")])
def test_what_is_installed_is_said(
    extra: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(dev, "quiet", lambda _command, _failure: None)

    dev.prepare(extra)
    assert capsys.readouterr().err.startswith(said)
    dev.prepare(extra)
    assert capsys.readouterr().err == "", "once"


def test_an_interrupt_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os, signal\nos.chdir = lambda _: signal.raise_signal(2)\n")
    command = [sys.executable, dev.__file__, "check"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
