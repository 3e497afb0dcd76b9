"""Headers of rows, whatever their fields hold."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Damaged
from core.model import JSON, Usage
from core.transcript.decode import decode_json
from core.transcript.entries import Entry, decode_body, decode_entry, decode_row
from core.transcript.outline import outline_blocks

USER: dict[str, JSON] = {
    "parentUuid": "p",
    "isSidechain": True,
    "isMeta": True,
    "isCompactSummary": True,
    "type": "user",
    "uuid": "u",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
}
ASSISTANT: dict[str, JSON] = {
    "type": "assistant",
    "uuid": "a",
    "isApiErrorMessage": True,
    "message": {
        "id": "msg_1",
        "model": "claude-opus-4-6",
        "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}],
        "usage": {
            "input_tokens": 1,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 3,
            "output_tokens": 4,
            "cache_creation": {"ephemeral_1h_input_tokens": 2},
        },
    },
}

odd: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


def entry_of(row: JSON) -> Entry:
    entry = decode_entry(json.dumps(row, separators=(",", ":")).encode(), 7)
    assert entry is not None
    return entry


def test_a_row_says_whether_its_usage_was_worked_out() -> None:
    written: dict[str, JSON] = {**ASSISTANT, "foldmark": {"usage": {}}}
    assert not entry_of(ASSISTANT).projected
    assert entry_of(written).projected
    assert entry_of({**written, "timestamp": 5}).projected


def test_the_header_of_a_user_row() -> None:
    entry = entry_of(USER)

    assert (entry.offset, entry.size) == (7, len(json.dumps(USER, separators=(",", ":"))))
    assert (entry.type, entry.uuid, entry.parent, entry.timestamp) == ("user", "u", "p", USER["timestamp"])
    assert (entry.sidechain, entry.meta, entry.summary, entry.api_error) == (True, True, True, False)
    assert entry.tools == ("t1",)
    assert entry.on_chain
    assert not entry.is_boundary


def test_the_header_of_an_assistant_row() -> None:
    entry = entry_of(ASSISTANT)

    assert (entry.response_id, entry.model, entry.tools) == ("msg_1", "claude-opus-4-6", ("t1",))
    assert entry.usage == Usage(1, 2, 3, 4, 2)
    assert entry.api_error
    assert [o.kind for o in entry.outlines] == ["text", "tool_use"]


def test_a_row_without_a_lifetime_of_the_cache_has_none_of_an_hour() -> None:
    entry = entry_of({"type": "assistant", "message": {"usage": {"input_tokens": 5}}})

    assert entry.usage == Usage(5)


@pytest.mark.parametrize("count", [2**53 + 1, 10**18, 10**30, 10**320, -(10**18)])
def test_a_figure_that_no_context_has_counts_as_missing(count: int) -> None:
    usage: JSON = {"input_tokens": count, "output_tokens": 2, "cache_creation": {"ephemeral_1h_input_tokens": count}}

    assert entry_of({"type": "assistant", "message": {"usage": usage}}).usage == Usage(0, 0, 0, 2)


def test_a_string_is_one_text_block() -> None:
    entry = entry_of({"type": "user", "message": {"content": "häßlich"}})

    assert entry.outlines == outline_blocks([{"type": "text", "text": "häßlich"}])


def test_blocks_of_unknown_types_are_measured_whole() -> None:
    blocks: list[dict[str, JSON]] = [{"type": "text", "text": "x"}, {"type": "of_the_future", "payload": [1, 2, 3]}]

    assert entry_of({"type": "user", "message": {"content": [*blocks]}}).outlines == outline_blocks(blocks)


def test_boundaries_and_last_prompts_are_known() -> None:
    assert entry_of({"type": "system", "subtype": "compact_boundary", "uuid": "b"}).is_boundary
    assert entry_of({"type": "last-prompt", "leafUuid": "u"}).leaf == "u"


@pytest.mark.parametrize("value", ["null", "[]", "42", '"text"', "{}", '{"type":7}', '{"uuid":"u"}'])
def test_json_that_is_no_row_is_none(value: str) -> None:
    assert decode_entry(value.encode(), 0) is None


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"garbage", b'{"type":NaN}', b"[1e5,", b'{"a":"' + b"\\", b"[" * 5000 + b"]" * 5000]
)
def test_what_is_no_json_is_damaged(raw: bytes) -> None:
    with pytest.raises(Damaged):
        decode_entry(raw, 0)


@pytest.mark.parametrize("row", [USER, ASSISTANT], ids=["user", "assistant"])
@given(data=st.data())
def test_a_field_of_the_wrong_type_counts_as_missing_and_the_others_are_read(
    row: dict[str, JSON], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from([k for k in row if k != "type"]))
    raw = json.dumps({**row, key: data.draw(odd)}).replace("NaN", "0").replace("Infinity", "0").encode()

    entry = decode_entry(raw, 0)

    assert entry is not None
    assert entry.type == row["type"]
    if key != "uuid":
        assert entry.uuid == row["uuid"]


@given(odd, odd, odd)
def test_odd_content_and_usage_are_read_as_far_as_they_make_sense(content: JSON, usage: JSON, block: JSON) -> None:
    message: JSON = {
        "id": "m",
        "content": [content, {"type": "tool_use", "id": "t", "name": 5, "input": block}],
        "usage": usage,
    }
    raw = json.dumps({"type": "assistant", "uuid": "a", "message": message})
    no_json: list[str] = []
    json.loads(raw, parse_constant=no_json.append)
    if no_json:
        with pytest.raises(Damaged):
            decode_entry(raw.encode(), 0)
        return

    entry = decode_entry(raw.encode(), 0)

    assert entry is not None
    assert (entry.uuid, entry.response_id) == ("a", "m")
    assert "t" in entry.tools


def test_counts_of_tokens_that_are_no_counts_are_left_out() -> None:
    usage: JSON = {"input_tokens": True, "output_tokens": 3, "cache_read_input_tokens": 10**40, "cache_creation": 5}

    assert entry_of({"type": "assistant", "message": {"usage": usage}}).usage == Usage(output_tokens=3)
    lifetimes: JSON = {"cache_creation": {"ephemeral_1h_input_tokens": 9}, "output_tokens": "3"}
    assert entry_of({"type": "assistant", "message": {"usage": lifetimes}}).usage == Usage(cache_1h_tokens=9)


def test_a_body_is_a_row_without_its_tool_use_result() -> None:
    raw = json.dumps({**USER, "toolUseResult": {"stdout": "x" * 99}, "ownNote": True}).encode()

    body = decode_body(raw)

    assert (body["message"], body["ownNote"], body["attachment"]) == (USER["message"], True, None)
    assert "toolUseResult" not in body
    assert "toolUseResult" in decode_row(raw)


def test_a_body_has_what_foldmark_says_of_the_row() -> None:
    assert decode_body(b'{"foldmark":{"usage":{"input_tokens":3}}}')["foldmark"] == {"usage": {"input_tokens": 3}}


def test_a_body_with_bad_bytes_is_read_with_replacements() -> None:
    body = decode_body(b'{"message":{"content":"\xff \\ud800"}}')

    assert body["message"] == {"content": "\ufffd \ufffd"}


@pytest.mark.parametrize("decode", [decode_body, decode_row])
def test_a_row_that_is_no_object_is_damaged(decode: object) -> None:
    assert callable(decode)
    with pytest.raises(Damaged):
        decode(b"[1]")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'"\xff"', "\ufffd"),
        (b'"\\ud83d"', "\ufffd"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'\xef\xbb\xbf"bom"', "bom"),
        (b'\0\0"nul"\0', "nul"),
        (b"\xff" + b"1" * 0, None),
        (b"1e999", None),
        (b"[-1e999, 1]", [None, 1]),
        (b"1" * 30, int("1" * 30)),
        (b'["\\ud800", ' + b"1" * 5000 + b"]", ["\ufffd", None]),
        (b'["\\ud800", ' + b"1" * 300 + b"]", ["\ufffd", int("1" * 300)]),
    ],
)
def test_json_is_read_as_a_javascript_client_reads_it(raw: bytes, value: JSON) -> None:
    if raw == b"\xff":
        with pytest.raises(Damaged):
            decode_json(raw)
    else:
        assert decode_json(raw) == value


@given(st.binary(max_size=60) | odd.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_are_a_value_that_can_be_written_or_damaged(raw: bytes) -> None:
    try:
        value = decode_json(raw)
    except Damaged:
        return
    json.dumps(value, ensure_ascii=False).encode()
