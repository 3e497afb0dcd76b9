from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import Damaged, InputError, WrongFormat
from core.model import Usage, block_text
from core.transcript import formats
from core.transcript.formats import Conversation, Format, read

CHAT = [{"role": "user", "content": "hi"}]


def _read(tmp_path: Path, *values: Any, pick: str = "") -> Conversation:
    path = tmp_path / "file"
    path.write_text("\n".join(json.dumps(v) for v in values), encoding="utf-8")
    return read(path, pick)


def _texts(conversation: Conversation) -> list[str]:
    return [block_text(b) for m in conversation.messages for b in m.content]


RESPONSE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hello"}],
    "usage": {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_1h_input_tokens": 4},
    },
}


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (RESPONSE, ["hello"]),
        ({"request": {"messages": CHAT}, "response": RESPONSE}, ["hi", "hello"]),
        ({"body": {"messages": CHAT, "max_tokens": 1}}, ["hi"]),
        ({"requests": [{"custom_id": "a", "params": {"messages": CHAT}}]}, ["hi"]),
        ({"custom_id": "a", "params": {"messages": CHAT}}, ["hi"]),
    ],
)
def test_wrappings_of_requests_and_responses_are_read(tmp_path: Path, value: Any, texts: list[str]) -> None:
    assert _texts(_read(tmp_path, value)) == texts


def test_a_response_carries_its_id_model_and_usage(tmp_path: Path) -> None:
    conversation = _read(tmp_path, RESPONSE)
    (message,) = conversation.messages
    assert (message.response_id, message.model, conversation.model) == ("msg_1", "m", "m")
    assert message.usage == Usage(1, 9, 0, 2, 4)


def test_system_text_and_blocks_are_read(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert _read(tmp_path, {"system": "a", "messages": CHAT}).system == "a"
    assert _read(tmp_path, {"system": blocks, "messages": CHAT}).system == "a\n\nb"


def test_unknown_blocks_are_kept_and_reported_and_blocks_without_a_type_are_not(tmp_path: Path) -> None:
    content = [{"type": "hologram", "x": 1}, {"y": 2}, "z", {"type": "code_execution_tool_result"}]
    conversation = _read(tmp_path, [*CHAT, {"role": "user", "content": content}, {"role": "system", "content": "s"}])
    assert conversation.messages[1].content == (content[0], content[3])
    assert [f.kind for f in conversation.findings] == ["unknown-type", "unknown-type"]
    assert [m.kind for m in conversation.messages] == ["prompt", "prompt", "meta"]


def test_a_compaction_block_cuts_within_its_message_too(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "old"}, {"type": "compaction", "content": "S"}, {"type": "text", "text": "new"}]
    conversation = _read(tmp_path, [*CHAT, {"role": "assistant", "content": content}, *CHAT])
    assert [m.content for m in conversation.active] == [tuple(content[1:]), ({"type": "text", "text": "hi"},)]


def test_messages_that_turn_out_to_be_of_another_api_are_refused(tmp_path: Path) -> None:
    late = [
        *CHAT * 4,
        {"role": "user", "content": [{"type": "text", "text": "x" * 70_000}]},
        {"role": "tool", "content": "x"},
    ]
    with pytest.raises(WrongFormat):
        _read(tmp_path, late)


def test_a_cut_array_keeps_its_whole_messages(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(json.dumps([*CHAT, *CHAT])[:-8], encoding="utf-8")
    conversation = read(path)
    assert _texts(conversation) == ["hi"]
    assert [f.kind for f in conversation.findings] == ["cut-document"]
    path.write_text(json.dumps({"messages": [{**CHAT[0], "more": "text"}]})[:-5], encoding="utf-8")
    with pytest.raises(Damaged):
        read(path)


def test_a_batch_file_without_a_line_that_can_be_read_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(f"note: {json.dumps({'custom_id': 'a', 'params': {}})}", encoding="utf-8")
    with pytest.raises(Damaged):
        read(path)


def test_a_file_that_goes_away_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: Path, pick: str) -> Conversation:
        raise FileNotFoundError(2, "No such file", path)

    monkeypatch.setattr(formats, "find_format", lambda _: Format("x", "x", lambda _: True, gone))
    with pytest.raises(InputError) as caught:
        read(tmp_path / "file")
    assert caught.value.hint
