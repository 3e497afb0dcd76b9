from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError, UnknownFormat, WrongFormat
from core.transcript.formats import find_format, read
from tests.shared import SHARED

DATA = Path(__file__).parents[2] / "data" / "foreign"
ROW = {"parentUuid": None, "isSidechain": False, "type": "user", "message": {"role": "user", "content": "hi"}}
SAMPLES = [p for p in sorted(DATA.glob("*/*.json*")) if p.name != "expected.json"]


def _lines(*values: Any) -> bytes:
    return b"".join(json.dumps(v).encode() + b"\n" for v in values)


def sniffed(folder: Path, head: bytes) -> str:
    path = folder / "full.jsonl"
    path.write_bytes(head)
    return find_format(path).name


READ = {
    "codex": [
        _lines({"type": "session_meta", "payload": {"id": "x"}}),
        _lines({"id": "x", "timestamp": "t", "instructions": None}),
        _lines({"record_type": "state"}),
        b'{"timestamp":"t","type":"session_m\n' + _lines({"type": "event_msg", "payload": {}}),
        b'{"type":"session_meta","payload":{"base_instructions":{"text":"' + b"x" * 70_000,
    ],
    "gemini-json": [
        _lines({"sessionId": "s", "projectHash": "h", "messages": []}),
        b'{\n "sessionId": "s",\n "projectHash": "h",\n "messages": [\n  {\n   "id": "m",\n "type": "user", "con',
    ],
    "gemini-jsonl": [
        _lines({"sessionId": "s", "projectHash": "h"}),
        _lines({"id": "m", "type": "user", "content": "hi"}),
        _lines({"$set": {}}),
        _lines({"$rewindTo": "m"}),
    ],
    "claude-ai": [
        _lines([{"uuid": "c", "chat_messages": []}]),
        _lines({"uuid": "c", "chat_messages": []}),
        b'[{"uuid":"c","chat_messages":[{"uuid":"m","text":"' + b"x" * 70_000,
    ],
    "opencode": [
        _lines({"info": {"id": "s"}, "messages": [{"info": {}, "parts": []}]}),
        _lines({"info": {"id": "s"}, "messages": [{"type": "user"}]}),
        _lines({"info": {"id": "s"}, "messages": []}),
        b"Exporting session: s" + _lines({"info": {"id": "s"}, "messages": []}),
    ],
    "messages": [
        _lines({"max_tokens": 1, "messages": []}),
        _lines({"messages": [{"role": "user", "content": "hi"}]}),
        _lines([{"role": "user", "content": "hi"}]),
        _lines({"custom_id": "r", "params": {"messages": []}}),
        _lines({"custom_id": "r", "result": {"type": "expired"}}),
        _lines({"requests": [{"custom_id": "r", "params": {}}]}),
        _lines({"body": {"messages": [], "max_tokens": 1}}),
        _lines({"type": "message", "role": "assistant", "content": []}),
    ],
    "claude-code": [
        b"",
        b" \r\n\0\n\xef\xbb\xbf",
        b"\xef\xbb\xbf" + _lines(ROW),
        b"\0\0garbage { [\n" + _lines(None, [], 42, "text", {}, {"type": "user"}, ROW),
        json.dumps(ROW, indent=2).encode(),
        json.dumps(ROW, indent=2).encode().replace(b"\n", b"\r\n"),
        b'{"parentUuid":"a","type":"us\n{"parentUuid":"b","message":{"content":"' + b"x" * 70_000,
        _lines({"type": "summary", "summary": "t", "leafUuid": "l"}),
        _lines({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}),
        _lines({"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "{}"}),
        _lines({"type": "assistant", "message": None}),
        _lines({"type": "wormhole", "sessionId": "s"}),
        _lines({"type": "foldmark", "kind": "snip"}),
        _lines({**ROW, "message": {"role": "user", "content": json.dumps({"type": "session_meta", "payload": {}})}}),
    ],
}
NAMED = {
    "zstd": b"\x28\xb5\x2f\xfd....",
    "gzip": b"\x1f\x8b....",
    "SQLite": b"SQLite format 3\0....",
    "zip": b"PK\x03\x04....",
    "UTF-16": b"\xff\xfe{\0",
    "pi session": _lines({"type": "session", "id": "x", "timestamp": "t", "cwd": "/"}),
    "Copilot CLI": _lines({"type": "session.start", "data": {}, "id": "x"}),
    "Qwen Code": _lines({**ROW, "uuid": "u", "sessionId": "s", "message": {"role": "user", "parts": []}}),
    "Qwen": _lines({"uuid": "u", "parentUuid": None, "sessionId": "s", "type": "tool_result"}),
    "on the web": _lines({"loglines": []}),
    "ChatGPT": _lines([{"mapping": {}, "current_node": "n"}]),
    "ChatGPT ": _lines({"mapping": {}, "current_node": "n"}),
    "Cline session": _lines({"version": 1, "sessionId": "s", "agent": "a", "messages": [], "system_prompt": ""}),
    "screen log of Cline": _lines([{"ts": 1, "type": "say", "say": "text"}]),
    "history of a Cline": _lines([{"role": "user", "content": [], "ts": 1}]),
    "OpenAI": _lines([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": []}]),
    "OpenAI ": _lines({"messages": [{"role": "developer", "content": "a"}]}),
    "OpenAI  ": _lines({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "x", "function": {}}]}),
    "OpenAI   ": _lines({"custom_id": "r", "method": "POST", "url": "/v1", "body": {}}),
    "OpenAI    ": _lines({"choices": [{"message": {}}]}),
    "OpenAI     ": _lines({"model": "m", "input": [{"role": "user", "content": "a"}]}),
    "checkpoint of Gemini": _lines([{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": []}]),
    "checkpoint of Gemini ": _lines({"history": [{"role": "user", "parts": [{"text": "a"}]}]}),
    "Vercel": _lines([{"id": "m", "role": "user", "parts": [{"type": "text", "text": "a"}]}]),
    "Vercel ": _lines([{"id": "m", "role": "user", "content": "a", "toolInvocations": []}]),
    "LangChain": _lines([{"type": "human", "data": {}}]),
    "LangChain ": _lines([{"lc": 1, "type": "constructor", "id": []}]),
    "LangChain  ": _lines({"lc": 1, "type": "constructor", "id": []}),
    "LangChain   ": _lines([{"type": "ai", "content": "a"}]),
    "Entire": _lines({"v": 1, "agent": "a", "cli_version": "1", "type": "user", "ts": "t"}),
}


@pytest.mark.parametrize(("name", "head"), [(n, h) for n, heads in READ.items() for h in heads])
def test_formats_are_recognised_by_content(name: str, head: bytes, tmp_path: Path) -> None:
    assert sniffed(tmp_path, head) == name


@pytest.mark.parametrize(("name", "head"), NAMED.items())
def test_formats_that_are_not_read_are_named_with_advice(name: str, head: bytes, tmp_path: Path) -> None:
    with pytest.raises(WrongFormat) as caught:
        sniffed(tmp_path, head)
    assert name.strip() in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "head",
    [
        b"hello",
        b"{}",
        b"[]",
        b"[[1]]",
        b'"text"',
        b'{"a": 1}',
        b"# Notes\n\n- [x] done {really}\n",
        b"\x89PNG\r\n\x1a\n\0\0",
        b"[" * 100_000,
        b"{" * 100_000,
        b'{"a":' * 5_000,
        b'[1,\n{"a":1,\n' * 5_000,
    ],
)
def test_other_content_is_unknown(head: bytes, tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat) as caught:
        sniffed(tmp_path, head)
    assert caught.value.hint


def test_a_long_first_value_is_recognised_when_more_of_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    body = {"model": "m", "system": "x" * 200_000, "messages": [{"role": "user", "content": "hi"}]}
    path.write_text(json.dumps(body), encoding="utf-8")
    assert find_format(path).name == "messages"
    assert read(path).system == body["system"]


def test_a_long_file_of_no_format_stays_unknown(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"note\n" * 20_000)
    with pytest.raises(UnknownFormat):
        find_format(path)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_opened_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        find_format(tmp_path / name)
    assert caught.value.hint


def test_a_claude_code_transcript_has_a_reader_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(_lines(ROW))
    assert find_format(path).name == "claude-code"
    with pytest.raises(WrongFormat):
        read(path)


def test_the_rollout_whose_replacement_is_empty_is_no_empty_view() -> None:
    active = read(DATA / "cases" / "foreign-1.jsonl").active
    assert [(m.kind, m.content[0]["text"]) for m in active] == [("prompt", "hi"), ("summary", "summary")]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_name_of_a_file_does_not_matter(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "full.jsonl"
    copy.write_bytes(path.read_bytes())
    assert find_format(copy) == find_format(path)
    assert find_format(copy).read


@pytest.mark.real
def test_no_claude_code_transcript_is_misjudged() -> None:
    paths = [
        *SHARED.glob("corpus/*/projects/**/*.jsonl"),
        *SHARED.glob("real/claude-*.jsonl"),
        *(p for p in SHARED.glob("cases/*.jsonl") if not p.name.startswith("foreign-")),
    ]
    if not paths:
        pytest.skip(f"no transcripts in {SHARED}")
    assert [(p.name, f) for p in paths if (f := find_format(p).name) != "claude-code"] == []


@pytest.mark.real
def test_active_part_of_a_real_rollout_is_its_last_replacement_and_all_items_after_it() -> None:
    path = SHARED / "real" / "codex-0.142-compacted.jsonl"
    if not path.exists():
        pytest.skip(f"no file {path}")
    records = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    last = max(i for i, r in enumerate(records) if r["type"] == "compacted")
    items = records[last]["payload"]["replacement_history"] + [
        r["payload"] for r in records[last:] if r["type"] == "response_item"
    ]
    conversation = read(path)
    blocks = [b for m in conversation.active for b in m.content]
    assert len(blocks) == sum(len(i["content"]) if i["type"] == "message" else 1 for i in items)
    calls = [i["call_id"] for i in items if i["type"].endswith("_call")]
    assert [b["id"] for b in blocks if b["type"] == "tool_use"] == calls
    assert [f.kind for f in conversation.findings] == []
    assert sum(m.kind == "summary" for m in conversation.messages) == 2


@pytest.mark.real
def test_a_real_gemini_chat_is_active_as_a_whole() -> None:
    path = SHARED / "real" / "gemini-chat.json"
    if not path.exists():
        pytest.skip(f"no file {path}")
    source = json.loads(path.read_text("utf-8"))["messages"]
    conversation = read(path)
    assert conversation.active == conversation.messages
    answers = [m for m in source if m["type"] == "gemini"]
    assert sum(m.role == "assistant" for m in conversation.active) == len(answers) == 11
    calls = sum(len(m.get("toolCalls", [])) for m in answers)
    assert sum(b["type"] == "tool_result" for m in conversation.active for b in m.content) == calls
