"""The view of a context, for hosts that show HTML beside a conversation."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

VIEW_URI = "ui://foldmark/context"
VIEW_META: dict[str, Any] = {"ui": {"resourceUri": VIEW_URI}}


def page() -> str:
    """The page: complete in itself, it loads nothing."""
    return files("mcp_server").joinpath("context.html").read_text(encoding="utf-8")
