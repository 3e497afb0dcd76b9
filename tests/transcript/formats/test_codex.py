from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.model import Block, Usage, block_text
from core.transcript.formats import Conversation, read

META = {"type": "session_meta", "payload": {"id": "own", "instructions": "Be brief.", "cwd": "/srv"}}


def _event(kind: str, **more: Any) -> Any:
    return {"type": "event_msg", "payload": {"type": kind, **more}}


def _item(kind: str, **more: Any) -> Any:
    return {"type": "response_item", "timestamp": "t", "payload": {"type": kind, **more}}


def _says(role: str, text: str) -> Any:
    return _item("message", role=role, content=[{"type": "input_text", "text": text}])


def _read(tmp_path: Path, *records: Any) -> Conversation:
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in (META, *records)), encoding="utf-8")
    return read(path)


def _texts(conversation: Conversation) -> list[str]:
    return [block_text(b) for m in conversation.active for b in m.content]


def _blocks(tmp_path: Path, *records: Any) -> list[Block]:
    return [b for m in _read(tmp_path, *records).messages for b in m.content]


def test_the_first_session_record_names_a_fork(tmp_path: Path) -> None:
    conversation = _read(tmp_path, {"type": "session_meta", "payload": {"id": "parent"}}, _says("user", "a"))
    assert (conversation.session_id, conversation.system, conversation.cwd) == ("own", "Be brief.", "/srv")


def test_history_that_begins_in_another_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "fork.jsonl"
    base = {"thread_id": "parent", "end_ordinal_exclusive": 3}
    path.write_text(json.dumps({"type": "session_meta", "payload": {"id": "x", "history_base": base}}), "utf-8")
    (finding,) = read(path).findings
    assert (finding.kind, "parent" in finding.message) == ("history-not-in-file", True)


def test_a_rollback_drops_whole_turns_and_the_compaction_in_them(tmp_path: Path) -> None:
    conversation = _read(
        tmp_path,
        *(_event("task_started"), _says("user", "one"), _says("assistant", "1"), _event("task_complete")),
        *(_event("task_started"), _says("developer", "note"), _says("user", "two")),
        {"type": "compacted", "payload": {"message": "short"}},
        *(_says("user", "steer"), _says("assistant", "2"), _event("task_complete")),
        _event("thread_rolled_back", num_turns=1),
        _says("user", "three"),
    )
    assert _texts(conversation) == ["one", "1", "three"]


@pytest.mark.parametrize(("turns", "left"), [(0, ["a", "b", "c"]), (1, ["a", "b"]), (2, ["a"]), (9, [])])
def test_turns_without_task_records_begin_with_their_prompt(tmp_path: Path, turns: int, left: list[str]) -> None:
    prompts = [_says("user", t) for t in "abc"]
    assert _texts(_read(tmp_path, *prompts, _event("thread_rolled_back", num_turns=turns))) == left


def test_the_newest_surviving_replacement_counts_and_its_summary_is_known_by_its_text(tmp_path: Path) -> None:
    replacement = [_says("user", "old")["payload"], _says("user", "Summary so far: short")["payload"]]
    conversation = _read(
        tmp_path,
        _says("user", "old"),
        {"type": "compacted", "payload": {"message": "first"}},
        {"type": "compacted", "payload": {"message": "short", "replacement_history": replacement}},
        _says("user", "new"),
    )
    assert [m.kind for m in conversation.active] == ["prompt", "summary", "prompt"]
    assert [m.uuid for m in conversation.messages if m.kind == "summary"][1] == conversation.active[1].uuid


def test_a_local_summary_keeps_the_newest_prompts_that_fit(tmp_path: Path) -> None:
    prompts = ["a" * 50_000, "b" * 50_000, "c"]
    compacted = {"type": "compacted", "payload": {"message": "short", "replacement_history": None}}
    conversation = _read(tmp_path, *(_says("user", p) for p in prompts), compacted)
    assert _texts(conversation) == [prompts[1], "c", "short"]


def test_what_the_client_injects_is_no_prompt(tmp_path: Path) -> None:
    conversation = _read(
        tmp_path,
        _says("user", "<turn_aborted>\nstopped"),
        _says("developer", "rules"),
        _item("agent_message", content="from another agent"),
        _says("user", "typed"),
    )
    assert [(m.role, m.kind) for m in conversation.messages] == [
        ("user", "meta"),
        ("system", "meta"),
        ("user", "meta"),
        ("user", "prompt"),
    ]


def test_usage_excludes_what_the_cache_gave_and_goes_to_the_response_before_it(tmp_path: Path) -> None:
    last = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 30, "output_tokens": 5}
    more = {**last, "output_tokens": 6}

    def counted(figures: dict[str, int], total: int) -> Any:
        info = {"last_token_usage": figures, "total_token_usage": {"total_tokens": total}}
        return _event("token_count", info=info)

    conversation = _read(
        tmp_path,
        counted(more, 1),
        *(_says("user", "q"), _says("assistant", "a"), counted(last, 2), counted(last, 2), counted(more, 3)),
        {"type": "compacted", "payload": {"message": "s", "replacement_history": []}},
        counted({"total_tokens": 77}, 3),
    )
    assert [m.usage for m in conversation.messages if m.role == "assistant"] == [Usage(10, 30, 60, 5)]
    assert conversation.context_tokens == 77


def test_every_kind_of_call_and_output_is_read(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "https://example.invalid/a.png"}
    blocks = _blocks(
        tmp_path,
        _item("function_call", call_id="a", name="f", arguments="{broken"),
        _item("function_call", call_id="b", name="f", arguments="[1]"),
        _item("tool_search_call", call_id="c", arguments={"q": 1}),
        _item("local_shell_call", id="d", action={"command": ["ls"]}),
        _item("web_search_call", id="e", action={"query": "q"}),
        _item("function_call_output", call_id="a", output={"content": "no", "success": False}),
        _item("function_call_output", call_id="b", output=[{"type": "input_text", "text": "x"}, image, {"odd": 1}]),
        _item("tool_search_output", call_id="c", tools=[{"name": "t"}]),
        _item("function_call_output", call_id="d", output="ok"),
    )
    assert [b.get("input") for b in blocks[:5]] == [
        {"arguments": "{broken"},
        {"arguments": [1]},
        {"q": 1},
        {"command": ["ls"]},
        {"action": {"query": "q"}},
    ]
    assert blocks[5] == {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    assert blocks[6]["content"] == [
        {"type": "text", "text": "x"},
        {"type": "image", "source": {"type": "url", "url": "https://example.invalid/a.png"}},
        {"type": "text", "text": '{"odd": 1}'},
    ]
    assert [b["content"] for b in blocks[7:]] == ['[{"name": "t"}]', "ok"]


def test_an_image_that_was_trimmed_and_opaque_items_are_told_of(tmp_path: Path) -> None:
    blocks = _blocks(
        tmp_path,
        _item("message", role="user", content=[{"type": "input_image", "image_url": None}]),
        _item("reasoning", summary=[], encrypted_content="x"),
        _item("context_compaction", encrypted_content="x"),
        _item("ghost_snapshot"),
    )
    assert blocks == [
        {"type": "text", "text": "[image: not in this file]"},
        {"type": "redacted_thinking", "data": ""},
        {"type": "compaction", "content": None},
    ]


def test_unknown_records_and_items_are_reported_and_known_ones_are_silent(tmp_path: Path) -> None:
    conversation = _read(
        tmp_path, {"type": "world_state", "payload": {}}, _item("hologram"), {"type": "x", "payload": {}}, {"y": 1}
    )
    assert [(f.kind, f.line) for f in conversation.findings] == [("unknown-type", n) for n in (3, 4, 5)]
