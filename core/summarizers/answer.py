"""Reading what a model answered: a summary, or which check it failed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.api.endpoint import Reply
from core.errors import SummaryRejected
from core.summarizers.prompt import CLOSE, OPEN

_CUT_STOPS = ("max_tokens", "model_context_window_exceeded")
_REFUSAL = re.compile(
    r"^\W{0,3}(?:i(?:['’]m| am) (?:sorry|unable|not able)|(?:sorry|unfortunately),? (?:but )?i\b"
    r"|i (?:can(?:['’]t|not| not)|won['’]t|will not|must decline|decline)\b|as an ai\b)",
    re.IGNORECASE,
)
_REFUSAL_CHARS = 600
"""A refusal is short; a summary that begins with such words is not."""
CALL_SYNTAX = re.compile(
    r"<(?:\w{1,10}:)?(?:function_calls|invoke|tool_call|tool_use|parameter)\b|</(?:\w{1,10}:)?invoke>"
    r'|"type"\s*:\s*"tool_use"|\[TOOL_CALLS?\]',
    re.IGNORECASE,
)
"""How models write tool calls where they cannot make them."""
_QUOTED = re.compile(
    r"(?P<fence>(?<!`)`{3,20}(?!`)|(?<!~)~{3,20}(?!~)).*?(?P=fence)|`[^`\n]{1,400}`",  # bounds: it takes linear time
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a summary, and whether it ends before it was finished."""

    text: str
    is_cut: bool = False


def read(reply: Reply) -> Written:
    """The summary that a reply holds.  Raises `SummaryRejected`, which names the check that failed."""
    if reply.stop_reason == "refusal":
        raise _rejected("the model refused to write it")
    if not reply.text.strip() and any(block.get("type") == "tool_use" for block in reply.content):
        raise _rejected("the model called a tool instead of writing it")
    return read_text(reply.text, reply.stop_reason in _CUT_STOPS)


def read_text(text: str, is_cut: bool = False, needs_tags: bool = True) -> Written:
    """The same for a bare text; `is_cut`: whoever wrote it was stopped by a limit."""
    if not text.strip():
        raise _rejected("it is empty")
    begin = text.find(OPEN)
    if begin < 0:
        if len(text) <= _REFUSAL_CHARS and _REFUSAL.match(text):
            raise _rejected("the model refused to write it")
        if needs_tags:
            raise _rejected(f"it is not between {OPEN} and {CLOSE}, as was asked for")
        begin, body, end = 0, text, len(text)
    else:
        begin += len(OPEN)
        end = text.rfind(CLOSE)
        is_cut = end < begin
        body = text[begin:] if is_cut else text[begin:end]
    body = body.strip()
    if not body:
        raise _rejected("it is empty")
    if CALL_SYNTAX.search(_QUOTED.sub("", body)):
        raise _rejected("it holds a call of a tool")
    return Written(body, is_cut)


def whole_lines(text: str) -> str:
    """A text that was cut off, up to its last whole line; all of it if it is one line."""
    return text.rpartition("\n")[0].rstrip() or text


def _rejected(check: str) -> SummaryRejected:
    return SummaryRejected(f"the summary is not usable: {check}", "try again, or choose another {summarizer}")
