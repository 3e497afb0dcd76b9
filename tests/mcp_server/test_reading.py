"""The tools that read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from core.service.context import context_report
from core.service.history import search
from core.service.session import opened
from core.service.sessions import list_sessions
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file
from tests.mcp_server.desk import OTHER, Desk, calling, text_of


async def test_status_is_what_the_command_line_prints(desk: Desk, mode: str) -> None:
    with opened(session_file(desk.session)) as session:
        expected = context_report(session).to_json()
    assert expected.pop("stages") is None  # what is as by default is left out
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {"session": SESSION_ID})

    assert result.structured_content == expected
    first, *rest = text_of(result).splitlines()
    assert first.startswith(
        f"{SESSION_ID} (Fix parser 0: keep the word marmalade0.): 69.1k of 1.0M tokens, 50 messages"
    )
    assert any(line.startswith("  toolu_11111111_0002  Read") for line in rest)


async def test_the_window_may_be_given(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {"session": SESSION_ID, "window_tokens": 80_000})

    assert result.structured_content is not None
    assert result.structured_content["window"]["window_tokens"] == 80_000
    assert "full: nothing but a compaction has room" in text_of(result)


@pytest.mark.parametrize(
    ("given", "bound"), [(39_999, "greater than or equal to 40000"), (10**300, "less than or equal to 1000000000")]
)
async def test_a_window_that_cannot_be_is_refused(desk: Desk, given: int, bound: str) -> None:
    async with desk.client() as client:
        result = await client.call_tool("context_status", {"session": SESSION_ID, "window_tokens": given})

    assert result.is_error
    assert f"window_tokens: Input should be {bound}" in text_of(result)


async def test_an_empty_session_has_a_status(desk: Desk) -> None:
    Transcript().write(desk.session)
    async with desk.client() as client:
        result = await client.call_tool("context_status", {"session": SESSION_ID})

    assert text_of(result).startswith(f"{SESSION_ID}: 0 of")


@pytest.mark.parametrize("name", [SESSION_ID, SESSION_ID[:3], "Fix parser 0: keep", "latest", "current"])
async def test_a_session_is_found_by_what_it_may_be_called(desk: Desk, mode: str, name: str) -> None:
    meta = calling(desk.call)
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {"session": name}, meta=meta if name == "current" else None)

    assert result.structured_content is not None
    assert result.structured_content["session"]["id"] == SESSION_ID


async def test_the_calling_session_is_meant_where_none_is_named(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {}, meta=calling(desk.call))

    assert result.structured_content is not None
    assert result.structured_content["session"]["id"] == SESSION_ID


async def test_a_call_that_the_client_is_about_to_write_is_waited_for(desk: Desk) -> None:
    whole = desk.session.read_bytes()
    desk.session.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    found = []
    looked = 0

    async with desk.with_(call_wait_s=10.0).client() as client:
        import anyio

        async def call() -> None:
            found.append(await client.call_tool("context_status", {}, meta=calling(desk.call)))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            while looked < 5:  # the call looks while this lets it
                looked += 1
                await anyio.sleep(0.01)
            desk.session.write_bytes(whole)

    assert found[0].structured_content["session"]["id"] == SESSION_ID


async def test_where_the_call_is_not_found_the_environment_says_which_session_it_is(desk: Desk, mode: str) -> None:
    async with desk.with_(session_id=OTHER).client(mode) as client:
        for meta in (None, calling("toolu_gone"), calling(7)):
            result = await client.call_tool("context_status", {}, meta=meta)

            assert result.structured_content is not None
            assert result.structured_content["session"]["id"] == OTHER


async def test_where_nothing_tells_the_error_says_what_to_do(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {})

    assert result.is_error
    assert "Name one by its id or title: list_sessions lists them" in text_of(result)


async def test_several_sessions_of_one_name_are_listed(desk: Desk, mode: str) -> None:
    Transcript(OTHER[:-1] + "2").prompt("x").write(desk.other.with_name(f"{OTHER[:-1]}2.jsonl"))
    async with desk.client(mode) as client:
        result = await client.call_tool("context_status", {"session": "2222"})

    assert result.is_error
    assert OTHER in text_of(result)


async def test_search_finds_what_the_command_line_finds(desk: Desk, mode: str) -> None:
    with opened(session_file(desk.session), whole=True) as session:
        expected = search(session, "marmalade", limit=3).to_json()
    async with desk.client(mode) as client:
        result = await client.call_tool("search_session", {"session": SESSION_ID, "text": "MARMALADE", "limit": 3})

    assert result.structured_content == expected
    assert re.fullmatch(r"(.+:1 \(prompt, active\)  Fix parser .+\n){3}there are more: .+", text_of(result))


async def test_search_takes_expressions_and_says_when_there_is_nothing(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        hit = await client.call_tool("search_session", {"session": SESSION_ID, "text": "marmalade1[01]", "regex": True})
        miss = await client.call_tool("search_session", {"session": SESSION_ID, "text": "jam"})
        wrong = await client.call_tool("search_session", {"session": SESSION_ID, "text": "(", "regex": True})

    assert hit.structured_content is not None
    assert len(hit.structured_content["hits"]) == 2
    assert text_of(miss) == "not found"
    assert wrong.is_error
    assert "Leave out what is special" in text_of(wrong)


async def test_an_output_is_read_in_pieces(desk: Desk, mode: str) -> None:
    whole, offset = "", 0
    async with desk.client(mode) as client:
        while offset >= 0:
            asked = {"session": SESSION_ID, "id": "toolu_11111111_0002", "offset": offset, "max_chars": 3_000}
            result = await client.call_tool("read_persisted_output", asked)
            assert result.structured_content is None
            first, *lines = text_of(result).split("\n")
            assert first == "toolu_11111111_0002 (Read result, active), 401 lines"
            more = re.fullmatch(r"\[[\d,]+ of 7,600 characters shown: go on with offset=(\d+)\]", lines[-1])
            whole += "\n".join(lines[:-1] if more else lines)
            offset = int(more[1]) if more else -1

    assert whole == "def parse_1(): ...\n" * 400


async def test_lines_and_matches_of_an_output(desk: Desk, mode: str) -> None:
    asked = {"session": SESSION_ID, "id": "toolu_11111111_0003"}
    async with desk.client(mode) as client:
        lines = await client.call_tool("read_persisted_output", {**asked, "from_line": 400, "to_line": 401})
        matches = await client.call_tool("read_persisted_output", {**asked, "search": "parse", "to_line": 2})
        none = await client.call_tool("read_persisted_output", {**asked, "search": "jam"})
        behind = await client.call_tool("read_persisted_output", {**asked, "offset": 9_999_999})
        below = await client.call_tool("read_persisted_output", {**asked, "from_line": 9_999})
        backwards = await client.call_tool("read_persisted_output", {**asked, "from_line": 290, "to_line": 3})
        missing = await client.call_tool("read_persisted_output", {**asked, "id": "toolu_gone"})

    assert text_of(lines).split("\n")[1:] == ["def parse_2(): ...", ""]
    assert text_of(below).endswith("401 lines: nothing behind this line")
    assert backwards.is_error
    assert "there are no lines 290 to 3" in text_of(backwards)
    assert text_of(matches).split("\n")[1:] == ["1: def parse_2(): ...", "2: def parse_2(): ..."]
    assert text_of(none).endswith("nothing matches")
    assert text_of(behind).endswith("nothing behind this offset")
    assert missing.is_error
    assert "search_session" in text_of(missing)


async def test_sessions_are_listed_as_on_the_command_line(desk: Desk, mode: str) -> None:
    expected = list_sessions(desk.config.settings.claude_dir, limit=1).to_json()
    async with desk.client(mode) as client:
        one = await client.call_tool("list_sessions", {"limit": 1})
        app = await client.call_tool("list_sessions", {"folder": "/srv/app"})
        none = await client.call_tool("list_sessions", {"folder": "/nowhere"})

    assert one.structured_content == expected
    assert text_of(one).splitlines()[1] == "there are more: a larger limit shows them"
    assert app.structured_content is not None
    assert {line["id"] for line in app.structured_content["sessions"]} == {SESSION_ID, OTHER}
    assert text_of(none) == "there are no sessions"


async def test_of_other_folders_only_what_may_be_read_is_listed(desk: Desk, tmp_path: Path, mode: str) -> None:
    inside, outside = desk.config.inline_dir, tmp_path / "elsewhere"
    mine, other = (Transcript().prompt("Hello").write(folder / "lying.jsonl") for folder in (inside, outside))
    (inside / "link.jsonl").symlink_to(other)
    async with desk.client(mode) as client:
        found = [await client.call_tool("list_sessions", {"folder": str(path.parent)}) for path in (mine, other)]

    assert [len(text_of(answer).splitlines()) for answer in found] == [1, 1]
    assert "lying" in text_of(found[0])
    assert text_of(found[1]) == "there are no sessions"


async def test_no_answer_holds_a_secret(desk: Desk, mode: str) -> None:
    secret = "AKIAIOSFODNN7EXAMPL3"
    made = Transcript(OTHER).prompt(f"My key is {secret}").use("Read", f"x\nid = {secret}\n").answer("Thanks.")
    made.write(desk.other)
    async with desk.client(mode) as client:
        answers = [
            await client.call_tool("list_sessions", {}),
            await client.call_tool("search_session", {"session": OTHER, "text": "key is"}),
            await client.call_tool("read_persisted_output", {"session": OTHER, "id": made.calls[0]}),
            await client.call_tool("context_status", {"session": OTHER}),
        ]

    for answer in answers:
        assert not answer.is_error
        assert secret not in answer.model_dump_json()
    assert "[REDACTED:" in text_of(answers[2])
    assert json.loads(answers[0].model_dump_json())["structured_content"]["sessions"]


async def test_a_name_that_is_not_utf_8_ends_no_server(desk: Desk, mode: str) -> None:
    odd = desk.session.with_name(os.fsdecode(b"w\xff.jsonl"))
    desk.session.rename(odd)
    os.utime(odd, (2e9, 2e9))
    async with desk.client(mode) as client:
        answers = [
            await client.call_tool("list_sessions", {}),
            await client.call_tool("context_status", {"session": "latest"}),
            await client.call_tool("compact_session", {"session": "latest", "dry_run": True}),
        ]
        listed = await client.list_resources()
        for resource in listed.resources:
            await client.read_resource(resource.uri)

    # What a server writes must be UTF-8; clients in the same process see the objects before that.
    assert all(answer.model_dump_json() for answer in answers)
    assert listed.model_dump_json()
    assert r"w\xff" in text_of(answers[0])
    assert [bool(answer.is_error) for answer in answers] == [False, False, True]
    assert "is not UTF-8" in text_of(answers[2])
