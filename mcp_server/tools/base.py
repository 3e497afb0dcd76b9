"""What all tools have in common: how they are described, and how their arguments are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from core.model import JSON
from core.results import Result

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
COMPACTS = CHANGES.model_copy(update={"open_world_hint": True})
"""It may ask a model, where the caller says so."""

LOADED: dict[str, Any] = {"anthropic/alwaysLoad": True}
"""Claude Code lists tools by name alone until one is searched for; stand-ins in the context lead to these."""


def tool(
    function: Callable[..., Any],
    title: str,
    annotations: ToolAnnotations,
    meta: Mapping[str, Any] | None = None,
) -> Tool:
    """A tool of a function; where that says what all of its answers hold (`answer_of`), hosts get the schema."""
    made = Tool.from_function(
        function,
        title=title,
        description=" ".join((function.__doc__ or "").split()),
        annotations=annotations.model_copy(update={"title": title}),
        meta=dict(meta) if meta else None,
        structured_output=False,  # the SDK knows no schema of a result
    )
    made.parameters = {**_untitled(made.parameters), "additionalProperties": False}
    if answer := answer_of(function):
        made.fn_metadata.output_schema = _schema_of(answer)
    return made


def answer_of(function: Callable[..., Any]) -> type[Result] | None:
    """What the answers of a tool hold, where it says so: `-> Annotated[CallToolResult, SessionList]`."""
    returned = get_type_hints(function, include_extras=True)["return"]
    answer: type[Result] | None = next(iter(getattr(returned, "__metadata__", ())), None)
    return answer


def _schema_of(kind: type[Result]) -> dict[str, Any]:
    """The schema of a result, as hosts want it: an object, with what it is made of beside it."""
    _, parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    parts = _untitled(parts)
    return {**parts.pop(kind.__name__), **({"$defs": parts} if parts else {})}


def _untitled(schema: Any) -> Any:
    """A schema without the titles that are made of its names: they say nothing, and a model pays for them."""
    if isinstance(schema, dict):
        return {k: _untitled(v) for k, v in schema.items() if k != "title" or not isinstance(v, str)}
    return [_untitled(v) for v in schema] if isinstance(schema, list) else schema


def wrong_arguments(known: Tool, arguments: Mapping[str, JSON]) -> str:
    """What is wrong with the arguments of a call, and what they may be; "" for nothing.

    The SDK passes over unknown arguments; a call that was meant to do something else must not run.
    """
    names = known.parameters.get("properties", {})
    if unknown := [name for name in arguments if name not in names]:
        shown = ", ".join(repr(name[:_SHOWN_CHARS]) for name in unknown[:_SHOWN])
        return f"{known.name} has no argument {shown}; its arguments are {', '.join(names)}"
    try:
        known.fn_metadata.validate_arguments(dict(arguments))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:_SHOWN])
    return ""


_SHOWN = 5
_SHOWN_CHARS = 60
"""How much of wrong arguments a message repeats."""
