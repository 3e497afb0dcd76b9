"""The sections of a summary: their headings in the order of reading, and who gets how much room in which order."""

from __future__ import annotations

import re
from dataclasses import dataclass

TITLE = "# Summary of the conversation so far"
SHORT_TITLE = "# Summary (second-hand, "
MARK = re.compile(rf"^(?:{re.escape(TITLE)}$|{re.escape(SHORT_TITLE)})", re.MULTILINE)
"""How our own summary begins, so that the next one can update it."""

NOTHING = "- none"
"""What stands in a section without items."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section: `short` heads it in a small summary; `share` is its part of the room, what it leaves flows down."""

    key: str
    title: str
    short: str
    share: float


SECTIONS = (
    Section("request", "Request and intent", "Request", 0.15),
    Section("rules", "User constraints and stated facts", "Rules", 0.15),
    Section("concepts", "Concepts", "Concepts", 0.04),
    Section("files", "Files and code", "Files", 0.10),
    Section("commands", "Commands", "Commands", 0.08),
    Section("errors", "Errors and fixes", "Errors", 0.10),
    Section("findings", "How problems were solved", "Findings", 0.12),
    Section("messages", "Other user messages", "Said", 0.20),
    Section("tasks", "Open tasks", "Tasks", 0.08),
    Section("work", "Current work", "Work", 0.08),
    Section("next", "Next step", "Next", 0.03),
    Section("names", "Names index", "Names", 0.0),
)
PRIORITY = (
    *("request", "rules", "tasks", "next", "work", "concepts"),
    *("messages", "errors", "findings", "files", "commands"),
)
"""Who is served first; the names index gets what is set aside for it, and all that is left."""

FOUND = "# Found by rule in the conversation"
"""Heads what code appended to a summary that a model wrote; its sections have the short headings."""
LEDGER = "Ledger (mechanical)"
"""Heads what verification appended: what the text before it does not say."""
_LEDGER = re.compile(rf"^## {re.escape(LEDGER)}\n(.*?)(?=^#{{1,2}} |\Z)", re.MULTILINE | re.DOTALL)


def split_ledger(text: str) -> tuple[str, str]:
    """A summary without its ledger, and the lines of that."""
    ledger = "\n".join(part.strip() for part in _LEDGER.findall(text))
    return (_LEDGER.sub("", text).rstrip() if ledger else text), ledger
