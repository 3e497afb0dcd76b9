"""Writes docs/json.md: the keys of what each command prints with --json, from the types of its results.

    python -m scripts.json_docs

A test fails as long as the file is not what this writes.
"""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec.structs import fields

from cli.errors import WRONG_USAGE
from core import errors
from core.report.data import Report
from core.results import Result
from core.service.ask import AskResult
from core.service.check import CheckResult
from core.service.compact import CompactResult
from core.service.context import ContextReport
from core.service.doctor import DoctorReport
from core.service.history import OutputText, SearchResult, TextList
from core.service.home import Home
from core.service.memory import MemoryUpdate, MemoryView
from core.service.redact import RedactResult
from core.service.sessions import SessionList
from core.service.setup import SetupResult
from core.service.simulate import Simulation
from core.service.snip import SnipProposals, SnipResult
from core.service.strip import MediaList, StripResult
from core.service.undo import UndoResult
from core.service.view import ViewResult

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "json.md"
COMMANDS: dict[str, type[Result]] = {
    "": Home,
    "sessions": SessionList,
    "context": ContextReport,
    "view": ViewResult,
    "compact": CompactResult,
    "memory show": MemoryView,
    "memory update": MemoryUpdate,
    "memory refresh": MemoryUpdate,
    "snip FROM TO": SnipResult,
    "snip --suggest": SnipProposals,
    "strip": MediaList,
    "strip ID": StripResult,
    "output": TextList,
    "output ID": OutputText,
    "search": SearchResult,
    "ask": AskResult,
    "check": CheckResult,
    "report": Report,
    "simulate": Simulation,
    "redact": RedactResult,
    "undo": UndoResult,
    "setup": SetupResult,
    "doctor": DoctorReport,
}
_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    NoneType: "null",
    Any: "anything",
    object: "anything",
}
_HEAD = """\
# What commands print with --json

<!-- written by scripts/json_docs.py -->

One document; `compact` and `check` print one line for each session where there are several, `memory refresh` one for
each that was updated. The keys here stay; others may be added. Sizes are in the unit that the key ends in, times are
ISO 8601 in UTC.

The exit code is 0 when all is done or nothing was to be done, 1 when something failed (or was found: `check`,
`redact --check`, `doctor`), 2 when the command was used wrongly. What failed is said in a document as well:
`{"error": {"kind", "message", "hint"}}`; as one of several lines it has the key `session` beside it, with the `path` of
the file alone. Kinds:

| kind | exit code | meaning |
| --- | --- | --- |
"""
_MORE_KINDS = {
    "UsageError and those under it": (2, "The command line is wrong."),
    "OSError and those under it": (1, "What the system says."),
}


def page() -> str:
    """The whole text."""
    parts: dict[str, type[Result]] = {}
    sections = []
    for command, result in COMMANDS.items():
        name = f"foldmark {command}".strip()
        sections.append(f"## {name}\n\n{_section(result, parts)}")
    shown: list[str] = []
    while len(shown) < len(parts):
        name, result = [*parts.items()][len(shown)]
        shown.append(f"### {name}\n\n{_section(result, parts)}")
    return "\n".join([_HEAD + _kinds(), *sections, "## Parts\n", *shown])


def _kinds() -> str:
    rows = [
        (name, 2 if issubclass(kind, WRONG_USAGE) else 1, inspect.getdoc(kind) or "")
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.FoldmarkError)
    ]
    rows += [(name, code, text) for name, (code, text) in _MORE_KINDS.items()]
    return "".join(f"| {name} | {code} | {_line(text)} |\n" for name, code, text in rows)


def _section(result: type[Result], parts: dict[str, type[Result]]) -> str:
    texts = meanings(result)
    rows = [
        f"| `{field.name}` | {_type(field.type, parts)} | {_line(texts.get(field.name, ''))} |"
        for field in fields(result)
    ]
    rows += [
        f"| `{name}` | {_type(get_type_hints(of.fget)['return'], parts)} | {_line(inspect.getdoc(of) or '')} |"
        for name, of in ((name, getattr(result, name)) for name in result.derived)
    ]
    return "\n".join(
        [_line(inspect.getdoc(result) or ""), "", "| key | type | meaning |", "| --- | --- | --- |", *rows, ""]
    )


def meanings(result: type[Result]) -> dict[str, str]:
    """What each field of a result, or of one that it is a kind of, means."""
    texts: dict[str, str] = {}
    for base in reversed(result.__mro__):
        if issubclass(base, Result):
            texts |= _docstrings(base)
    return texts


def _docstrings(result: type[Result]) -> dict[str, str]:
    """What stands below the fields of a class; else below the name of their type."""
    module = ast.parse(inspect.getsource(inspect.getmodule(result) or result))
    body = next(n.body for n in module.body if isinstance(n, ast.ClassDef) and n.name == result.__name__)
    found = _below(body)
    for node in body:
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.annotation, ast.Name)
        ):
            found.setdefault(node.target.id, _of_alias(node.annotation.id, module))
    return found


def _below(body: list[ast.stmt]) -> dict[str, str]:
    return {
        node.target.id: str(text.value.value)
        for node, text in pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _of_alias(name: str, module: ast.Module) -> str:
    """What a type alias means, here or where it comes from."""
    if name in (found := _below(module.body)):
        return found[name]
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module and name in [n.name for n in node.names]:
            source = ast.parse(inspect.getsource(import_module(node.module)))
            return _below(source.body).get(name, "")
    return ""


def _type(kind: Any, parts: dict[str, type[Result]]) -> str:
    """Say what a value is; the results in it are put among the parts."""
    inner = get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Result):
        parts.setdefault(kind.__name__, kind)
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    match get_origin(kind):
        case None:
            return _WORDS[kind]
        case origin if origin is Literal:
            return ", ".join(f'`"{value}"`' for value in inner)
        case origin if origin in (Union, UnionType):
            return " or ".join(_type(one, parts) for one in inner)
        case origin if origin is dict:
            return f"object: {_type(inner[0], parts)} → {_type(inner[1], parts)}"
    return f"list of {_type(inner[0], parts)}"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("None", "null")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
