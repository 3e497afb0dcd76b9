"""The summary in front of a compacted conversation, found again."""

from __future__ import annotations

from pathlib import Path

from core.model import Block, Message
from core.transcript.formats import read
from core.transcript.formats.outgoing import write_messages
from core.transcript.formats.summarised import is_settled, split_summary, with_head


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def first(*blocks: Block) -> Message:
    return Message("user", "prompt", blocks, ("u1",))


ANSWER = Message("assistant", "response", (text("Yes."),), ("u2",))
NOTE = text("<system-reminder>\nfile\n</system-reminder>")


def test_summary_notes_and_prompt_are_told_apart() -> None:
    found = split_summary([first(text(with_head("So far.", 500, [])), NOTE, text("Go on")), ANSWER])

    assert [(m.kind, m.content) for m in found] == [
        ("summary", (text("So far."),)),
        ("meta", (NOTE,)),
        ("prompt", (text("Go on"),)),
        ("response", ANSWER.content),
    ]
    assert len({m.uuid for m in found}) == 4


def test_there_need_be_neither_notes_nor_a_prompt() -> None:
    assert [m.kind for m in split_summary([first(text(with_head("So far.", 500, []))), ANSWER])] == [
        "summary",
        "response",
    ]
    assert [m.kind for m in split_summary([first(text(with_head("So far.", 500, [])), text("Go"))])] == [
        "summary",
        "prompt",
    ]


def test_other_conversations_are_as_they_were() -> None:
    for messages in ([], [first(text("Hello")), ANSWER], [ANSWER], [first({"type": "image"}, NOTE)], [first()]):
        assert split_summary(messages) == tuple(messages)
        assert not is_settled(messages, 1_000)


def test_what_a_compaction_left_is_known_again_until_something_is_added(tmp_path: Path) -> None:
    call: Block = {"type": "tool_use", "id": "a:1", "name": "Read", "input": "raw"}
    kept = [
        first(text("Go on"), text(" ")),
        Message("assistant", "response", ({"type": "thinking", "thinking": "unsigned"}, call), ("u3",)),
        Message("assistant", "response", (text("Done."),), ("u4",)),
    ]
    for tail in (kept, kept[1:], []):
        front = [first(text(with_head("So far.", 500, tail))), Message("user", "meta", (NOTE,), ("n",))]
        path = tmp_path / "a.json"
        path.write_bytes(write_messages([*front, *tail], "You are X"))
        found = read(path).active

        assert is_settled(found, 500)
        assert is_settled(found, 501)
        assert not is_settled(found, 499)
        assert not is_settled([*found, first(text("More"))], 500)
