"""The tools: one module a group, one table."""

from __future__ import annotations

from mcp.server.mcpserver.tools import Tool

from mcp_server.tools import compacting, memory, reading, writing


def all_tools() -> list[Tool]:
    """Every tool, in the order in which hosts list them."""
    return [*compacting.tools(), *writing.tools(), *reading.tools(), *memory.tools()]
