"""What is not in this repository: real sessions, and the real client with what runs it.  Tests that need it skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("FOLDMARK_SHARED", ROOT.parent / "shared"))
CLIENTS = Path(os.environ.get("FOLDMARK_CLIENT_HOME", Path.home() / ".cache" / "foldmark-client"))
REAL = sorted((SHARED / "real").glob("claude-*.jsonl"))


def needs_client(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the test where that client cannot be run; else lets its runner find it."""
    if not (CLIENTS / version).is_dir() or not (SHARED / "client" / "ns.sh").is_file():
        pytest.skip("no client is installed (FOLDMARK_CLIENT_HOME, FOLDMARK_SHARED)")
    if os.geteuid() != 0:
        pytest.skip("the client is run in namespaces of its own, which needs root")
    monkeypatch.setenv("FOLDMARK_CLIENT_HOME", str(CLIENTS))
