from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.model import Block, block_text
from core.transcript.formats import Conversation, read

META = {"sessionId": "s", "projectHash": "h"}


def _document(tmp_path: Path, *messages: Any) -> Conversation:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({**META, "messages": messages}), encoding="utf-8")
    return read(path)


def _lines(tmp_path: Path, *records: Any) -> Conversation:
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in records), encoding="utf-8")
    return read(path)


def _user(name: str, text: str) -> Any:
    return {"id": name, "type": "user", "content": text}


def _texts(conversation: Conversation) -> list[str]:
    return [block_text(b) for m in conversation.active for b in m.content]


def _blocks(conversation: Conversation) -> list[Block]:
    return [b for m in conversation.messages for b in m.content]


def test_content_may_be_text_a_part_or_a_mixed_list(tmp_path: Path) -> None:
    file = {"fileData": {"fileUri": "https://example.invalid/a.pdf", "mimeType": "application/pdf"}}
    content = ["a", {"text": "b"}, file, {"odd": 1}, {"functionResponse": {}}, 7]
    conversation = _document(tmp_path, {"type": "user", "content": {"text": "c"}}, {"type": "user", "content": content})
    assert _blocks(conversation) == [
        {"type": "text", "text": "c"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        {"type": "document", "source": {"type": "url", "url": "https://example.invalid/a.pdf"}},
        {"type": "text", "text": '{"odd": 1}'},
    ]
    assert len({m.uuid for m in conversation.messages}) == 2


@pytest.mark.parametrize("text", ["/stats", "?", "<session_context>x", "<hook_context>x", ""])
def test_what_the_client_does_not_send_on_resume_is_not_active(tmp_path: Path, text: str) -> None:
    assert _texts(_document(tmp_path, _user("a", text), _user("b", "hi"))) == ["hi"]


def test_calls_in_the_content_are_the_truth_and_take_missing_ids_from_their_copies(tmp_path: Path) -> None:
    content = [
        {"functionCall": {"name": "f", "args": {"n": 1}}},
        {"functionCall": {"name": "f", "args": {"n": 2}}},
        {"functionCall": {"name": "g"}},
    ]
    calls = [
        {"id": "f-1", "name": "f", "result": ["one", {"functionResponse": 7}]},
        {"id": "f-2", "name": "f", "status": "cancelled", "result": [{"text": "two"}, {"text": "more"}]},
    ]
    thoughts = [{"subject": "not", "description": "read"}]
    message = {"id": "m", "type": "gemini", "content": content, "toolCalls": calls, "thoughts": thoughts}
    blocks = _blocks(_document(tmp_path, message))
    assert [b["id"] for b in blocks[:3]] == ["f-1", "f-2", ""]
    assert blocks[3] == {"type": "tool_result", "tool_use_id": "f-1", "content": "one"}
    assert (blocks[4]["is_error"], block_text(blocks[4])) == (True, "two\nmore")


def test_the_answer_of_a_tool_is_its_output_its_error_or_its_json(tmp_path: Path) -> None:
    media = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}

    def call(name: str, response: Any, **more: Any) -> Any:
        answer = {"functionResponse": {"id": name, "response": response, **more}}
        return {"id": name, "name": "t", "args": {}, "result": [answer]}

    calls = [
        call("a", {"output": "out"}),
        call("b", {"error": "bad"}),
        call("c", {"x": 1}, parts=[media]),
        call("d", "s"),
    ]
    message = {"id": "m", "type": "gemini", "content": "", "toolCalls": [*calls, {"id": "e", "name": "t"}]}
    conversation = _document(tmp_path, message)
    results = [b for b in _blocks(conversation) if b["type"] == "tool_result"]
    assert [block_text(b) for b in results] == ["out", "bad", '{"x": 1}', "s"]
    assert [b.get("is_error", False) for b in results] == [False, True, False, False]
    assert isinstance(results[2]["content"], list)
    assert [f.kind for f in conversation.findings] == ["open-call"]


def test_entries_that_are_no_messages_and_unknown_types_are_reported(tmp_path: Path) -> None:
    conversation = _document(tmp_path, None, {"type": "oracle"}, {"type": "info", "content": "x"})
    assert sorted(f.kind for f in conversation.findings) == ["not-a-row", "unknown-type"]


def test_an_unknown_rewind_removes_all(tmp_path: Path) -> None:
    conversation = _lines(tmp_path, META, _user("a", "1"), _user("b", "2"), {"$rewindTo": "zzz"}, _user("c", "3"))
    assert _texts(conversation) == ["3"]
    assert len(conversation.messages) == 3


def test_a_checkpoint_shortens_the_active_text_and_not_the_full_one(tmp_path: Path) -> None:
    checkpoint = {"$set": {"messages": [_user("a", "short"), {"type": "user", "content": "x"}], "summary": "Title"}}
    conversation = _lines(tmp_path, META, _user("a", "a long text"), checkpoint)
    assert _texts(conversation) == ["short", "x"]
    assert block_text(conversation.messages[0].content[0]) == "a long text"
    assert (conversation.title, conversation.session_id) == ("Title", "s")


def test_records_that_are_nothing_known_are_reported(tmp_path: Path) -> None:
    assert [(f.kind, f.line) for f in _lines(tmp_path, META, {"x": 1}).findings] == [("unknown-type", 2)]


@pytest.mark.parametrize(
    ("second", "name", "texts"),
    [(_user("b", "2"), "gemini-jsonl", ["1", "2"]), (None, "gemini-json", ["1"])],
)
def test_a_document_on_the_first_line_may_have_lines_behind_it(
    tmp_path: Path, second: Any, name: str, texts: list[str]
) -> None:
    conversation = _lines(tmp_path, {**META, "messages": [_user("a", "1")]}, *([second] if second else []))
    assert (conversation.format, _texts(conversation)) == (name, texts)
