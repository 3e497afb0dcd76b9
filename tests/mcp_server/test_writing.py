"""The tools that take messages out, and that take things back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from core.service.operation import Target
from core.service.session import opened
from core.service.snip import snip, snip_proposals
from core.service.stages import StageSettings
from core.testing import SESSION_ID
from core.transcript.projects import session_file
from tests.mcp_server.desk import OTHER, Desk, text_of

RANGE = {"session": SESSION_ID, "from_id": "toolu_11111111_0002", "to_id": "toolu_11111111_0004"}


class Person:
    """Answers questions, and keeps them."""

    def __init__(self, action: str, **content: Any) -> None:
        self.answer = ElicitResult(action=action, content=content or None)
        self.asked: list[str] = []

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return self.answer


def state_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def test_a_snip_makes_a_new_session_and_asks_nobody(desk: Desk, mode: str) -> None:
    person, before = Person("decline"), desk.session.read_bytes()
    async with desk.client(mode, elicitation_callback=person) as client:
        result = await client.call_tool("snip_range", RANGE)

    done = result.structured_content
    assert done is not None
    assert done["changed"]
    assert Path(done["output"]).exists()
    assert desk.session.read_bytes() == before
    assert person.asked == []
    assert f"claude --resume {done['output_id']}" in text_of(result)
    assert "undo takes it back" in text_of(result)


async def test_a_dry_run_writes_nothing(desk: Desk, mode: str) -> None:
    before = state_of(desk.config.settings.claude_dir)
    async with desk.client(mode) as client:
        result = await client.call_tool("snip_range", {**RANGE, "dry_run": True, "in_place": True})

    assert result.structured_content is not None
    assert result.structured_content["reason"] == "dry run"
    assert text_of(result).endswith(f"dry run: would append to {desk.session}")
    assert state_of(desk.config.settings.claude_dir) == before


async def test_without_a_range_proposals_come_back_as_on_the_command_line(desk: Desk, mode: str) -> None:
    target = Target(desk.config.state_dir / "locks")
    with opened(session_file(desk.session)) as session:
        expected = snip_proposals(session, target, StageSettings(now=desk.config.known.now)).to_json()
    async with desk.client(mode) as client:
        some = await client.call_tool("snip_range", {"session": SESSION_ID})
        none = await client.call_tool("snip_range", {"session": OTHER})
        half = await client.call_tool("snip_range", {"session": OTHER, "from_id": "x"})

    assert some.structured_content == expected
    assert "nothing to propose: nothing is both large" in text_of(none)
    assert half.is_error
    assert "give both" in text_of(half)


async def test_an_id_that_is_not_there_is_refused(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        result = await client.call_tool("snip_range", {**RANGE, "to_id": "toolu_gone"})

    assert result.is_error
    assert "toolu_gone" in text_of(result)


async def test_in_place_a_person_is_asked_and_undo_gives_the_bytes_back(desk: Desk, mode: str) -> None:
    person, before = Person("accept", go_on=True), desk.session.read_bytes()
    async with desk.client(mode, elicitation_callback=person) as client:
        result = await client.call_tool("snip_range", {**RANGE, "in_place": True})
        after = desk.session.read_bytes()
        undone = await client.call_tool("undo", {"session": SESSION_ID})

    assert not result.is_error
    assert after.startswith(before)
    assert len(after) > len(before)
    assert desk.session.read_bytes() == before
    assert len(person.asked) == 2
    assert all("Fix parser 0" in question and SESSION_ID in question for question in person.asked)
    assert text_of(undone) == f"took back snip of {desk.session}"


async def test_the_session_that_a_person_is_asked_about_is_the_one_that_is_changed(desk: Desk, mode: str) -> None:
    before = desk.other.read_bytes()
    asked: list[str] = []

    async def meanwhile_another_is_the_latest(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        if len(asked) == 1:
            later = [{**row, "timestamp": "2027-01-01T00:00:00Z"} for row in map(json.loads, before.splitlines())]
            desk.other.write_text("".join(json.dumps(row) + "\n" for row in later), encoding="utf-8")
        return ElicitResult(action="accept", content={"go_on": True})

    async with desk.client(mode, elicitation_callback=meanwhile_another_is_the_latest) as client:
        call = {**RANGE, "session": "latest", "in_place": True}
        answer = await client.call_tool("snip_range", call)

    if mode == "legacy":  # one question, one session
        assert len(asked) == 1
        assert not answer.is_error
        assert answer.structured_content is not None
        assert answer.structured_content["session"]["id"] == SESSION_ID
    else:  # the question is another one, so it is asked anew; the other session has no such messages
        assert [OTHER in question for question in asked] == [False, True]
        assert answer.is_error


@pytest.mark.parametrize(
    "person", [Person("decline"), Person("cancel"), Person("accept", go_on=False)], ids=["decline", "cancel", "no"]
)
async def test_what_a_person_does_not_want_is_not_done(desk: Desk, mode: str, person: Person) -> None:
    snip(
        session_file(desk.session),
        RANGE["from_id"],
        RANGE["to_id"],
        Target(desk.config.state_dir, in_place=True),
        desk.config.known,
    )
    before = state_of(desk.config.settings.claude_dir)
    async with desk.client(mode, elicitation_callback=person) as client:
        # That a model says so counts for nothing where a person can be asked.
        result = await client.call_tool("snip_range", {**RANGE, "in_place": True, "confirmed": True})
        undone = await client.call_tool("undo", {"session": SESSION_ID, "confirmed": True})

    for answer in (result, undone):
        assert answer.is_error
        assert "nothing was changed" in text_of(answer)
    assert state_of(desk.config.settings.claude_dir) == before


async def test_a_host_that_cannot_ask_says_that_the_person_agreed(desk: Desk, mode: str) -> None:
    before = desk.session.read_bytes()
    async with desk.client(mode) as client:
        asked = {**RANGE, "in_place": True}
        refused = await client.call_tool("snip_range", asked)
        assert desk.session.read_bytes() == before
        done = await client.call_tool("snip_range", {**asked, "confirmed": True})
        assert desk.session.read_bytes() != before
        undo_refused = await client.call_tool("undo", {"session": SESSION_ID})
        undone = await client.call_tool("undo", {"session": SESSION_ID, "confirmed": True})

    assert refused.is_error
    assert "confirmed=true" in text_of(refused)
    assert undo_refused.is_error
    assert not done.is_error
    assert not undone.is_error
    assert desk.session.read_bytes() == before


async def test_undo_of_a_new_session_removes_it(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        made = (await client.call_tool("snip_range", RANGE)).structured_content
        assert made is not None
        undone = await client.call_tool("undo", {"session": made["output_id"], "confirmed": True})
        again = await client.call_tool("undo", {"session": SESSION_ID, "confirmed": True})

    assert not Path(made["output"]).exists()
    assert text_of(undone).startswith(f"removed {made['output']}")
    assert again.is_error


async def test_the_way_on_and_the_way_back_are_told_as_long_as_they_are_there(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        planned = await client.call_tool("snip_range", {**RANGE, "dry_run": True})
        made = await client.call_tool("snip_range", RANGE)
        again = await client.call_tool("snip_range", RANGE)

    assert planned.structured_content is not None
    assert (planned.structured_content["resume"], planned.structured_content["undo"]) == ("", "")
    for answer in (made, again):
        result = answer.structured_content
        assert result is not None
        assert result["resume"] == f"claude --resume {result['output_id']}"
        assert result["undo"] == f"foldmark undo {result['output_id']}"
        assert f"resume with: {result['resume']}" in text_of(answer)
        assert "undo takes it back" in text_of(answer)
    assert "nothing written: the same was written before" in text_of(again)


async def test_what_is_as_always_is_left_out_and_figures_are_round(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        proposals = await client.call_tool("snip_range", {"session": SESSION_ID})
        done = await client.call_tool("compact_session", {"session": SESSION_ID, "summarizer": "extractive"})

    assert proposals.structured_content is not None
    assert done.structured_content is not None
    pays_after = [p["pays_after"] for p in proposals.structured_content["proposals"]]
    assert pays_after == [after and round(after, 1) for after in pays_after]
    assert "usage" not in done.structured_content


async def test_nobody_is_asked_about_what_cannot_be_taken_back(desk: Desk, mode: str) -> None:
    person = Person("accept", go_on=True)
    async with desk.client(mode, elicitation_callback=person) as client:
        refused = await client.call_tool("undo", {"session": SESSION_ID})
    async with desk.client(mode) as client:
        also = await client.call_tool("undo", {"session": SESSION_ID})

    assert person.asked == []
    assert "holds nothing that Foldmark wrote" in text_of(refused)
    assert "holds nothing that Foldmark wrote" in text_of(also)
