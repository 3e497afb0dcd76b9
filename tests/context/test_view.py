"""What the model sees of the active rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.context.dialect import NEWEST, OLDER, Dialect, dialect_of
from core.context.view import INTERRUPTED, api_messages, messages_of
from core.model import JSON, Block, Message, Usage
from core.transcript.chain import load
from tests.rows import Rows, any_rows, damaged
from tests.work import grows_linearly

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
dialects = st.sampled_from([NEWEST, OLDER])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def seen(path: Path, data: bytes, dialect: Dialect = NEWEST) -> tuple[Message, ...]:
    path.write_bytes(data)
    log, chain = load(path)
    with log:
        return messages_of(log, chain, dialect)


def sent(path: Path, data: bytes, dialect: Dialect = NEWEST) -> list[tuple[JSON, list[Block]]]:
    return flat(api_messages(seen(path, data, dialect), dialect))


def flat(messages: list[dict[str, JSON]]) -> list[tuple[JSON, list[Block]]]:
    return [(m["role"], [b for b in as_list(m["content"]) if isinstance(b, dict)]) for m in messages]


def as_list(value: JSON) -> list[JSON]:
    assert isinstance(value, list)
    return value


@same_folder
@given(any_rows() | damaged(), dialects)
def test_pairs_are_whole_and_roles_alternate(path: Path, given_: Rows | bytes, dialect: Dialect) -> None:
    data = given_ if isinstance(given_, bytes) else given_.data()
    messages = sent(path, data, dialect)

    calls = [b["id"] for role, blocks in messages for b in blocks if b["type"] == "tool_use"]
    results = [b["tool_use_id"] for role, blocks in messages for b in blocks if b["type"] == "tool_result"]
    assert len(set(map(str, calls))) == len(calls)
    assert sorted(map(str, calls)) == sorted(map(str, results))
    for (role, blocks), (_, following) in pairwise([*messages, ("", [])]):
        made = [b["id"] for b in blocks if b["type"] == "tool_use"]
        answered = [b["tool_use_id"] for b in following if b["type"] == "tool_result"]
        assert sorted(map(str, made)) == sorted(map(str, answered)) or not made
        assert role != "assistant" or all(b["type"] != "tool_result" for b in blocks)
    roles = [role for role, _ in messages]
    assert all(a != b for a, b in pairwise(roles))
    assert all(blocks for _, blocks in messages)


@same_folder
@given(any_rows() | damaged(), dialects)
def test_the_same_file_gives_the_same_view(path: Path, given_: Rows | bytes, dialect: Dialect) -> None:
    data = given_ if isinstance(given_, bytes) else given_.data()

    assert seen(path, data, dialect) == seen(path, data, dialect)


@same_folder
@given(any_rows(), st.text(min_size=1, max_size=20).filter(str.strip))
def test_what_is_appended_is_the_newest_message(path: Path, transcript: Rows, text: str) -> None:
    path.write_bytes(transcript.data())
    log, chain = load(path)
    with log:
        transcript.tip = chain.leaf.uuid if chain.leaf else None
    transcript.user(text)

    after = seen(path, transcript.data())

    assert after[-1].content == ({"type": "text", "text": text},)


def conversation() -> Rows:
    transcript = Rows()
    transcript.prompt("one")
    return transcript


def test_rows_of_one_response_are_one_message(path: Path) -> None:
    transcript = conversation()
    usage: JSON = {"input_tokens": 3, "output_tokens": 4}
    for n, block in enumerate(({"type": "text", "text": "a"}, {"type": "text", "text": "b"})):
        transcript.assistant({**block}, "msg_x")
        message = transcript.rows[-1]["message"]
        assert isinstance(message, dict)
        message["usage"] = usage if n == 0 else {}

    message_ = seen(path, transcript.data())[-1]

    assert [b["text"] for b in message_.content] == ["a", "b"]
    assert message_.uuids == tuple(transcript.uuids()[-2:])
    assert message_.usage == Usage(3, output_tokens=4)


def test_rows_without_a_response_id_stay_messages_of_their_own(path: Path) -> None:
    transcript = conversation()
    transcript.add("assistant", message={"content": "plain"})
    transcript.add("assistant", message={"content": []})
    transcript.add("assistant", message={"content": 7})
    transcript.add("assistant", message=None)

    assert [m.content for m in seen(path, transcript.data())[-4:]] == [
        ({"type": "text", "text": "plain"},),
        ({"type": "text", "text": "(no content)"},),
        (),
        (),
    ]
    assert [len(blocks) for _, blocks in sent(path, transcript.data())] == [1, 3]


def test_errors_of_the_api_are_not_sent(path: Path) -> None:
    transcript = conversation()
    transcript.assistant({"type": "text", "text": "API Error"}, "", isApiErrorMessage=True)

    assert len(seen(path, transcript.data())) == 2


def test_thinking_without_a_signature_is_left_out_and_empty_thinking_with_one_kept(path: Path) -> None:
    transcript = conversation()
    for block in (
        {"type": "thinking", "thinking": "no signature"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "done"},
    ):
        transcript.assistant({**block}, "msg_x")

    kinds = [b["type"] for b in seen(path, transcript.data())[-1].content]

    assert kinds == ["thinking", "redacted_thinking", "text"]


def test_a_response_at_the_end_that_is_thinking_alone_is_not_sent(path: Path) -> None:
    transcript = conversation()
    transcript.user("two")
    transcript.assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln"}, "msg_x")

    assert [role for role, _ in sent(path, transcript.data())] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("fields", "content", "kind"),
    [
        ({}, "hello", "prompt"),
        ({"isMeta": True}, "hello", "meta"),
        ({"isCompactSummary": True}, "hello", "summary"),
        ({}, [{"type": "tool_result", "tool_use_id": "t", "content": "x"}], "results"),
        ({}, "<command-name>/clear</command-name>", "command"),
        ({}, "<local-command-stdout>x</local-command-stdout>", "command"),
        ({}, "<system-reminder>x</system-reminder>", "meta"),
        ({}, "[Request interrupted by user]", "meta"),
        ({}, [{"type": "text", "text": "<system-reminder>x"}, {"type": "image", "source": {}}], "prompt"),
        ({}, [], "prompt"),
    ],
)
def test_who_wrote_a_user_row_is_told_from_it(path: Path, fields: dict[str, JSON], content: JSON, kind: str) -> None:
    transcript = conversation()
    transcript.user(content, None, **fields)

    assert seen(path, transcript.data())[-1].kind == kind


def test_empty_text_is_not_sent(path: Path) -> None:
    transcript = conversation()
    transcript.user([{"type": "text", "text": " \n"}, {"type": "text", "text": "x"}, "loose", None])
    transcript.user("")

    assert sent(path, transcript.data())[-1] == ("user", [{"type": "text", "text": "x"}])


def test_local_commands_are_sent_unless_they_were_for_the_screen_alone(path: Path) -> None:
    transcript = conversation()
    transcript.add("system", subtype="local_command", content="<command-name>/x</command-name>")
    transcript.add("system", subtype="local_command", content="shown", isDisplayOnly=True)
    transcript.add("system", subtype="local_command", content=7)
    transcript.add("system", subtype="turn_duration", content="never sent")

    def texts(dialect: Dialect) -> list[JSON]:
        return [m.content[0]["text"] for m in seen(path, transcript.data(), dialect)[2:]]

    assert texts(NEWEST) == ["<command-name>/x</command-name>"]
    assert texts(OLDER) == ["<command-name>/x</command-name>", "shown"]


def test_notes_of_the_client_are_reminders_for_the_newest(path: Path) -> None:
    transcript = conversation()
    transcript.user([{"type": "text", "text": "go on"}, {"type": "image", "source": {}}], ownNote=True)

    newest, older = (seen(path, transcript.data(), d)[-1].content for d in (NEWEST, OLDER))

    assert newest[0]["text"] == "<system-reminder>\ngo on\n</system-reminder>"
    assert older[0]["text"] == "go on"
    assert newest[1] == older[1]


def test_reports_of_background_tasks_are_system_messages_for_the_newest(path: Path) -> None:
    transcript = conversation()
    transcript.user("<task-notification>", origin={"kind": "task-notification"})

    assert [seen(path, transcript.data(), d)[-1].role for d in (NEWEST, OLDER)] == ["system", "user"]


def test_attachments_are_sent_as_they_were_rendered(path: Path) -> None:
    transcript = conversation()
    shown: JSON = [{"content": "state"}, {"content": [{"type": "text", "text": "more"}]}, 7]
    transcript.add("attachment", attachment={"type": "date"}, rendered=shown, renderedRole="user")
    transcript.add("attachment", attachment={"type": "date"}, rendered=shown)
    transcript.add("attachment", attachment={"type": "date"})
    transcript.add("attachment", attachment={"type": "date"}, rendered=[])
    transcript.add("attachment", rendered=shown)

    messages = seen(path, transcript.data())[2:]

    assert [(m.role, m.kind) for m in messages] == [("user", "attachment"), ("system", "attachment")]
    assert [b["text"] for b in messages[0].content] == ["state", "more"]


def test_queued_prompts_are_sent_bare_by_the_newest_and_not_by_older_ones(path: Path) -> None:
    transcript = conversation()
    wrapped: JSON = [{"content": "<system-reminder>\nalso this\n</system-reminder>"}, {"content": [{"type": "image"}]}]
    transcript.add("attachment", attachment={"type": "queued_command"}, rendered=wrapped)

    (message,) = seen(path, transcript.data())[2:]

    assert message.role == "user"
    assert message.content == ({"type": "text", "text": "also this"}, {"type": "image"})
    assert len(seen(path, transcript.data(), OLDER)) == 2


def test_references_to_tools_that_were_never_loaded_are_left_out_by_the_newest(path: Path) -> None:
    transcript = conversation()
    transcript.calls(1)
    references: list[JSON] = [{"type": "tool_reference", "tool_name": name} for name in ("Known", "Unknown")]
    block: JSON = {"type": "tool_result", "tool_use_id": "toolu_5", "content": references}
    transcript.rows[-1]["message"] = {"content": [block, {"type": "text", "text": "x"}]}
    data = transcript.data()
    assert seen(path, data)[-1].content[0]["content"] == references

    transcript.add("attachment", attachment={"type": "deferred_tools_record", "entries": [{"name": "Known"}, 7, {}]})
    assert seen(path, transcript.data())[-1].content[0]["content"] == references[:1]
    assert seen(path, transcript.data(), OLDER)[-1].content[0]["content"] == references

    transcript.rows[-1]["attachment"] = {"type": "deferred_tools_record", "entries": 7}
    assert seen(path, transcript.data())[-1].content[0]["content"] == references


def test_parallel_results_stand_in_file_order_for_the_newest(path: Path) -> None:
    transcript = conversation()
    transcript.calls(3, order=2)
    transcript.prompt("two")

    def order(dialect: Dialect) -> list[JSON]:
        blocks = [b for _, blocks in sent(path, transcript.data(), dialect) for b in blocks]
        return [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]

    in_file = [row["message"] for row in transcript.rows if "tool_use_id" in str(row)]
    written = [as_list(m["content"])[0] for m in in_file if isinstance(m, dict)]
    expected = [b["tool_use_id"] for b in written if isinstance(b, dict)]
    assert order(NEWEST) == expected
    assert sorted(map(str, order(OLDER))) == sorted(map(str, expected))


def test_an_open_call_at_the_end_gets_an_error_result_from_the_newest_and_is_dropped_by_older_ones(path: Path) -> None:
    transcript = conversation()
    transcript.calls(2, answered=1)

    newest = sent(path, transcript.data())[-1][1]
    assert [b.get("is_error") for b in newest] == [None, True]
    assert newest[1]["content"] == INTERRUPTED
    older = sent(path, transcript.data(), OLDER)
    assert [b["type"] for b in older[-2][1]].count("tool_use") == 1


def test_an_open_call_with_a_prompt_behind_it_is_left_out(path: Path) -> None:
    transcript = conversation()
    transcript.calls(1, answered=0)
    transcript.user("never mind")

    assert "tool_use" not in str(sent(path, transcript.data()))


def test_a_view_of_messages_that_no_response_is_in() -> None:
    assert api_messages([]) == []
    assert flat(api_messages([Message("user", "prompt", ({"type": "text", "text": "hi"},))])) == [
        ("user", [{"type": "text", "text": "hi"}])
    ]


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ("2.1.332", NEWEST),
        ("2.1.197", OLDER),
        ("2.0.76 (Claude Code)", OLDER),
        ("1.0.128", OLDER),
        ("3.0.0", NEWEST),
        ("", NEWEST),
        ("2.1", NEWEST),
        ("new", NEWEST),
    ],
)
def test_the_dialect_is_told_from_the_version(version: str, dialect: Dialect) -> None:
    assert dialect_of(version) is dialect


def rounds(count: int) -> Callable[[], object]:
    """Makes `count` responses with a call each, and sends them."""
    messages: list[Message] = []
    for n in range(count):
        call: Block = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {}}
        result: Block = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "text"}
        messages.append(Message("assistant", "response", (call,), (f"a{n}",), f"m{n}"))
        messages.append(Message("user", "results", (result,), (f"r{n}",)))
    return lambda: api_messages(messages)


def test_calls_and_results_whose_ids_are_no_text_are_not_sent(path: Path) -> None:
    transcript = Rows()
    transcript.assistant({"type": "text", "text": "Look."}, "m")
    transcript.assistant({"type": "tool_use", "id": {}, "name": "Read", "input": {}}, "m")
    transcript.user([{"type": "tool_result", "tool_use_id": {}, "content": "x"}])

    assert sent(path, transcript.data()) == [("assistant", [{"type": "text", "text": "Look."}])]


def test_a_session_of_twice_the_length_is_twice_the_work() -> None:
    assert grows_linearly(rounds)
