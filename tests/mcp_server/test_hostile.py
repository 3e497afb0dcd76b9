"""What a hostile or confused caller may try: refused with a message that helps, nothing read, nothing written."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import anyio
import msgspec
import pytest

from core.model import JSON
from core.service.history import search
from core.service.session import opened
from core.testing import SESSION_ID, Transcript
from core.transcript import backwards
from core.transcript.projects import session_file
from mcp_server import work
from tests.mcp_server.desk import OTHER, Desk, text_of
from tests.mcp_server.test_writing import state_of

MARK = "marmalade of another user"
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("context_status", {}),
    ("search_session", {"text": "marmalade"}),
    ("read_persisted_output", {"id": "toolu_99999999_0001"}),
    ("snip_range", {"from_id": "a", "to_id": "b", "confirmed": True, "in_place": True}),
    ("compact_session", {"summary": "x", "confirmed": True, "in_place": True}),
    ("undo", {"confirmed": True}),
    ("session_memory_update", {"operations": [{"op": "add", "section": "tasks", "text": "x"}]}),
]


@pytest.fixture
def elsewhere(desk: Desk, tmp_path: Path) -> Path:
    """Another user's session, and links to it from within the roots."""
    other = Transcript("99999999-1111-4111-8111-111111111111").prompt(MARK).use("Read", MARK)
    path = other.write(tmp_path / "other" / "projects" / "-home" / "99999999-1111-4111-8111-111111111111.jsonl")
    (desk.session.parent / "99999999-1111-4111-8111-111111111111.jsonl").symlink_to(path)
    desk.config.inline_dir.mkdir(parents=True)
    (desk.config.inline_dir / "way-out").symlink_to(path.parent)
    return path


@pytest.mark.parametrize(("tool", "arguments"), TOOLS, ids=[name for name, _ in TOOLS])
async def test_another_users_session_cannot_be_reached_by_any_tool(
    desk: Desk, elsewhere: Path, tool: str, arguments: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    before = state_of(desk.config.folder)
    names = [
        str(elsewhere),
        f"../other/projects/-home/{elsewhere.name}",
        f"{desk.session.parent}/../../../other/projects/-home/{elsewhere.name}",
        elsewhere.stem,
        str(desk.session.parent / elsewhere.name),
        str(desk.config.inline_dir / "way-out" / elsewhere.name),
        "/etc/passwd",
        f"{elsewhere}\0.jsonl",
        "C:\\Windows\\win.ini",
        "~/.ssh/id_rsa",
        "file:///etc/passwd",
        "/proc/self/environ",
        "",
        ".",
        "*",
        "\ud800",
    ]
    async with desk.client() as client:
        for name in names:
            answer = await client.call_tool(tool, {**arguments, "session": name})

            assert answer.is_error, name
            text = text_of(answer)
            assert MARK not in text
            assert any(hint in text for hint in ("allowed_roots", "list_sessions", "name a session", "valid string")), (
                name,
                text,
            )

    assert state_of(desk.config.folder) == before
    assert MARK not in caplog.text


@pytest.mark.parametrize(("tool", "arguments"), TOOLS, ids=[name for name, _ in TOOLS])
async def test_ten_megabytes_are_refused_wherever_they_stand(
    desk: Desk, mode: str, tool: str, arguments: dict[str, Any]
) -> None:
    huge = "x" * 10_000_000
    before = state_of(desk.config.folder)
    async with desk.client(mode) as client:
        for name in ("session", *(key for key, value in arguments.items() if isinstance(value, str)), huge):
            answer = await client.call_tool(tool, {"session": SESSION_ID, **arguments, name: huge})

            assert answer.is_error
            assert len(text_of(answer)) < 1_000

    assert state_of(desk.config.folder) == before


async def test_an_expression_that_takes_for_ever_is_ended(
    desk: Desk, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Transcript().prompt("a" * 60 + "!").answer("x").write(desk.session)
    asked = {"session": SESSION_ID}
    monkeypatch.setattr(work, "PATTERN_S", 60.0)  # a simple one is found, however busy the machine is
    async with desk.client(mode) as client:
        first = await client.call_tool("search_session", {**asked, "text": "a+!", "regex": True})
        assert first.structured_content is not None
        ident = first.structured_content["hits"][0]["id"]
        monkeypatch.setattr(work, "PATTERN_S", 1.0)
        found = await client.call_tool("search_session", {**asked, "text": "(a+)+$", "regex": True})
        lines = await client.call_tool("read_persisted_output", {**asked, "id": ident, "search": "(a+)+$"})

    for answer in (found, lines):
        assert answer.is_error
        assert "Take a simpler one" in text_of(answer)


async def test_no_folder_is_read_that_has_a_strange_name(desk: Desk) -> None:
    async with desk.client() as client:
        for folder in ("\0", "/", "..", "/etc", "x" * 4_000):
            answer = await client.call_tool("list_sessions", {"folder": folder})
            assert answer.is_error or answer.structured_content == {"sessions": [], "more": False, "total": 0}


async def test_logs_hold_nothing_of_a_conversation(desk: Desk, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcp_server")
    async with desk.client(mode) as client:
        for tool, arguments in TOOLS[:3]:
            await client.call_tool(tool, {**arguments, "session": SESSION_ID})
        await client.call_tool("context_status", {"session": "marmalade"})
        await client.call_tool("context_status", {"session": "marmalade", "what": "marmalade"})

    shown = [record for record in caplog.records if record.levelno >= logging.WARNING or "mcp_server" in record.name]
    assert all("marmalade" not in record.getMessage() for record in shown)


async def test_records_and_indexes_that_were_forged_lead_nowhere(desk: Desk, tmp_path: Path, mode: str) -> None:
    root, beside = tmp_path / "shared" / "mine", tmp_path / "shared" / "theirs"
    other = Transcript("99999999-1111-4111-8111-111111111111").prompt(MARK).use("Read", MARK)
    secret = other.write(beside / "99999999-1111-4111-8111-111111111111.jsonl")
    mine = Transcript(OTHER).prompt("Hello").answer("Hi")
    record: dict[str, JSON] = {
        "op": "compact",
        "id": "forged",
        "version": 1,
        "sessionId": OTHER,
        "bytes": 0,
        "sha256": "",
        "source": {"path": str(secret), "sessionId": secret.stem, "bytes": secret.stat().st_size},
        "summarizer": "x",
        "tokensBefore": 9,
        "tokensAfter": 1,
    }
    mine.rows.insert(0, {"type": "foldmark", **record})
    path = mine.write(root / f"{OTHER}.jsonl")
    store = root / OTHER / "tool-results"
    store.mkdir(parents=True)
    size = secret.stat().st_size
    lines = [
        {"id": f"toolu_{n}", "kind": "output", "name": "Read", "file": str(file), "offset": 0, "bytes": size, "line": 1,
         "lines": 1, "sha256": ""}
        for n, file in enumerate((secret, f"../../../theirs/{secret.name}", "link"))
    ]  # fmt: skip
    (store / "link").symlink_to(secret)
    (store / "index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with opened(session_file(path), whole=True) as session:  # a person's own command may go there
        assert search(session, MARK).hits
    settings = msgspec.structs.replace(desk.config.settings, allowed_roots=(root,))
    asked = {"session": str(path)}
    async with desk.with_(settings=settings).client(mode) as client:
        answers = [await client.call_tool("search_session", {**asked, "text": "marmalade"})]
        answers += [
            await client.call_tool("read_persisted_output", {**asked, "id": ident})
            for ident in (other.calls[0], "toolu_0", "toolu_1", "toolu_2")
        ]

    assert answers[0].structured_content is not None
    assert answers[0].structured_content["hits"] == []
    for answer in answers:
        assert MARK not in text_of(answer)


@pytest.mark.parametrize(
    ("tool", "more"),
    [("context_status", {}), ("search_session", {"text": "marmalade"}), ("read_persisted_output", {"id": "toolu_"})],
)
async def test_a_read_of_a_large_session_ends_when_it_is_cancelled(
    desk: Desk, mode: str, tool: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, begun, take = list[int](), Event(), backwards.Backwards.take

    def seen(self: backwards.Backwards, data: bytes) -> None:
        taken.append(len(data))
        begun.set()
        sleep(0.01)
        take(self, data)

    monkeypatch.setattr(backwards, "BATCH_BYTES", 1_000)
    monkeypatch.setattr(backwards.Backwards, "take", seen)
    batches = desk.session.stat().st_size // 1_000
    async with desk.client(mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, tool, {"session": SESSION_ID, **more})
            await anyio.to_thread.run_sync(begun.wait)
            group.cancel_scope.cancel()
        await anyio.sleep(0.2)  # by then the server has heard of it
        at_the_end = len(taken)
        await anyio.sleep(0.2)

    assert len(taken) == at_the_end < batches / 2
