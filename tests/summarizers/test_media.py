"""What a summariser gets of images and documents."""

from __future__ import annotations

from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from core.model import JSON, Block, Message, block_text, tool_results
from core.service.session import opened
from core.summarizers.media import in_words
from core.transcript.projects import session_file

CASE = Path(__file__).parents[1] / "data" / "cases" / "image-1.jsonl"
IMAGE: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PDF: Block = {"type": "document", "title": "plan.pdf", "source": {"type": "base64", "data": "BBBB"}}


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def call(ident: JSON, given: JSON) -> Message:
    return Message("assistant", "response", ({"type": "tool_use", "id": ident, "name": "Read", "input": given},))


def result(ident: str, content: JSON) -> Message:
    return Message("user", "results", ({"type": "tool_result", "tool_use_id": ident, "content": content},))


def test_each_of_25_images_is_the_name_of_its_file() -> None:
    with opened(session_file(CASE)) as session:
        said = in_words(session.messages)

    texts = [block_text(b) for m in said for b in tool_results(m)]
    assert texts == [f"[image: /w/{n}.png]" for n in range(25)]
    assert b'"image"' not in msgspec.json.encode([m.content for m in said])
    assert [m.uuids for m in said] == [m.uuids for m in session.messages]


def test_documents_and_what_a_person_pasted_are_named_as_far_as_there_is_a_name() -> None:
    pasted = Message("user", "prompt", (IMAGE, text("See?"), PDF))
    nested = result("t1", ["odd", text("two"), IMAGE, {"type": "document"}])

    (said,) = in_words([pasted])
    assert said.content == (text("[image]"), text("See?"), text("[document: plan.pdf]"))
    assert in_words([call("t1", {"file_path": "/a.pdf"}), nested])[1].content[0]["content"] == [
        "odd",
        text("two"),
        text("[image: /a.pdf]"),
        text("[document: /a.pdf]"),
    ]
    (unnamed,) = in_words([call("t1", "raw"), nested])[1].content
    assert unnamed["content"] == ["odd", text("two"), text("[image]"), text("[document]")]


BLOCKS = st.sampled_from([IMAGE, PDF, text("x"), {"type": "tool_result", "tool_use_id": "t", "content": [IMAGE]}])


@given(st.lists(st.lists(BLOCKS, max_size=3), max_size=4))
def test_no_picture_is_left_and_all_else_is_the_same_object(contents: list[list[Block]]) -> None:
    before = [Message("user", "prompt", tuple(content)) for content in contents]
    said = in_words(before)

    assert b'"source"' not in msgspec.json.encode([m.content for m in said])
    assert all(new is old for new, old in zip(said, before, strict=True) if all(b == text("x") for b in old.content))
    assert in_words(said) == said
