from __future__ import annotations

from pathlib import Path

import pytest

from core.model import Block, Message
from core.transcript.formats import read
from core.transcript.formats.markdown import write_markdown

DATA = Path(__file__).parents[2] / "data" / "foreign"


def _lines(*blocks: Block) -> list[str]:
    return write_markdown([Message("assistant", "response", blocks)]).splitlines()[4:]


def test_a_conversation_reads_from_top_to_bottom() -> None:
    messages = [
        Message("user", "prompt", ({"type": "text", "text": "Question?"},), timestamp="2026-01-01T00:00:00Z"),
        Message("assistant", "response", ({"type": "tool_use", "id": "a", "name": "run", "input": {"cmd": "ls"}},)),
        Message("user", "results", ({"type": "tool_result", "tool_use_id": "a", "content": "x\n", "is_error": True},)),
        Message("system", "meta", ({"type": "text", "text": "note"},)),
    ]
    assert write_markdown(messages, "A  title\nhere", "Be brief.") == (
        "# A title here\n\n## System\n\n```\nBe brief.\n```\n\n"
        "## User (2026-01-01T00:00:00Z)\n\nQuestion?\n\n"
        '## Assistant\n\nCall `run`:\n\n```json\n{\n  "cmd": "ls"\n}\n```\n\n'
        "## Results\n\nError:\n\n```\nx\n```\n\n## System\n\nnote\n"
    )


def test_a_heading_is_not_repeated_for_the_same_speaker() -> None:
    text = write_markdown([Message("user", "prompt", ({"type": "text", "text": t},)) for t in "ab"])
    assert text == "# Conversation\n\n## User\n\na\n\nb\n"


@pytest.mark.parametrize(
    ("block", "lines"),
    [
        ({"type": "thinking", "thinking": "t"}, ["Thinking:", "", "```", "t", "```"]),
        ({"type": "redacted_thinking", "data": "x"}, ["*Thinking that cannot be read.*"]),
        ({"type": "compaction", "content": "S"}, ["S"]),
        ({"type": "compaction", "content": None}, ["*A summary that cannot be read.*"]),
        ({"type": "tool_result", "content": "a ```` b"}, ["Result:", "", "`````", "a ```` b", "`````"]),
        ({"type": "tool_result", "content": []}, ["Result: *(empty)*"]),
        (
            {
                "type": "tool_result",
                "content": [{"type": "image", "source": {"media_type": "image/png", "data": "AAAA"}}],
            },
            ["Result:", "", "*[image, image/png, 3 bytes]*"],
        ),
        (
            {"type": "document", "title": "d", "source": {"type": "text", "data": "body"}},
            ["Document `d`:", "", "```", "body", "```"],
        ),
        ({"type": "document", "source": {"type": "text", "data": "body"}}, ["Document:", "", "```", "body", "```"]),
        ({"type": "image", "source": {"type": "url", "url": "https://x"}}, ["*[image, https://x]*"]),
        ({}, ["*[block]*"]),
        ({"type": "text", "text": " \ud800"}, ["\ufffd"]),
    ],
)
def test_blocks_are_shown(block: Block, lines: list[str]) -> None:
    assert _lines(block) == lines


def test_every_text_of_a_sample_is_in_its_markdown() -> None:
    conversation = read(DATA / "codex" / "sample.jsonl")
    text = write_markdown(conversation.messages, conversation.title, conversation.system)
    for words in ("Please rename area()", "cat: missing.py: not found", "Look at the file first.", "Synthetic base"):
        assert words in text
