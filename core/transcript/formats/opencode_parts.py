"""What both forms of an OpenCode export share: times, usage, steps of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from core.model import JSON, Block, Usage, count, mapping
from core.times import stamp


def iso_time(holder: dict[str, JSON]) -> str:
    """`time.created`, milliseconds since 1970, as ISO 8601 in UTC; "" when there is none, or one that cannot be."""
    created = count(mapping(holder.get("time")).get("created"))
    try:
        moment = datetime.fromtimestamp(created / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return stamp(moment) if created else ""


def usage_of(holder: dict[str, JSON]) -> Usage | None:
    """One request; `input` excludes what came from the cache, `output` includes reasoning."""
    tokens = mapping(holder.get("tokens"))
    cache = mapping(tokens.get("cache"))
    usage = Usage(
        count(tokens.get("input")), count(cache.get("write")), count(cache.get("read")), count(tokens.get("output"))
    )
    return usage if usage.total_tokens else None


def calls_first(blocks: Iterable[tuple[Block, Block | None]]) -> list[Block]:
    """One list of blocks with results beside them: the results of calls in a row stand behind the last of these."""
    out: list[Block] = []
    results: list[Block] = []
    for block, result in blocks:
        if block["type"] != "tool_use":
            out += results
            results = []
        out.append(block)
        if result:
            results.append(result)
    return out + results
