"""The body of the next request: marks, edits, thinking, and bytes that stay as they were sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.api.payload import betas, count_payload
from core.context.decisions import CacheEdited, Decision, fold
from core.errors import InputError
from core.model import JSON, Block, Message
from core.service.session import Session, opened
from core.stages.base import Scene
from core.stages.microcompact import Microcompact, MicrocompactSettings
from core.transcript.projects import session_file
from core.turn.request import RequestOptions, build, server_cleared_tokens
from tests.stages.build import MODEL, History, image, resumed, run, text

CASES = Path(__file__).parent.parent / "data" / "cases"
TOOLS: list[Block] = [{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "Read", "input_schema": {}}]
MARK = {"type": "ephemeral", "ttl": "5m"}
LONG = "line of a file\n" * 900


def body(scene: Scene, options: RequestOptions | None = None) -> Any:
    return build(scene, "You are careful.", TOOLS, options)


def blocks(value: Any) -> Iterator[Any]:
    """All blocks of a body, in the order of the cache."""
    yield from value.get("tools", [])
    yield from value.get("system", [])
    for message in value["messages"]:
        yield from message["content"]


def marked(value: Any) -> list[Any]:
    return [b for b in blocks(value) if "cache_control" in b]


def bare(value: Any) -> Any:
    """Without cache marks, which are no part of what is cached."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "cache_control"}
    return [bare(v) for v in value] if isinstance(value, list) else value


def hashes(value: Any) -> list[str]:
    """A hash for each block, of all bytes up to it."""
    total = hashlib.sha256()
    out = []
    for block in blocks(bare(value)):
        total.update(msgspec.json.encode(block))
        out.append(total.hexdigest())
    return out


@contextmanager
def case(name: str) -> Iterator[Session]:
    with opened(session_file(CASES / f"{name}.jsonl")) as session:
        yield session


def scene_of(session: Session) -> Scene:
    return Scene(session.messages, MODEL, store_folder="/store", auto_threshold_tokens=167_000)


# cache-1


def test_the_same_input_gives_the_same_bytes() -> None:
    with case("cache-1") as first, case("cache-1") as second:
        assert msgspec.json.encode(body(scene_of(first))) == msgspec.json.encode(body(scene_of(second)))


def test_a_turn_more_keeps_the_earlier_messages_byte_for_byte() -> None:
    with case("cache-1") as session:
        scene = scene_of(session)
    ends = [i for i, m in enumerate(scene.messages) if m.kind == "prompt"]
    bodies = [hashes(body(replace(scene, messages=scene.messages[: end + 1]))) for end in ends]

    assert len(bodies) > 3
    assert all(after[: len(before)] == before for before, after in pairwise(bodies))


def test_after_a_microcompact_a_resume_sends_the_same_bytes() -> None:
    with case("cache-1") as session:
        scene = replace(scene_of(session), now=datetime(2026, 1, 5, 12, tzinfo=UTC))
    plan, after = run(Microcompact(MicrocompactSettings(time_based=True)), scene)

    assert len(plan.decisions) == 3  # one edit, not many
    assert msgspec.json.encode(body(after)) == msgspec.json.encode(body(resumed(scene, plan.decisions)))
    assert hashes(body(after)) != hashes(body(scene))


def test_only_the_last_of_three_summaries_is_sent() -> None:
    with case("thrash-1") as session:
        sent = msgspec.json.encode(body(scene_of(session))).decode()

    assert sent.count("This session is being continued") == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("use", "prompt", "pair")), st.sampled_from(("", "ok", LONG)), st.sampled_from(("", "hm"))
    ),
    min_size=1,
    max_size=16,
)


@given(STEPS, st.sampled_from(("content", "pinned", "public")), st.booleans())
def test_each_request_begins_with_the_one_before(steps: list[tuple[str, str, str]], edits: Any, system: bool) -> None:
    history = History().prompt("Go.")
    how = RequestOptions(edits=edits, system_messages=system)
    bodies = [body(history.scene(), how)]
    for n, (kind, content, thinking) in enumerate(steps):
        if kind == "prompt":
            history.answer("Done.", thinking).prompt(f"Next {n}.")
        elif kind == "use":
            history.use(f"c{n}", "Read", content, thinking=thinking, file_path=f"/{n}")
        else:
            history.calls((f"a{n}", "Bash", {}), (f"b{n}", "Bash", {})).result(f"b{n}", content).result(f"a{n}", "x")
        bodies.append(body(history.scene(), how))
        marks = marked(bodies[-1])
        assert 3 <= len(marks) <= 4
    for before, after in pairwise(map(hashes, bodies)):
        assert after[: len(before)] == before


# marks


def test_tools_system_newest_and_previous_message_are_marked() -> None:
    history = History().prompt("Go.").use("c1", "Bash", "ok").answer("Done.").prompt("More.", image())

    sent = body(history.scene())

    assert [*sent] == ["model", "max_tokens", "tools", "system", "messages"]
    assert [b.get("name") or b["type"] for b in marked(sent)] == ["Read", "text", "tool_result", "image"]
    assert all(b["cache_control"] == MARK for b in marked(sent))


def test_system_and_tools_may_stay_longer_than_the_messages_not_the_other_way() -> None:
    scene = History().prompt("Go.").scene()

    lives = [b["cache_control"]["ttl"] for b in marked(body(scene, RequestOptions(fixed_life="1h")))]
    assert lives == ["1h", "1h", "5m"]
    with pytest.raises(InputError, match="cannot outlive"):
        body(scene, RequestOptions(message_life="1h"))
    unmarked = body(scene, RequestOptions(fixed_life=None, message_life=None))
    assert marked(unmarked) == []
    assert len(marked(body(scene, RequestOptions(fixed_life=None, message_life="1h")))) == 1


def test_marks_of_whoever_sent_it_before_are_taken_off() -> None:
    mark: dict[str, JSON] = {"cache_control": {"type": "ephemeral"}}
    history = History().prompt({**text("Go."), **mark})
    for n in range(3):
        history.use(f"c{n}", "Bash", [{**text("ok"), **mark}, text("more")])
    system: list[Block] = [{**text("One."), **mark}, text("Two.")]

    sent = build(history.scene(), system, [{**TOOLS[0], **mark}, TOOLS[1]])

    assert msgspec.json.encode(sent).count(b"cache_control") == 4


def test_without_system_prompt_and_tools_neither_is_there() -> None:
    sent = build(History().prompt("Go.").scene(), "", [])

    assert [*sent] == ["model", "max_tokens", "messages"]
    assert build(History().scene(), [], [])["messages"] == []


def test_thinking_is_never_marked() -> None:
    history = History().prompt("Go.")
    thought: Block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    history.messages.append(Message("assistant", "response", (text("So."), thought), ("u2",), "msg_2"))

    assert [b["type"] for b in marked(body(history.scene()))[2:]] == ["text", "text"]


# what the API demands


def test_pairs_are_whole_roles_alternate_and_no_text_is_empty() -> None:
    history = History().prompt("Go.", " ").calls(("open", "Bash", {})).prompt("Stop.").prompt("Go on.")
    history.result("lost", "nobody asked").answer(" ").calls(("last", "Bash", {}))

    sent = body(history.scene())["messages"]

    assert all(a["role"] != b["role"] for a, b in pairwise(sent))
    assert [b["type"] for b in blocks({"messages": sent})] == ["text", "text", "text", "tool_use", "tool_result"]
    assert sent[-1]["content"][0]["is_error"] is True


def test_thinking_is_sent_as_it_was_and_not_at_all_without_a_signature() -> None:
    history = History().prompt("Go.").answer("So.", thinking="hm")
    unsigned: Block = {"type": "thinking", "thinking": "draft", "signature": ""}
    history.messages.append(Message("assistant", "response", (unsigned, text("And so.")), ("u9",), "msg_9"))
    history.prompt("On.")

    sent = body(history.scene())["messages"][1]["content"]

    assert [b["type"] for b in sent] == ["thinking", "text", "text"]
    assert sent[0] == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def test_system_messages_are_the_users_where_the_model_takes_none() -> None:
    history = History().prompt("Go.").answer("Yes.")
    note = Message("system", "attachment", (text("A task ended."),), ("s1",))
    scene = replace(history.scene(), messages=[*history.messages, note])

    assert body(scene)["messages"][-1]["role"] == "system"
    assert body(scene, RequestOptions(system_messages=False))["messages"][-1]["role"] == "user"


# edits that the server makes


def edited(*edits: CacheEdited) -> Scene:
    history = History().prompt("Go.")
    for n in range(4):
        history.use(f"c{n}", "Read" if n else "Skill", LONG, file_path=f"/{n}")
    history.prompt("On.")
    return replace(history.scene(), state=fold(edits))


def places(sent: Any) -> list[tuple[int, list[str]]]:
    """Where the cache edits stand, and what they delete."""
    return [
        (i, [e["cache_reference"] for e in b["edits"]])
        for i, m in enumerate(sent["messages"])
        for b in m["content"]
        if b["type"] == "cache_edits"
    ]


def test_pinned_edits_stay_where_they_were_made_and_every_result_can_be_referred_to() -> None:
    first, second = CacheEdited(("c0", "c1"), "u7", 3), CacheEdited(("c2",), "u10", 4)
    how = RequestOptions(edits="pinned")

    assert places(body(edited(first), how)) == [(6, ["c0", "c1"])]
    assert places(body(edited(first, second), how)) == [(6, ["c0", "c1"]), (8, ["c2"])]
    results = [b for b in blocks(body(edited(), how)) if b.get("type") == "tool_result"]
    assert [b["cache_reference"] for b in results] == ["c0", "c1", "c2", "c3"]
    assert places(body(edited(first))) == []


def test_a_pinned_edit_whose_message_has_gone_stands_at_the_newest_result_that_it_names() -> None:
    how = RequestOptions(edits="pinned")

    assert places(body(edited(CacheEdited(("c0", "c1", "gone"), "gone", 3)), how)) == [(4, ["c0", "c1"])]
    assert places(body(edited(CacheEdited(("gone",), "u7", 3)), how)) == []


def test_the_public_edit_clears_up_to_the_newest_cleared_result_and_leaves_out_the_tools_before_it() -> None:
    how = RequestOptions(edits="public")

    sent = body(edited(CacheEdited(("c1", "c2"), "u7", 3)), how)

    assert sent["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "tool_uses", "value": 1},
                "keep": {"type": "tool_uses", "value": 1},
                "exclude_tools": ["Skill"],
            }
        ]
    }
    assert betas(sent) == ("context-management-2025-06-27",)
    assert "context_management" not in body(edited(), how)
    assert betas(body(edited())) == ()


def test_a_decision_of_the_stage_clears_the_same_in_each_later_request() -> None:
    history = History().prompt("Go.")
    for n in range(12):
        history.use(f"c{n}", "Read", LONG, file_path=f"/{n}")
    plan, scene = run(Microcompact(MicrocompactSettings(form="public")), history.scene(auto_threshold_tokens=400_000))
    cleared = len(scene.state.cleared_on_server)
    how = RequestOptions(edits="public")

    history.calls(("open", "Bash", {}))
    later = body(replace(scene, messages=history.messages), how)

    assert plan.decisions
    assert body(scene, how)["context_management"]["edits"][0]["keep"]["value"] == 12 - cleared
    assert later["context_management"]["edits"][0]["keep"]["value"] == 13 - cleared


# thinking


THINKS: dict[str, JSON] = {"type": "adaptive"}


def thought(gaps_minutes: list[float]) -> History:
    """Turns with thinking, so many minutes apart."""
    history, time = History(), datetime(2026, 3, 1, 10, tzinfo=UTC)
    for gap in gaps_minutes:
        time += timedelta(minutes=gap)
        history.prompt("Go.").answer("Done.", thinking="hm")
        history.messages[-2:] = [replace(m, timestamp=time.isoformat()) for m in history.messages[-2:]]
    return history


def kept(history: History, **fields: Any) -> Any:
    sent = body(history.scene(**fields), RequestOptions(edits="public", thinking=THINKS))
    assert sent["thinking"] == THINKS
    edit = sent["context_management"]["edits"][0]
    assert edit["type"] == "clear_thinking_20251015"
    return edit["keep"]


def test_all_thinking_is_kept_while_the_cache_is_warm_the_last_turn_when_it_is_cold() -> None:
    history = thought([0, 1, 1])
    last = datetime(2026, 3, 1, 10, 2, tzinfo=UTC)

    assert kept(history) == "all"
    assert kept(history, now=last + timedelta(minutes=4)) == "all"
    assert kept(history, now=last + timedelta(minutes=6)) == {"type": "thinking_turns", "value": 1}


def test_what_was_cleared_when_it_was_cold_stays_cleared() -> None:
    assert kept(thought([0, 1, 9, 1])) == {"type": "thinking_turns", "value": 3}
    assert kept(thought([0, 1, 9, 1, 9])) == {"type": "thinking_turns", "value": 2}


def test_without_times_thinking_is_kept_and_with_edits_of_the_content_nothing_is_asked_for() -> None:
    history = thought([0, 9])
    history.messages[:] = [replace(m, timestamp="") for m in history.messages]

    assert kept(history) == "all"
    assert "context_management" not in body(history.scene(), RequestOptions(thinking=THINKS))


def test_responses_without_prompts_between_them_are_dated_by_themselves() -> None:
    history = thought([0, 9])
    del history.messages[2]

    assert kept(history) == {"type": "thinking_turns", "value": 2}


# counting


def test_the_count_takes_what_is_sent_and_nothing_of_the_call() -> None:
    sent = body(edited(CacheEdited(("c1",), "u7", 3)), RequestOptions(edits="public", thinking=THINKS))

    assert [*count_payload(sent)] == ["model", "system", "tools", "messages", "thinking", "context_management"]


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        ({"usage": {"cache_deleted_input_tokens": 7}}, 7),
        ({"context_management": {"applied_edits": [{"cleared_input_tokens": 50}, {"cleared_input_tokens": 5}]}}, 55),
        ({"usage": {}, "context_management": {"applied_edits": [None, {"cleared_thinking_turns": 1}]}}, 0),
        ({"usage": None, "context_management": {}}, 0),
        ({}, 0),
    ],
)
def test_what_the_server_cleared_is_what_it_says(response: dict[str, JSON], tokens: int) -> None:
    assert server_cleared_tokens(response) == tokens


def test_decisions_survive_the_record() -> None:
    made: list[Decision] = [CacheEdited(("c0",), "u7", 3)]

    assert body(resumed(edited(), made), RequestOptions(edits="pinned")) == body(
        edited(CacheEdited(("c0",), "u7", 3)), RequestOptions(edits="pinned")
    )


def test_a_choice_of_tools_goes_along_with_tools_only() -> None:
    options = RequestOptions(tool_choice={"type": "none"})
    scene = History().prompt("Hi.").scene()

    assert build(scene, "", TOOLS, options)["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in build(scene, "", [], options)


def test_a_history_without_its_beginning_is_begun_by_the_user() -> None:
    scene = History().answer("So.").prompt("And?").scene()

    assert [m["role"] for m in body(scene)["messages"]] == ["user", "assistant", "user"]


def test_a_compaction_of_the_api_stands_in_front() -> None:
    block: Block = {"type": "compaction", "content": "What was."}
    first = Message("assistant", "response", (block,), ("c",))
    scene = Scene((first, *History().prompt("And?").messages), MODEL)

    assert body(scene)["messages"][0]["content"][0]["type"] == "compaction"


def test_what_stands_in_front_comes_before_the_history_but_behind_a_compaction_of_the_api() -> None:
    front = (Message("user", "meta", (text("Rules."),), ("front",)),)
    asked = Message("user", "prompt", (text("Go."),), ("p",))
    folded = Message("assistant", "response", ({"type": "compaction", "content": "It was long."},), ("c",))

    plain: Any = build(Scene((asked,), MODEL), "", (), front=front)
    behind: Any = build(Scene((folded, asked), MODEL), "", (), front=front)

    assert [b["text"] for b in plain["messages"][0]["content"]] == ["Rules.", "Go."]
    assert [m["role"] for m in behind["messages"]] == ["assistant", "user"]
    assert [b["text"] for b in behind["messages"][1]["content"]] == ["Rules.", "Go."]
