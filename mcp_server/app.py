"""The view of a context, for hosts that show HTML beside a conversation."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from core.report.words import KINDS, PARTS, STATES

VIEW_URI = "ui://foldmark/context"
VIEW_META: dict[str, Any] = {"ui": {"resourceUri": VIEW_URI}}
_WORDS = "/* the words of all surfaces */ null"
"""What stands in the page where they go."""


def page() -> str:
    """The page: complete in itself, it loads nothing, and says things as all else does."""
    text = files("mcp_server").joinpath("context.html").read_text(encoding="utf-8")
    return text.replace(_WORDS, json.dumps({"KINDS": KINDS, "PARTS": PARTS, "STATES": STATES}))
