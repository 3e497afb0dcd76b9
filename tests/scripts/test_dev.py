"""The tasks of a clone: the documentation is not built with a link that leads nowhere."""

from __future__ import annotations

import shutil
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
