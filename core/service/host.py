"""A compaction whose summary is written by the model that asks for it: first what to write, then the summary."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import Damaged
from core.facts.text import cut, one_line
from core.memory.files import MemoryFiles
from core.model import Message, block_text
from core.redact.text import redact
from core.redact.values import redact_messages
from core.service.job import CompactResult
from core.summarizers.base import Summarizer, Summary, SummaryRequest
from core.summarizers.compose import text_chars
from core.summarizers.prompt import SYSTEM, instructions
from core.transcript.formats.markdown import write_markdown
from core.transcript.projects import SessionFile

NAME = "host"
Run = Callable[[Summarizer], CompactResult]
"""A compaction, but for the summariser."""
_PROMPT_CHARS = 200
"""Of a prompt that is named: enough to know it again."""


class _Wanted(Exception):
    """The compaction has come to the point where it needs a summary."""

    def __init__(self, request: SummaryRequest) -> None:
        super().__init__()
        self.request = request


class _Asking:
    name = NAME

    def summarize(self, request: SummaryRequest) -> Summary:
        raise _Wanted(request)


def wanted(run: Run) -> CompactResult | SummaryRequest:
    """What a summary is wanted of; the result of the compaction where it needs none."""
    try:
        return run(_Asking())
    except _Wanted as asked:
        return asked.request


def what_to_write(request: SummaryRequest) -> str:
    """The task for a model that has the conversation before it."""
    prompts = [m for m in request.messages if m.kind == "prompt"] or [*request.messages]
    return (
        f"Write a summary that stands for {len(request.messages)} messages of the conversation: from "
        f"{_named(prompts[0])} up to the end of the turn that begins with {_named(prompts[-1])}. What is before and "
        f"behind them stays word for word: leave it out.\n\n{instructions(request, text_chars(request))}"
    )


def has_notes(file: SessionFile) -> bool:
    """Whether a session has notes, which may stand in the place of a summary."""
    try:
        return MemoryFiles.beside(file).read().exists
    except Damaged:
        return False


def material(request: SummaryRequest) -> str:
    """The task for a model that has nothing before it: what to write, and of what."""
    conversation = write_markdown(redact_messages(request.messages))
    return f"{SYSTEM}\n\n{what_to_write(request)}\n\nThe session:\n\n{conversation}\n\nThe session ends here."


def _named(message: Message) -> str:
    text = " ".join(block_text(b) for b in message.content if b.get("type") == "text")
    return f"“{cut(one_line(redact(text)), _PROMPT_CHARS)}”"
