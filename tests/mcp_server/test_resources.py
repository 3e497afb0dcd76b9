"""Resources, prompts, and the completion of their arguments."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from core.service.context import context_report
from core.service.session import opened
from core.service.sessions import list_sessions
from core.service.snip import snip
from core.service.stages import StageSettings
from core.service.view import view
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file
from mcp_server import uris
from tests.mcp_server.desk import OTHER, Desk


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    return str(content.text)  # type: ignore[union-attr]


def address(template: str, session: str = SESSION_ID, **values: str) -> str:
    return template.replace("{?offset}", "").format(session=session, **values)


def snipped(desk: Desk) -> str:
    """Another session, out of which messages were taken; its id."""
    config = desk.config
    target = config.target(in_place=False, dry_run=False)
    return snip(
        session_file(desk.session), "toolu_11111111_0002", "toolu_11111111_0004", target, StageSettings()
    ).output_id


async def test_the_list_names_the_newest_sessions_by_their_titles(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates

    titles = {str(r.uri): r.title for r in resources}
    assert titles["foldmark://sessions"] == "Sessions"
    assert titles[f"foldmark://session/{OTHER}/status"] == "The cart"
    assert titles["ui://foldmark/context"] == "What fills the context"
    assert {t.uri_template for t in templates} == {
        uris.STATUS,
        uris.VIEW,
        uris.SUMMARY,
        uris.MEMORY,
        uris.OUTPUTS,
        uris.OUTPUT,
    }
    assert all(t.description for t in templates)


async def test_resources_hold_what_the_command_line_prints(desk: Desk, mode: str) -> None:
    claude_dir = desk.config.settings.claude_dir
    with opened(session_file(desk.session)) as session:
        report, messages = context_report(session), view(session).messages
    async with desk.client(mode) as client:
        listed = json.loads(await read(client, uris.SESSIONS))
        status = json.loads(await read(client, address(uris.STATUS)))
        page = json.loads(await read(client, address(uris.VIEW)))
        rest = json.loads(await read(client, f"{address(uris.VIEW)}?offset={page['next_offset']}"))

    assert listed == list_sessions(claude_dir).to_json()
    assert status == report.to_json()
    assert page["messages"] + rest["messages"] == messages
    assert rest["next_offset"] is None


async def test_what_was_taken_out_is_listed_and_read(desk: Desk, mode: str) -> None:
    ident = snipped(desk)
    async with desk.client(mode) as client:
        outputs = json.loads(await read(client, address(uris.OUTPUTS, ident)))["outputs"]
        texts = [await read(client, address(uris.OUTPUT, ident, output=line["id"])) for line in outputs]
        piece = await read(client, address(uris.OUTPUT, output="toolu_11111111_0003") + "?offset=7581")

    assert outputs
    assert all(line["where"] == "stored" for line in outputs)
    assert any("def parse_2" in text for text in texts)
    assert piece == "def parse_2(): ...\n"


async def test_a_long_text_comes_in_pieces(desk: Desk) -> None:
    made = Transcript(OTHER).prompt("x").use("Read", "line\n" * 30_000).answer("y")
    made.write(desk.other)
    async with desk.client() as client:
        first = await read(client, address(uris.OUTPUT, OTHER, output=made.calls[0]))
        second = await read(client, address(uris.OUTPUT, OTHER, output=made.calls[0]) + "?offset=100000")

    assert first.endswith("\n[go on with offset=100000]")
    assert first[:100_000] + second == "line\n" * 30_000


async def test_the_summary_of_a_compaction(desk: Desk, mode: str) -> None:
    Transcript(OTHER).prompt("x").boundary("What was before, with AKIAIOSFODNN7EXAMPL3.").prompt("y").write(desk.other)
    async with desk.client(mode) as client:
        text = await read(client, address(uris.SUMMARY, OTHER))
        with pytest.raises(MCPError, match="was not compacted"):
            await read(client, address(uris.SUMMARY))

    assert text.startswith("What was before")
    assert "AKIA" not in text


@pytest.mark.parametrize(
    "uri",
    [
        "foldmark://session/99999999/status",
        "foldmark://session/..%2F..%2Fx/status",
        "foldmark://session/%2Fetc%2Fpasswd/view",
        "foldmark://session/a%00b/view",
        f"foldmark://session/{SESSION_ID}/view?offset=-1",
        f"foldmark://session/{SESSION_ID}/view?offset=99999999999999999999",
        f"foldmark://session/{SESSION_ID}/output/toolu_gone",
        "foldmark://nothing",
        "file:///etc/passwd",
    ],
)
async def test_what_is_no_resource_is_refused(desk: Desk, mode: str, uri: str) -> None:
    async with desk.client(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)

    assert caught.value.code == -32602
    assert caught.value.data == {"uri": uri}


async def test_sessions_are_completed_by_id_and_by_title(desk: Desk, mode: str) -> None:
    status = ResourceTemplateReference(type="ref/resource", uri=uris.STATUS)
    prompt = PromptReference(type="ref/prompt", name="handoff")

    async def complete(ref: Any, name: str, typed: str) -> list[str]:
        return (await client.complete(ref, {"name": name, "value": typed})).completion.values

    async with desk.client(mode) as client:
        assert await complete(status, "session", "1111") == [SESSION_ID]
        assert await complete(status, "session", "the CART") == [OTHER]
        assert await complete(status, "session", "lat") == ["latest"]
        assert await complete(prompt, "session", "") == ["latest", "current", SESSION_ID, OTHER]
        assert await complete(prompt, "to", "x") == []


async def test_outputs_are_completed_once_a_session_is_chosen(desk: Desk, mode: str) -> None:
    ident = snipped(desk)
    one = ResourceTemplateReference(type="ref/resource", uri=uris.OUTPUT)
    async with desk.client(mode) as client:
        typed = {"name": "output", "value": "toolu_"}
        chosen = await client.complete(one, typed, context_arguments={"session": ident})
        unknown = await client.complete(one, typed, context_arguments={"session": "9999"})
        not_yet = await client.complete(one, typed)

    assert chosen.completion.values
    assert all(value.startswith("toolu_") for value in chosen.completion.values)
    assert unknown.completion.values == not_yet.completion.values == []


async def test_no_more_is_completed_than_one_answer_may_hold(desk: Desk) -> None:
    for number in range(120):
        path = desk.other.with_name(f"33333333-1111-4111-8111-{number:012}.jsonl")
        Transcript(path.stem).prompt("x").write(path)
    async with desk.client() as client:
        found = await client.complete(
            PromptReference(type="ref/prompt", name="resume"), {"name": "session", "value": "3333"}
        )

    assert len(found.completion.values) == 100
    assert found.completion.total == 120
    assert found.completion.has_more


async def test_prompts_say_what_to_call(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        names = [p.name for p in (await client.list_prompts()).prompts if p.description and p.title]
        compact = await client.get_prompt("compact", {"session": SESSION_ID, "instructions": "Keep the names."})
        handoff = await client.get_prompt("handoff", {})

    assert names == ["compact", "handoff", "resume"]
    assert "compact_session" in compact.messages[0].content.text  # type: ignore[union-attr]
    assert "Keep the names." in compact.messages[0].content.text  # type: ignore[union-attr]
    assert "'current'" in handoff.messages[0].content.text  # type: ignore[union-attr]


async def test_to_go_on_with_a_session_is_to_get_it_in_short(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        found = await client.get_prompt("resume", {"session": SESSION_ID})
        with pytest.raises(MCPError, match="there is no session"):
            await client.get_prompt("resume", {"session": "no such title"})

    first, second = (message.content for message in found.messages)
    assert str(first.resource.uri) == f"foldmark://session/{SESSION_ID}/summary"  # type: ignore[union-attr]
    assert "marmalade0" in first.resource.text  # type: ignore[union-attr]
    assert "Tell me the state" in second.text  # type: ignore[union-attr]
    assert f"'Fix parser 0: keep the word marmalade0.' ({SESSION_ID})" in second.text  # type: ignore[union-attr]


async def test_a_session_does_not_go_on_with_itself(desk: Desk, mode: str) -> None:
    os.utime(desk.session, (2_000_000_000, 2_000_000_000))
    own = desk.with_(session_id=SESSION_ID)
    async with desk.client(mode) as client:
        newest = await client.get_prompt("resume", {})
    async with own.client(mode) as client:
        other = await client.get_prompt("resume", {})
        with pytest.raises(MCPError, match="Name one by its id"):
            await client.get_prompt("resume", {"session": SESSION_ID})
        ref = PromptReference(type="ref/prompt", name="resume")
        words = (await client.complete(ref, {"name": "session", "value": ""})).completion.values

    assert SESSION_ID in newest.messages[1].content.text  # type: ignore[union-attr]
    assert f"'The cart' ({OTHER})" in other.messages[1].content.text  # type: ignore[union-attr]
    assert words[0] == "latest"
    assert "current" not in words
