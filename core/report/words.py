"""How results are said in words, on every surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.context.tokens.words import tokens

if TYPE_CHECKING:
    from core.context.tokens.window import State
    from core.report.data import Fidelity

KINDS = {
    "system": "system prompt, tools, memory files",
    "prompt": "prompts",
    "results": "tool results",
    "tool_use": "tool calls",
    "text": "answers",
    "thinking": "thinking",
    "summary": "summaries",
    "meta": "notes of the client",
    "command": "local commands",
    "attachment": "attachments",
}
"""Of what fills a window, all of each kind."""
PARTS = {
    "prompt": "prompt",
    "results": "tool result",
    "result": "tool result",
    "output": "tool result",
    "response": "answer",
    "summary": "summary",
    "meta": "note of the client",
    "command": "local command",
    "attachment": "attachment",
}
"""Of one message, or of one text that can be read."""
STATES: dict[State, str] = {
    "ok": "there is room",
    "warning": "automatic compaction is near",
    "compact": "automatic compaction is due",
    "blocked": "full: nothing but a compaction has room",
}
"""Of a window."""
PLACES = {
    "kept": "kept word for word",
    "changed": "shortened",
    "stored": "on demand",
    "gone": "gone",
}
STANDINGS = {
    "verbatim": "word for word",
    "in part": "its beginning",
    "stored": "on demand",
    "gone": "gone",
}

SCALE = "all tokens are counted as in before; of a session by itself, foldmark context may say somewhat more or less"
"""Of two contexts that are compared."""
WHERE = {
    "active": "what the model sees",
    "earlier": "in the file, out of the context",
    "stored": "in a file beside it",
    "source": "in the session that this one was made of",
}
"""Of a text: where it can be read."""


def part_name(kind: str, tool: str) -> str:
    """What one thing is: of a tool, its call or its result; else by its kind."""
    if not tool:
        return PARTS.get(kind, kind)
    return f"{tool} call" if kind == "response" else f"{tool} result"


def share(part: float, whole: float) -> str:
    """A share in per cent, "-" of nothing."""
    return f"{part / whole:.0%}" if whole else "-"


def change(before: float, after: float) -> str:
    """How much less or more it became: −71 %, +4 %, 0 %."""
    if not before:
        return "new" if after else "0%"
    percent = round((after - before) / before * 100)
    return f"{'−' if percent < 0 else '+' if percent else ''}{abs(percent)}%"


def saved(before_tokens: int, after_tokens: int) -> str:
    """What became of the tokens of a context."""
    share_saved = 1 - after_tokens / max(1, before_tokens)
    return f"{tokens(before_tokens)} → {tokens(after_tokens)} tokens ({share_saved:.0%} saved)"


def count(number: int, noun: str) -> str:
    """How many there are of something: 1 line, 2 lines."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def whereabouts(how: str, kept: int, went: int) -> str:
    """What stays of the messages of a context that was compacted in some way, and what stands for the others."""
    stays = f"{count(kept, 'message')} kept word for word"
    match how:
        case "micro":
            return "all messages stay, large and old tool results are shortened and stored whole"
        case "memory":
            return f"made from the notes: {stays}, {went} stored"
    return f"{stays}, {went} summarised and stored"


def dollars(value: float | None) -> str:
    """A price: $2.51, $0.059; "-" for an unknown one."""
    if value is None:
        return "-"
    return f"${value:.2f}" if value >= 1 else f"${value:.3f}"


def fidelity_words(found: Fidelity) -> tuple[str, str]:
    """How true and how complete a summary is; never 100 % of something that is not whole."""
    return (
        f"{_floored(found.precision)} of its names, figures and quotations hold",
        f"{_floored(found.recall)} of what must be known is said",
    )


def faults(found: Fidelity) -> list[tuple[str, list[str]]]:
    """What is wrong with a summary: a word for it, and the cases."""
    return [
        ("not so", found.contradicted),
        ("found nowhere", found.unverifiable),
        ("not said", found.missing),
    ]


def _floored(part: float) -> str:
    return f"{int(part * 100 + 1e-9)}%"
