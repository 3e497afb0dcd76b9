"""Which files may hold secrets, by their names."""

from __future__ import annotations

import pytest

from core.redact.paths import may_hold_secrets


@pytest.mark.parametrize(
    "path", [".env", "app/.env.local", "/srv/.ssh/config", "id_rsa", "conf/credentials.json", "a.pem"]
)
def test_names_of_secrets(path: str) -> None:
    assert may_hold_secrets(path)


@pytest.mark.parametrize("path", ["src/token.py", "docs/passwords.md", "environment.py", "keys.go", "README.md"])
def test_names_of_subjects(path: str) -> None:
    assert not may_hold_secrets(path)
