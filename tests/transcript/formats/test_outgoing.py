from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model import Block, Message
from core.transcript.formats import read
from core.transcript.formats.outgoing import NO_BEGINNING, NO_RESULT, OPAQUE_SUMMARY, write_messages

DATA = Path(__file__).parents[2] / "data" / "foreign"


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _call(call: str, **more: Any) -> Block:
    return {"type": "tool_use", "id": call, "name": "t", "input": {}, **more}


def _result(name: str, content: Any = "ok") -> Block:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def _user(*blocks: Block) -> Message:
    return Message("user", "prompt", blocks)


def _said(*blocks: Block) -> Message:
    return Message("assistant", "response", blocks)


def _written(*messages: Message, system: str = "", tools: Any = ()) -> Any:
    return json.loads(write_messages(messages, system, tools))


def _chat(*messages: Message) -> list[tuple[str, list[Any]]]:
    return [(m["role"], m["content"]) for m in _written(*messages)["messages"]]


def _assert_valid(messages: list[Any]) -> None:
    """The rules of the API for a list of messages."""
    ids: set[str] = set()
    waiting: list[str] = []
    for i, message in enumerate(messages):
        assert message["role"] == ("user" if i % 2 == 0 else "assistant") or messages[0]["role"] == "assistant"
        assert i == 0 or message["role"] != messages[i - 1]["role"]
        blocks = message["content"]
        assert blocks
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting)
        assert all(b["type"] == "tool_result" for b in blocks[: len(results)])
        waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert not ids & set(waiting)
        assert len(set(waiting)) == len(waiting)
        ids |= set(waiting)
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "thinking" or block["signature"]
            assert block["type"] != "tool_use" or isinstance(block["input"], dict)
    assert not waiting


def test_the_same_messages_come_out_as_went_in() -> None:
    source: list[Any] = [
        {"role": "user", "content": [_text("q")]},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, _call("a"), _call("b")],
        },
        {"role": "user", "content": [_result("b"), _result("a"), _text("more")]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "d"}, _text("end")]},
    ]
    messages = [Message(m["role"], "prompt", tuple(m["content"])) for m in source]
    assert _written(*messages, system="S", tools=[{"name": "t"}]) == {
        "system": "S",
        "messages": source,
        "tools": [{"name": "t"}],
    }


def test_calls_without_results_get_one_that_says_so_and_results_without_calls_go() -> None:
    assert _chat(_user(_text("q"), _result("x")), _said(_call("a"))) == [
        ("user", [_text("q")]),
        ("assistant", [_call("a")]),
        ("user", [{**_result("a", NO_RESULT), "is_error": True}]),
    ]


def test_a_response_over_several_messages_keeps_the_results_of_all() -> None:
    chat = _chat(
        _user(_text("q")), _said(_call("a")), _said(_text("b"), _call("c")), _user(_result("c")), _user(_result("a"))
    )
    assert chat[1:] == [("assistant", [_call("a"), _text("b"), _call("c")]), ("user", [_result("c"), _result("a")])]


def test_results_come_before_text_in_the_next_message() -> None:
    assert _chat(_said(_call("a")), _user(_text("wait")), _user(_result("a")))[2] == (
        "user",
        [_result("a"), _text("wait")],
    )


def test_ids_are_made_unique_and_of_allowed_letters() -> None:
    chat = _chat(
        _user(_text("q")),
        _said(_call("o2#1"), _call("same"), _call("same"), _call("", name="")),
        _user(_result("same", "first"), _result("same", "second"), _result("o2#1"), _result("")),
    )
    assert [(b["id"], b["name"]) for b in chat[1][1]] == [
        ("o2_1", "t"),
        ("same", "t"),
        ("same_2", "t"),
        ("call", "unknown_tool"),
    ]
    assert [(b["tool_use_id"], b["content"]) for b in chat[2][1]][:2] == [("same", "first"), ("same_2", "second")]


def test_what_the_api_refuses_is_left_out() -> None:
    server: Block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found: Block = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    blank = _result("a", [_text(" "), _text("x"), "odd"])
    chat = _chat(
        _user(_text("q"), _text(" \n")),
        _said({"type": "thinking", "thinking": "foreign"}, {"type": "redacted_thinking", "data": ""}),
        _said({**server, "id": "alone"}, server, found, _call("a", input="raw")),
        _user(blank),
    )
    assert chat == [
        ("user", [_text("q")]),
        ("assistant", [server, found, _call("a", input={"input": "raw"})]),
        ("user", [_result("a", [_text("x"), "odd"])]),
    ]


def test_the_user_comes_first_unless_a_compaction_block_does() -> None:
    compaction: Block = {"type": "compaction", "content": "S"}
    assert _chat(_said(_text("a")))[0] == ("user", [_text(NO_BEGINNING)])
    assert _chat(_said(compaction), _user(_text("q")))[0] == ("assistant", [compaction])
    assert _chat() == []


def test_an_opaque_summary_becomes_a_note() -> None:
    assert _chat(Message("user", "summary", ({"type": "compaction", "content": None},))) == [
        ("user", [_text(OPAQUE_SUMMARY)])
    ]


def test_system_messages_at_the_beginning_join_the_system_prompt_and_later_ones_the_user() -> None:
    note = Message("system", "meta", (_text("note"),))
    body = _written(note, _user(_text("q")), note, system="S")
    assert body["system"] == "S\n\nnote"
    assert body["messages"] == [{"role": "user", "content": [_text("q"), _text("note")]}]


def test_lone_surrogates_do_not_go_out() -> None:
    assert "a\ufffdb".encode() in write_messages([_user(_text("a\ud800b"))])


SAMPLES = [p for p in sorted(DATA.glob("*/*.json*")) if p.name != "expected.json"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: f"{p.parent.name}/{p.name}")
@pytest.mark.parametrize("pick", ["", "1", "2"])
def test_every_sample_can_be_written_for_the_api_and_read_again(path: Path, pick: str, tmp_path: Path) -> None:
    several = "conversations" in path.parent.name + path.name or "claude-ai" in str(path) or "batch" in path.name
    if several != bool(pick):
        return
    conversation = read(path, pick)
    for messages in (conversation.messages, conversation.active):
        written = write_messages(messages, conversation.system, conversation.tools)
        _assert_valid(json.loads(written)["messages"])
        if not messages:
            continue
        copy = tmp_path / "copy.json"
        copy.write_bytes(written)
        again = read(copy)
        assert write_messages(again.messages, again.system, again.tools) == written


NAMES = st.sampled_from(["a", "b", "c#", ""])
TEXTS = st.sampled_from(["", " ", "x", "\ud800"])
BLOCKS = st.one_of(
    st.builds(_text, TEXTS),
    st.builds(_call, NAMES),
    st.builds(_result, NAMES, TEXTS | st.lists(st.builds(_text, TEXTS), max_size=2)),
    st.sampled_from([{"type": "thinking", "thinking": "t"}, {"type": "thinking", "thinking": "t", "signature": "s"}]),
)
MESSAGES = st.builds(
    lambda role, content: Message(role, "prompt", tuple(content)),
    st.sampled_from(["user", "assistant", "system"]),
    st.lists(BLOCKS, max_size=4),
)


@given(st.lists(MESSAGES, max_size=8))
def test_any_messages_are_valid_when_written(messages: list[Message]) -> None:
    _assert_valid(json.loads(write_messages(messages))["messages"])
