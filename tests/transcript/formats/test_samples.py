"""Every line of the expectations beside the samples: everything, the active part, the session, and what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.errors import SessionNotFound
from core.model import Block, Message, block_text, tool_results, tool_uses
from core.transcript.formats import Conversation, read

DATA = Path(__file__).parents[2] / "data" / "foreign"
NAMES = {
    "codex": "codex",
    "gemini-json": "gemini-json",
    "gemini-jsonl": "gemini-jsonl",
    "claude-ai-export": "claude-ai",
    "opencode-export": "opencode",
    "messages-api": "messages",
}
Item = dict[str, Any]


def _cases() -> list[Any]:
    cases = []
    for folder in NAMES:
        expected = json.loads((DATA / folder / "expected.json").read_text("utf-8"))
        for name, facts in expected["files"].items():
            for one in facts.get("conversations", [facts]):
                pick = one["session"]["id"] if "conversations" in facts else ""
                cases.append(pytest.param(folder, name, pick, one, id=f"{folder}/{name}/{pick[-4:]}"))
    return cases


CASES = _cases()


def _text_item(message: Message, text: str) -> Item:
    if message.kind == "summary":
        return {"kind": "summary", "text": text}
    if text.startswith("[file: "):
        return {"kind": "file", "role": message.role, "name": text[7:-1]}
    injected = {"injected": True} if message.kind in ("meta", "command") else {}
    return {"kind": "text", "role": message.role, "text": text, **injected}


def _item(message: Message, block: Block, name: str) -> Item | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return _text_item(message, text)
        case {"type": "image", "source": {"media_type": media}}:
            return {"kind": "image", "role": message.role, "media": media}
        case {"type": "document", "source": {"data": data}} if name == "claude-ai":
            return {"kind": "attachment", "role": message.role, "name": block.get("title", ""), "text": data}
        case {"type": "document"}:
            return {"kind": "file", "role": message.role, "name": block["title"]}
        case {"type": "thinking", "thinking": text}:
            return {"kind": "thinking", "text": text, "opaque": False}
        case {"type": "redacted_thinking"}:
            return {"kind": "thinking", "text": "", "opaque": True}
        case {"type": "tool_use" | "server_tool_use", "id": call, "name": tool, "input": {**value}}:
            raw = value["input"] if set(value) == {"input"} else value
            return {"kind": "call", "id": call, "name": tool, "input": raw}
        case {"type": "web_search_tool_result", "tool_use_id": call, "content": [{"title": title, "url": url}]}:
            return {"kind": "result", "id": call, "text": f"{title} {url}", "error": False}
        case {"type": "tool_result", "tool_use_id": call}:
            error = block.get("is_error") is True
            return {"kind": "result", "id": call, "text": block_text(block), "error": error}
        case {"type": "compaction", "content": content}:
            return {"kind": "summary", "text": content} if content or message.role == "user" else None
    raise AssertionError(block)


def _items(messages: tuple[Message, ...], name: str) -> list[Item]:
    return [item for m in messages for b in m.content if (item := _item(m, b, name))]


def _calls_before_results(items: list[Item]) -> list[Item]:
    """How calls and results of one step are grouped is left to the reader: in each run the calls come first here."""
    out: list[Item] = []
    run: list[Item] = []
    for item in [*items, {"kind": "end"}]:
        if item["kind"] in ("call", "result"):
            run.append(item)
            continue
        out += sorted(run, key=lambda i: str(i["kind"]))
        out.append(item)
        run = []
    return out[:-1]


def _read(folder: str, name: str, pick: str) -> Conversation:
    return read(DATA / folder / name, pick)


@pytest.mark.parametrize("part", ["all", "active"])
@pytest.mark.parametrize(("folder", "name", "pick", "facts"), CASES)
def test_all_and_active_hold_what_is_expected_in_order(
    folder: str, name: str, pick: str, facts: Item, part: str
) -> None:
    conversation = _read(folder, name, pick)
    found = conversation.messages if part == "all" else conversation.active
    assert _calls_before_results(_items(found, conversation.format)) == _calls_before_results(facts[part])


@pytest.mark.parametrize(("folder", "name", "pick", "facts"), CASES)
def test_session_is_described_as_expected(folder: str, name: str, pick: str, facts: Item) -> None:
    conversation = _read(folder, name, pick)
    assert conversation.format == NAMES[folder]
    found = {
        "id": conversation.session_id,
        "cwd": conversation.cwd,
        "client_version": conversation.client_version,
        "model": conversation.model,
        "title": conversation.title,
        "system": conversation.system,
        "tools": [tool["name"] for tool in conversation.tools],
    }
    session = facts.get("session", {})
    assert {key: found[key] for key in session} == session


@pytest.mark.parametrize(("folder", "name", "pick", "facts"), CASES)
def test_pairs_are_reported_as_expected(folder: str, name: str, pick: str, facts: Item) -> None:
    conversation = _read(folder, name, pick)
    found = [(f.kind, f.message) for f in conversation.findings]
    assert [m.split()[2] for k, m in found if k in ("unpaired-call", "open-call")] == facts.get("unanswered", [])
    assert [m.split()[2] for k, m in found if k == "orphan-result"] == facts.get("orphans", [])
    parallel = [[c["id"] for c in tool_uses(m)] for m in conversation.messages if len(tool_uses(m)) > 1]
    if "damaged" not in name:
        assert parallel == facts.get("parallel", parallel)


@pytest.mark.parametrize(("folder", "name", "pick", "facts"), CASES)
def test_every_message_has_an_id_of_its_own_that_a_second_read_repeats(
    folder: str, name: str, pick: str, facts: Item
) -> None:
    conversation = _read(folder, name, pick)
    for messages in (conversation.messages, conversation.active):
        assert max(Counter(m.uuid for m in messages).values(), default=1) == 1
        assert all(m.uuid for m in messages)
    assert _read(folder, name, pick) == conversation


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("codex/damaged.jsonl", {"garbage-line": 13, "joined-line": 18, "unknown-type": 21, "torn-tail": 24}),
        ("gemini-json/damaged.json", {"cut-document": 0}),
        ("gemini-jsonl/damaged.jsonl", {"garbage-line": 4, "joined-line": 11, "torn-tail": 16}),
        ("opencode-export/damaged.json", {"text-before": 1, "unknown-type": 0, "missing-part": 0}),
        ("messages-api/damaged.json", {"not-a-row": 0, "missing-part": 0, "orphan-result": 0, "unpaired-call": 0}),
    ],
)
def test_damage_is_reported_with_its_line(path: str, kinds: dict[str, int]) -> None:
    found = {f.kind: f.line for f in read(DATA / path).findings}
    assert kinds.items() <= found.items()


def test_damage_of_one_conversation_in_an_export_is_reported() -> None:
    found = {f.kind for f in read(DATA / "claude-ai-export/damaged.json", "Garden plan").findings}
    assert found == {"cut-document", "not-a-row", "missing-parent", "unknown-type"}


@pytest.mark.parametrize(("folder", "name", "pick", "facts"), [c for c in CASES if "rolled_back" in c.values[3]])
def test_rolled_back_messages_are_kept_but_not_active(folder: str, name: str, pick: str, facts: Item) -> None:
    conversation = _read(folder, name, pick)
    every, active = (_items(m, conversation.format) for m in (conversation.messages, conversation.active))
    for item in facts["rolled_back"]:
        assert item in every
        assert item not in active


def test_codex_usage_is_that_of_each_response_and_repeats_are_not_counted() -> None:
    conversation = read(DATA / "codex/sample.jsonl")
    facts = json.loads((DATA / "codex/expected.json").read_text("utf-8"))["files"]["sample.jsonl"]
    usages = [m.usage for m in conversation.messages if m.usage]
    total = facts["usage_total"]
    assert sum(u.prompt_tokens for u in usages) == total["input_tokens"]
    assert sum(u.cache_read_tokens for u in usages) == total["cached_input_tokens"]
    assert sum(u.output_tokens for u in usages) == total["output_tokens"]
    assert conversation.context_tokens == facts["context_after_compaction"]


def test_gemini_usage_counts_cached_input_once_and_thinking_as_output() -> None:
    path = DATA / "gemini-json/session-2026-01-10T10-00-0a0a0a0a.json"
    usages = [m.usage for m in read(path).messages if m.usage]
    total = json.loads((DATA / "gemini-json/expected.json").read_text("utf-8"))["files"][path.name]["usage_sum"]
    assert sum(u.prompt_tokens for u in usages) == total["input"]
    assert sum(u.cache_read_tokens for u in usages) == total["cached"]
    assert sum(u.output_tokens for u in usages) == total["output"] + total["thoughts"]


def test_opencode_usage_adds_up_to_the_stated_total() -> None:
    usages = [m.usage for m in read(DATA / "opencode-export/ses_demo.json").messages if m.usage]
    assert {u.total_tokens for u in usages} == {130}


def test_usage_of_a_batch_result_is_read() -> None:
    (message,) = read(DATA / "messages-api/batch-results.jsonl", "r2").messages
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens, message.response_id) == (9, 3, "msg_demo")


def test_failed_batch_request_says_why() -> None:
    (finding,) = read(DATA / "messages-api/batch-results.jsonl", "r1").findings
    assert "invalid_request_error" in finding.message


def test_pruned_opencode_output_is_named() -> None:
    findings = read(DATA / "opencode-export/ses_demo.json").findings
    assert [f.message.split()[-1] for f in findings if f.kind == "pruned-output"] == ["call_1"]


def test_images_in_results_stay_in_them() -> None:
    conversation = read(DATA / "messages-api/request.json")
    images = {
        str(r["tool_use_id"]): sum(isinstance(b, dict) and b["type"] == "image" for b in r["content"])
        for m in conversation.messages
        for r in tool_results(m)
        if isinstance(r["content"], list)
    }
    assert images == {"toolu_a": 1}


def test_branches_of_a_claude_ai_conversation_are_all_kept() -> None:
    conversation = read(DATA / "claude-ai-export/conversations.json", "Garden plan")
    ids = [m.uuid for m in conversation.messages]
    active = {m.uuid for m in conversation.active}
    assert [i in active for i in ("u2", "a2")] == [False, False]
    assert {"u2", "a2"} <= set(ids)
    assert [i for i in ids if i in ("u2b", "a2b", "u3", "a3")] == ["u2b", "a2b", "u3", "a3"]
    assert {"u2b", "a2b", "u3", "a3"} <= active


def test_messages_api_blocks_are_the_same_as_in_the_file() -> None:
    path = DATA / "messages-api/request.json"
    source = [m["content"] for m in json.loads(path.read_text("utf-8"))["messages"]]
    found = [list(m.content) for m in read(path).messages]
    assert found == [[{"type": "text", "text": c}] if isinstance(c, str) else c for c in source]


@pytest.mark.parametrize(
    ("path", "pick", "names"),
    [
        ("claude-ai-export/conversations.json", "", ["c0000000-0000-4000-8000-000000000001", "Garden plan"]),
        ("claude-ai-export/conversations.json", "c0000000", ["c0000000-0000-4000-8000-000000000002"]),
        ("messages-api/batch.jsonl", "", ["r1", "r2"]),
        ("messages-api/batch.jsonl", "r9", ["r1", "r2"]),
    ],
)
def test_several_conversations_are_listed_when_none_is_picked(path: str, pick: str, names: list[str]) -> None:
    with pytest.raises(SessionNotFound) as caught:
        read(DATA / path, pick)
    assert all(name in str(caught.value) for name in names)
    assert caught.value.hint


@pytest.mark.parametrize("pick", ["c0000000-0000-4000-8000-000000000001", "Garden plan", "1"])
def test_a_conversation_is_picked_by_id_title_or_number(pick: str) -> None:
    assert read(DATA / "claude-ai-export/conversations.json", pick).title == "Garden plan"
