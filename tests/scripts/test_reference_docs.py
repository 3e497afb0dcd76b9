"""docs/commands/ and docs/tools/: they say what the code does."""

from __future__ import annotations

import re

from scripts import json_docs, reference_docs


def test_the_pages_are_what_the_script_writes() -> None:
    written = reference_docs.pages()
    there = {path for folder in ("commands", "tools") for path in (reference_docs.DOCS / folder).glob("*.md")}

    assert there == {*written}, "run python -m scripts.reference_docs"
    changed = [path.name for path, text in written.items() if path.read_text(encoding="utf-8") != text]
    assert changed == [], "run python -m scripts.reference_docs"


def test_every_argument_and_key_of_a_tool_is_explained() -> None:
    tables = [
        line
        for path, text in reference_docs.pages().items()
        if path.parent.name == "tools"
        for line in text.splitlines()
    ]

    assert [line for line in tables if line.startswith("| `") and line.endswith("|  |")] == []


def test_every_command_leads_to_the_first_heading_about_its_keys() -> None:
    headings = re.findall(r"^## (foldmark.*)$", json_docs.page(), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    named = {a for text in reference_docs.pages().values() for a in re.findall(r"json\.md#([\w-]+)", text)}

    assert named <= anchors
    assert {"foldmark-compact", "foldmark-memory-show", "foldmark-snip-from-to"} <= named
