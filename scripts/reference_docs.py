"""Writes a page for every command and every tool of the server, from the code that answers.

    python -m scripts.reference_docs

A test fails as long as docs/commands/ and docs/tools/ are not what this writes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from mcp_types import Tool

from cli.main import COMMANDS, foldmark
from core.settings import load
from mcp_server.config import Config
from mcp_server.server import make_server
from mcp_server.tools import all_tools
from mcp_server.tools.base import answer_of
from scripts import json_docs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WIDTH = 100
_HEAD = "<!-- written by scripts/reference_docs.py -->"
_HINTS = {
    "read_only_hint": ("reads only", "writes"),
    "destructive_hint": ("may take something away, which undo gives back", "takes nothing away"),
    "idempotent_hint": ("a second call changes nothing more", "each call counts"),
    "open_world_hint": ("may talk to a model", "stays on this machine"),
}


def pages() -> dict[Path, str]:
    """Every page, by the file that holds it."""
    commands = {DOCS / "commands" / f"{name}.md": _command(name) for name in COMMANDS}
    known = _tools()
    tools = {DOCS / "tools" / f"{tool.name}.md": _tool(tool) for tool in known}
    return {**commands, **tools, **_lists(known)}


def _lists(tools: list[Tool]) -> dict[Path, str]:
    rows = [f"* [{name}]({name}.md): {text}" for name, (_, text) in COMMANDS.items()]
    names = [f"* [{tool.name}]({tool.name}.md): {tool.description}" for tool in tools]
    return {
        DOCS / "commands" / "index.md": "\n".join(["# Commands", "", _HEAD, "", *rows, ""]),
        DOCS / "tools" / "index.md": "\n".join(["# Tools of the server", "", _HEAD, "", *names, ""]),
    }


def _command(name: str) -> str:
    group = click.Context(foldmark, info_name="foldmark", **foldmark.context_settings)
    command = foldmark.get_command(group, name)
    assert command is not None  # the table names what there is
    context = click.Context(command, group, name, max_content_width=WIDTH, terminal_width=WIDTH)
    parts = _subcommands(command, context) if isinstance(command, click.Group) else []
    texts = [f"```text\n{c.get_help()}\n```\n" for c in (context, *parts)]
    more = f"With `--json` it prints [these keys](../json.md#{_anchor(name)}).\n"
    takes_json = any(p.name == "as_json" for c in (command, *(p.command for p in parts)) for p in c.params)
    return "\n".join([f"# foldmark {name}", "", _HEAD, "", *texts, *([more] if takes_json else [])])


def _anchor(name: str) -> str:
    """The first heading about a command in docs/json.md, as MkDocs makes links of headings."""
    heading = next((text for text in json_docs.COMMANDS if text.split()[:1] == [name]), name)
    return f"foldmark-{heading}".lower().replace(" ", "-")


def _subcommands(group: click.Group, context: click.Context) -> list[click.Context]:
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [
        click.Context(command, context, name, max_content_width=WIDTH, terminal_width=WIDTH)
        for name, command in found
        if command
    ]


def _tools() -> list[Tool]:
    settings = load({}, home=ROOT / "build", project_dir=ROOT / "build", user_dir=ROOT / "build")
    server = make_server(Config(settings, ROOT / "build", ROOT / "build"))
    return asyncio.run(server.list_tools())


def _tool(tool: Tool) -> str:
    hints = tool.annotations.model_dump() if tool.annotations else {}
    said = "; ".join(words[0] if hints[name] else words[1] for name, words in _HINTS.items() if name in hints)
    given = _table("argument", tool.input_schema)
    back = _table("key", tool.output_schema, _meanings(tool.name)) if tool.output_schema else []
    answer = ["## What comes back", "", *back, ""] if back else []
    head = [f"# {tool.name}", "", _HEAD, "", tool.description or "", "", f"It {said}.", ""]
    return "\n".join([*head, "## Arguments", "", *given, "", *answer])


def _meanings(name: str) -> dict[str, str]:
    """What the keys of a tool's answer mean: it is annotated with the result."""
    answer = answer_of(next(tool.fn for tool in all_tools() if tool.name == name))
    return json_docs.meanings(answer) if answer else {}


def _table(head: str, schema: Mapping[str, Any], meanings: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    rows = [
        f"| `{name}` | {_type(field, schema)} | {_line(field.get('description', '') or meanings.get(name, ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return [f"| {head} | type | meaning |", "| --- | --- | --- |", *rows] if rows else ["None."]


def _type(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Say what a value is, and what it is when it is left out."""
    if "anyOf" in field:
        kinds = [_type(each, schema) for each in field["anyOf"]]
        named = " or ".join(k for k in kinds if k != "null")
    elif "$ref" in field:
        named = _type(schema["$defs"][field["$ref"].rpartition("/")[2]], schema)
    elif "enum" in field:
        named = ", ".join(f"`{value}`" for value in field["enum"])
    elif field.get("type") == "array":
        named = f"list of {_type(field.get('items', {}), schema)}"
    else:
        named = str(field.get("const", field.get("type", "anything")))
    default = field.get("default")
    return f"{named}; else `{default}`" if default not in (None, "", False, []) else named


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write all pages; those of what is not there any more go."""
    written = pages()
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for folder in ("commands", "tools"):
        for path in {*(DOCS / folder).glob("*.md")} - {*written}:
            path.unlink()
    return 0


if __name__ == "__main__":
    os.environ["NO_COLOR"] = "1"
    sys.exit(main())
