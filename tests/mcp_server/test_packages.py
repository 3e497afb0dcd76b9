"""The plugin, the bundle and the registry's entry say the same as the program."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from cli.main import COMMANDS
from core import __version__
from core.model import JSON
from mcp_server.tools import all_tools
from scripts import build_bundle

ROOT = Path(__file__).parents[2]
PLUGIN, BUNDLE = ROOT / "mcp_server" / "plugin", ROOT / "mcp_server" / "bundle"


def read(path: Path) -> dict[str, JSON]:
    value: dict[str, JSON] = json.loads(path.read_text(encoding="utf-8"))
    return value


@pytest.mark.parametrize(
    "path", [PLUGIN / ".claude-plugin" / "plugin.json", BUNDLE / "manifest.json", BUNDLE / "server.json"], ids=str
)
def test_versions_are_those_of_the_program(path: Path) -> None:
    assert read(path)["version"] == __version__


def test_the_registry_names_the_same_version_of_the_package() -> None:
    packages = read(BUNDLE / "server.json")["packages"]

    assert isinstance(packages, list)
    package = packages[0]
    assert isinstance(package, dict)
    assert package["version"] == __version__
    assert len(str(read(BUNDLE / "server.json")["description"])) <= 100  # the registry's limit


def test_what_the_plugin_starts_is_there() -> None:
    hooks = (PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8")
    commands = re.findall(r'"command": "foldmark (\w+)', hooks)
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]

    assert len(commands) == 5
    assert servers == {"foldmark": {"command": "foldmark", "args": ["serve"]}}
    assert {*commands, "serve"} <= {*COMMANDS}


def test_the_page_on_hooks_shows_those_of_the_plugin() -> None:
    page = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")

    assert json.loads(page.split("```json")[1].split("```")[0]) == read(PLUGIN / "hooks" / "hooks.json")


def test_the_skill_names_arguments_that_the_tools_have() -> None:
    said = (PLUGIN / "skills" / "context" / "SKILL.md").read_text(encoding="utf-8")
    schemas = [tool.parameters["properties"] for tool in all_tools()]
    known = {tool.name for tool in all_tools()} | {name for schema in schemas for name in schema}

    assert {*re.findall(r"`(\w+)", said)} <= known | {"foldmark"}


def test_the_bundle_holds_all_that_it_needs_and_is_the_same_every_time(tmp_path: Path) -> None:
    first = build_bundle.build(tmp_path / "a.mcpb").read_bytes()
    assert build_bundle.main([str(tmp_path)]) == 0
    assert (tmp_path / build_bundle.NAME).read_bytes() == first
    with zipfile.ZipFile(tmp_path / "a.mcpb") as bundle:
        names = bundle.namelist()
        manifest = json.loads(bundle.read("manifest.json"))
        icon = bundle.read(manifest["icon"])

    assert {"foldmark.py", "pyproject.toml", "cli/main.py", "core/context/tokens/models.json"} <= {*names}
    assert manifest["server"]["entry_point"] in names
    assert icon[:8] == b"\x89PNG\r\n\x1a\n"
    assert not [name for name in names if "__pycache__" in name]
