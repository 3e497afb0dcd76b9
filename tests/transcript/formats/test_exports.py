"""Exports of claude.ai and OpenCode: what the samples do not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import SessionNotFound
from core.model import Block, block_text
from core.transcript.formats import Conversation, read


def _read(tmp_path: Path, value: Any, pick: str = "") -> Conversation:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return read(path, pick)


def _texts(conversation: Conversation) -> list[str]:
    return [block_text(b) for m in conversation.active for b in m.content]


def _blocks(conversation: Conversation) -> list[Block]:
    return [b for m in conversation.messages for b in m.content]


def _said(name: str, text: str, parent: str | None = None, sender: str = "human") -> Any:
    return {"uuid": name, "sender": sender, "text": text, "parent_message_uuid": parent, "created_at": name}


def test_the_stated_leaf_chooses_the_branch_and_else_the_newest_message(tmp_path: Path) -> None:
    messages = [_said("1", "root"), _said("2", "old", "1"), _said("3", "new", "1")]
    assert _texts(_read(tmp_path, {"chat_messages": messages})) == ["root", "new"]
    assert _texts(_read(tmp_path, {"chat_messages": messages, "current_leaf_message_uuid": "2"})) == ["root", "old"]
    assert _texts(_read(tmp_path, {"chat_messages": messages, "current_leaf_message_uuid": "9"})) == ["root", "new"]


def test_a_cycle_of_parents_ends(tmp_path: Path) -> None:
    assert _texts(_read(tmp_path, {"chat_messages": [_said("1", "a", "2"), _said("2", "b", "1")]})) == ["a", "b"]


def test_attachments_without_text_are_named(tmp_path: Path) -> None:
    message = {**_said("1", ""), "attachments": [{"file_name": "a.bin"}, {"file_name": ""}], "files": [{}]}
    assert _texts(_read(tmp_path, {"chat_messages": [message]})) == ["[file: a.bin]"]


def test_odd_blocks_of_an_answer_are_read_or_reported(tmp_path: Path) -> None:
    content = [
        {"type": "tool_use", "name": "t", "input": None},
        {"type": "tool_result", "content": "plain"},
        {"type": "tool_result", "content": [{"type": "image", "file": "x"}]},
        {"type": "hologram"},
        {"type": "text", "text": ""},
    ]
    conversation = _read(tmp_path, {"chat_messages": [{**_said("1", "", sender="assistant"), "content": content}]})
    assert [b.get("id") or b.get("tool_use_id") for b in _blocks(conversation)] == ["1#1", "1#1", "1#0"]
    assert [block_text(b) for b in _blocks(conversation)[1:]] == ["plain", '{"type": "image", "file": "x"}']
    assert [f.kind for f in conversation.findings] == ["unknown-type", "orphan-result"]


def test_a_long_list_of_conversations_is_cut(tmp_path: Path) -> None:
    value = [{"uuid": f"c{i:02}", "name": "same", "chat_messages": []} for i in range(30)]
    with pytest.raises(SessionNotFound) as caught:
        _read(tmp_path, value, "same")
    assert "and 10 more" in str(caught.value)
    assert "'same'" in str(caught.value)
    assert _read(tmp_path, value, "c07").session_id == "c07"


def _v1(tmp_path: Path, *messages: tuple[Any, list[Any] | None], **info: Any) -> Conversation:
    listed = [{"info": head} if parts is None else {"info": head, "parts": parts} for head, parts in messages]
    return _read(tmp_path, {"info": {"id": "s", **info}, "messages": [*listed, None]})


def _user(name: str, text: str, *parts: Any) -> tuple[Any, list[Any]]:
    return {"id": name, "role": "user"}, [{"type": "text", "text": text}, *parts]


def _tool(**state: Any) -> Any:
    return {"type": "tool", "callID": "c", "tool": "t", "state": {"input": {}, **state}}


def _assistant(name: str, *parts: Any, **more: Any) -> tuple[Any, list[Any]]:
    return {"id": name, "role": "assistant", **more}, list(parts)


def test_a_revert_hides_its_message_and_all_after_it(tmp_path: Path) -> None:
    conversation = _v1(tmp_path, _user("a", "1"), _user("b", "2"), _user("c", "3"), revert={"messageID": "b"})
    assert _texts(conversation) == ["1"]
    assert len(conversation.messages) == 3


@pytest.mark.parametrize("more", [{"finish": "stop", "error": {"name": "X"}}, {}, {"finish": "stop", "parentID": "z"}])
def test_an_unfinished_failed_or_unasked_summary_is_no_boundary(tmp_path: Path, more: Any) -> None:
    asked = ({"id": "b", "role": "user"}, [{"type": "compaction"}])
    summary = _assistant("c", {"type": "text", "text": "S"}, **{"summary": True, "parentID": "b", **more})
    assert _texts(_v1(tmp_path, _user("a", "1"), asked, summary))[0] == "1"


def test_a_compaction_without_a_tail_keeps_nothing_before_it(tmp_path: Path) -> None:
    asked = ({"id": "b", "role": "user"}, [{"type": "compaction", "tail_start_id": None}])
    summary = _assistant("c", {"type": "text", "text": "S"}, summary=True, parentID="b", finish="stop")
    assert _texts(_v1(tmp_path, _user("a", "1"), asked, summary, _user("d", "2"))) == ["S", "2"]


def test_failed_answers_count_only_when_they_were_stopped_with_something_useful(tmp_path: Path) -> None:
    text = {"type": "text", "text": "half"}
    stopped = {"error": {"name": "MessageAbortedError"}}
    conversation = _v1(
        tmp_path,
        _assistant("a", text, error={"name": "APIError"}),
        _assistant("b", {"type": "step-start"}, {"type": "reasoning", "text": "r"}, **stopped),
        _assistant("c", text, **stopped),
    )
    assert [m.uuid for m in conversation.active] == ["c"]
    assert len(conversation.messages) == 3


def test_outputs_of_tools_are_read_in_every_state(tmp_path: Path) -> None:
    png = {"mime": "image/png", "url": "data:image/png;base64,AA=="}
    conversation = _v1(
        tmp_path,
        _assistant("a", _tool(status="completed", output="o", attachments=[png])),
        _assistant("b", _tool(status="error", error="e", metadata={"interrupted": True, "output": "part"})),
        _assistant("c", _tool(status="running")),
    )
    results = [b for b in _blocks(conversation) if b["type"] == "tool_result"]
    assert [block_text(b) for b in results] == ["o", "part"]
    assert isinstance(results[0]["content"], list)
    assert [f.kind for f in conversation.findings] == ["not-a-row", "open-call"]


def test_text_files_and_local_files_are_named_and_unknown_roles_reported(tmp_path: Path) -> None:
    text = {"type": "file", "mime": "text/plain", "url": "data:text/plain;base64,AA==", "filename": "a.txt"}
    local = {"type": "file", "mime": "image/png", "url": "file:///b.png"}
    conversation = _v1(tmp_path, _user("a", "", text, local), ({"id": "b", "role": "oracle"}, []))
    assert _texts(conversation) == ["[file: a.txt]", "[file: file:///b.png]"]
    assert "unknown-type" in {f.kind for f in conversation.findings}


def test_repeated_ids_do_not_merge_messages(tmp_path: Path) -> None:
    conversation = _v1(tmp_path, *[_user("REDACTED", "same")] * 3)
    assert _texts(conversation) == ["same"] * 3
    assert len({m.uuid for m in conversation.messages}) == 3


@pytest.mark.parametrize(
    ("created", "timestamp"),
    [(1_780_000_001_000, "2026-05-28T20:26:41.000Z"), (10**18, ""), (10**30, ""), (None, ""), (True, "")],
)
def test_times_are_iso(tmp_path: Path, created: Any, timestamp: str) -> None:
    head = {"id": "a", "role": "user", "time": {"created": created}}
    assert _v1(tmp_path, (head, [{"type": "text", "text": "x"}])).messages[0].timestamp == timestamp


def test_form_two_is_read_in_all_its_types(tmp_path: Path) -> None:
    content = [
        {"type": "text", "text": ""},
        {"type": "tool", "id": "p", "name": "t", "state": {"status": "pending", "input": "raw"}},
        {
            "type": "tool",
            "id": "q",
            "name": "t",
            "state": {
                "status": "completed",
                "input": {},
                "content": [{"text": "a"}, {"uri": "data:image/png;base64,AA=="}],
            },
        },
        {"type": "hologram"},
    ]
    messages = [
        {"type": "compaction", "status": "completed", "summary": ""},
        {"type": "shell", "id": "h"},
        {"type": "skill", "id": "k", "text": "skill"},
        {"type": "assistant", "id": "a", "content": content},
        {"type": "hologram"},
    ]
    conversation = _read(tmp_path, {"info": {"id": "s"}, "messages": messages})
    blocks = _blocks(conversation)
    assert [b["type"] for b in blocks] == ["text", "tool_use", "tool_use", "tool_result"]
    assert blocks[1]["input"] == {"input": "raw"}
    assert [f.kind for f in conversation.findings] == ["unknown-type", "unknown-type", "open-call"]
