"""The summary in front of a compacted conversation, found again."""

from __future__ import annotations

from core.model import Block, Message
from core.transcript.formats.summarised import split_summary, with_head


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def first(*blocks: Block) -> Message:
    return Message("user", "prompt", blocks, ("u1",))


ANSWER = Message("assistant", "response", (text("Yes."),), ("u2",))
NOTE = text("<system-reminder>\nfile\n</system-reminder>")


def test_summary_notes_and_prompt_are_told_apart() -> None:
    found = split_summary([first(text(with_head("So far.")), NOTE, text("Go on")), ANSWER])

    assert [(m.kind, m.content) for m in found] == [
        ("summary", (text("So far."),)),
        ("meta", (NOTE,)),
        ("prompt", (text("Go on"),)),
        ("response", ANSWER.content),
    ]
    assert len({m.uuid for m in found}) == 4


def test_there_need_be_neither_notes_nor_a_prompt() -> None:
    assert [m.kind for m in split_summary([first(text(with_head("So far."))), ANSWER])] == ["summary", "response"]
    assert [m.kind for m in split_summary([first(text(with_head("So far.")), text("Go"))])] == ["summary", "prompt"]


def test_other_conversations_are_as_they_were() -> None:
    for messages in ([], [first(text("Hello")), ANSWER], [ANSWER], [first({"type": "image"}, NOTE)]):
        assert split_summary(messages) == tuple(messages)
