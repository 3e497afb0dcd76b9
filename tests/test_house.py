"""The house: imports point down only, the documents say what is true."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import fields

import core.errors
from cli.errors import WORDS
from cli.main import COMMANDS, run
from core.settings import KEYS, Settings

ROOT = Path(__file__).parents[1]
SOURCES = [path for package in ("core", "cli", "mcp_server") for path in sorted((ROOT / package).rglob("*.py"))]

LAYERS = (
    ("core.model", "core.times", "core.defaults", "core.environment"),
    ("core.errors",),
    ("core.redact", "core.layers", "core.ids", "core.results"),
    ("core.transcript", "core.settings", "core.facts"),
    ("core.context",),
    ("core.api", "core.attachments", "core.hosts"),
    ("core.summarizers", "core.testing"),
    ("core.stages",),
    ("core.memory",),
    ("core.compaction",),
    ("core.turn", "core.report"),
    ("core.service",),
    ("cli", "mcp_server"),
)
"""From the ground up: a module imports from its own part and from those below, not from its neighbours."""


def part_of(module: str) -> tuple[int, str]:
    """Give the height and the name of the part that a module is in; the package itself holds but its version."""
    if module in ("core", "core.__init__"):
        return -1, "core"
    for height, parts in enumerate(LAYERS):
        for part in parts:
            if module == part or module.startswith(part + "."):
                return height, part
    pytest.fail(f"{module} has no place in LAYERS")


def imports_of(path: Path) -> list[str]:
    """List what a file imports, anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_down_only(path: Path) -> None:
    own = part_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in imports_of(path):
        if name.split(".")[0] in ("core", "cli", "mcp_server"):
            other = part_of(name)
            assert other[0] < own[0] or other == own, f"{path} imports {name}"


def test_pydantic_is_for_the_server_alone() -> None:
    """To load it and to build models with it would take each command a tenth of a second."""
    users = [path for path in SOURCES if any(name.split(".")[0] == "pydantic" for name in imports_of(path))]

    assert users
    assert [path for path in users if not path.is_relative_to(ROOT / "mcp_server")] == []


def test_the_core_prints_nothing_and_looks_at_no_environment_or_home() -> None:
    forbidden = re.compile(r"\bos\.environ|\bos\.getenv|Path\.home\(|expanduser\(|\bprint\(")
    core = [path for path in SOURCES if path.is_relative_to(ROOT / "core")]

    assert [path for path in core if forbidden.search(path.read_text(encoding="utf-8"))] == []


def test_every_error_of_foldmark_stands_in_the_tree() -> None:
    """What is raised to another module is one of `core.errors`, and drawn there."""
    drawn = re.findall(r"^[ |]*\+- (\w+)", core.errors.__doc__ or "", re.MULTILINE)
    tree = [n for n, kind in vars(core.errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]

    assert {"FoldmarkError", *drawn} == {*tree}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and path.name != "errors.py" and not node.name.startswith("_"):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                assert not bases & {"Exception", *tree}, f"{path}: {node.name}"


def test_hints_name_ways_that_the_command_line_has_words_for() -> None:
    """A way stands in braces; only what is no hint may hold a command itself."""
    commands = re.compile(rf"\bfoldmark (?:{'|'.join(COMMANDS)})\b|(?<!\S)--[a-z]")
    for path in (path for path in SOURCES if path.is_relative_to(ROOT / "core")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for raised in (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc):
            texts = [n.value for n in ast.walk(raised) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            for text in texts:
                assert {*re.findall(r"\{(\w+)\}", text)} <= {*WORDS}, f"{path}: {text}"
                assert not commands.search(text), f"{path}: {text}"


def test_modules_are_short() -> None:
    assert [path for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []


def test_the_readme_begins_with_two_commands_and_ci_runs_the_tests_the_same_way() -> None:
    block = re.search(r"```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    commands = block[1].splitlines()

    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_readme_names_every_command_in_the_same_order() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `(\w+)", text, re.MULTILINE) == [*COMMANDS]


def test_what_the_readme_shows_is_what_the_demo_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    sample = str(ROOT / "examples" / "session.jsonl")
    for part, args in zip(
        shown[1].split("\n\n"), (["context", sample], ["compact", sample, "--out", str(tmp_path)]), strict=False
    ):
        assert run(args) == 0
        printed = dict(map(_without_sizes, capsys.readouterr().out.splitlines()))
        for line, sizes in map(_without_sizes, part.splitlines()[1:]):
            assert line == "..." or printed[line] == pytest.approx(sizes, rel=0.02)


def _without_sizes(line: str) -> tuple[str, list[float]]:
    """A line, and the sizes in it: stand-ins hold the path of the folder, so they depend a little on that."""
    size = re.compile(r"([\d.]+)k")
    return size.sub("k", line), [float(number) for number in size.findall(line)]


def test_every_document_is_linked() -> None:
    docs = ROOT / "docs"
    linked = set()
    for index in docs.rglob("index.md"):
        names = re.findall(r"\]\(([^)#]+\.md)\)", index.read_text(encoding="utf-8"))
        linked |= {str((index.parent / name).relative_to(docs)) for name in names}

    assert linked == {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"index.md"}


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)

    assert tuple(key for key, _ in rows) == KEYS
    defaults = {field.name: field.default for field in fields(Settings)}
    for key, default in rows:
        if isinstance(defaults[key], int):
            assert default == f"{defaults[key]:,}"


def test_the_source_archive_holds_what_the_tests_read() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = {*re.findall(r'ROOT / "([\w.]+)"', text), *re.findall(r"^from (\w+)", text, re.MULTILINE)}

    held = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {f"/{name}" for name in named - {"build"} if (ROOT / name).is_dir()} <= {*held}


def test_the_wheel_holds_all_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert set(wheel) == {"core", "cli", "mcp_server", "foldmark.py"}
