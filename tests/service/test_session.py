"""Opening a transcript of any format."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from core.context.dialect import OLDER
from core.context.tokens.models import lookup
from core.context.tokens.window import Measuring
from core.errors import InputError, UnknownFormat
from core.service.session import CLAUDE_CODE, aopened, opened, window_of
from core.testing import Transcript
from core.transcript import backwards, reader
from core.transcript.chain import aload, load
from core.transcript.projects import SessionFile, session_file

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"


def test_a_claude_code_transcript_says_where_it_worked_and_with_which_model(tmp_path: Path) -> None:
    made = Transcript(cwd="/srv/shop").prompt("Hello").answer("Hi").beside("custom-title", customTitle="Greeting")
    made.respond({"type": "text", "text": "x"}).rows[-1]["message"]["model"] = "<synthetic>"  # type: ignore[index, call-overload]
    with opened(session_file(made.write(tmp_path / "a.jsonl"))) as session:
        assert session.ref.to_json() == {
            "id": "a",
            "path": str(tmp_path / "a.jsonl"),
            "format": CLAUDE_CODE,
            "title": "Greeting",
        }
        assert session.cwd == "/srv/shop"
        assert session.model_id == "claude-opus-4-8"
        assert session.model.known
        assert (session.system, session.tools) == ("", ())
        assert len(session.messages) == 3


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")
    with opened(session_file(path)) as session:
        assert (session.cwd, session.model_id, session.messages) == ("", "", ())
        assert not session.model.known
    made = Transcript().prompt("x")
    made.rows[0]["cwd"] = 7
    with opened(session_file(made.write(path))) as session:
        assert session.cwd == ""
    bare = SessionFile(path, "a")
    with opened(bare) as session:
        session.claude = None
        assert (session.cwd, session.model_id, session.system, session.tools) == ("", "", "", ())


def test_another_clients_file_is_a_conversation() -> None:
    with opened(session_file(FOREIGN / "messages-api" / "request.json")) as session:
        assert session.claude is None
        assert session.format == "messages"
        assert session.system
        assert session.tools
        assert session.model_id
        assert session.cwd == ""
        assert session.messages


def test_one_of_several_conversations_is_picked() -> None:
    path = session_file(FOREIGN / "claude-ai-export" / "conversations.json")
    with pytest.raises(InputError), opened(path):
        pass
    with opened(replace(path, pick="1")) as session:
        assert session.messages
        assert session.title


def test_the_dialect_decides_what_is_sent(tmp_path: Path) -> None:
    made = Transcript().prompt("Go").attachment("queued_command", "More", role="user").answer("Done")
    path = session_file(made.write(tmp_path / "a.jsonl"))
    with opened(path) as newest, opened(path, OLDER) as older:
        assert (len(newest.messages), len(older.messages)) == (3, 2)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(UnknownFormat), opened(session_file(tmp_path / "a.txt")):
        pass
    with pytest.raises(InputError), opened(SessionFile(tmp_path / "gone.jsonl", "gone")):
        pass


def test_only_of_its_own_transcripts_the_window_is_what_claude_code_gives_a_model(tmp_path: Path) -> None:
    model = lookup("claude-opus-4-6")
    own = session_file(Transcript().prompt("Hello").write(tmp_path / "a.jsonl"))
    foreign = session_file(FOREIGN / "messages-api" / "request.json")
    with opened(own) as session:
        assert window_of(session, model) == 200_000
        assert window_of(session, lookup("claude-opus-4-8")) == 1_000_000
    with opened(foreign) as session:
        assert window_of(session, model) == 1_000_000
    for file in (own, foreign):
        with opened(file, measuring=Measuring(window_tokens=50_000)) as session:
            assert window_of(session, model) == 50_000


@pytest.mark.parametrize("name", ["claude", "foreign"])
async def test_a_server_opens_the_same(tmp_path: Path, name: str) -> None:
    path = next(p for p in sorted(FOREIGN.rglob("*")) if p.is_file()) if name == "foreign" else tmp_path / "a.jsonl"
    if name == "claude":
        Transcript().prompt("Hello").use("Read", "text").answer("Hi").write(path)
    with opened(session_file(path)) as session:
        async with aopened(session_file(path)) as again:
            assert again.messages == session.messages
            assert again.ref == session.ref
            assert again.messages


async def test_what_is_no_transcript_is_refused_there_too(tmp_path: Path) -> None:
    file = session_file(Transcript().prompt("Hello").answer("Hi").write(tmp_path / "a.jsonl"))
    file.path.unlink()
    with pytest.raises(InputError):
        async with aopened(file):
            raise AssertionError("it was opened")


async def test_a_read_that_nobody_waits_for_ends_between_two_batches(tmp_path: Path) -> None:
    made = Transcript()
    for turn in range(100):
        made.prompt(f"Prompt {turn}").answer("Done.")
    file = session_file(made.write(tmp_path / "a.jsonl"))
    taken, begun = list[int](), asyncio.Event()
    loop, take = asyncio.get_running_loop(), backwards.Backwards.take

    def slow(self: backwards.Backwards, data: bytes) -> None:
        taken.append(len(data))
        loop.call_soon_threadsafe(begun.set)
        take(self, data)

    async def read() -> None:
        async with aopened(file, whole=True):
            raise AssertionError("it was read to its end")

    with patch.object(backwards, "BATCH_BYTES", 500), patch.object(backwards.Backwards, "take", slow):
        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        at_the_end = len(taken)
        await asyncio.sleep(0.05)

    assert len(taken) == at_the_end < file.size_bytes // 500


@pytest.mark.parametrize("served", [False, True])
async def test_a_transcript_without_a_chain_leaves_no_file_open(tmp_path: Path, served: bool) -> None:
    file = session_file(Transcript().prompt("Hello").answer("Hi").write(tmp_path / "a.jsonl"))
    closed = list[bool]()

    def fail(log: reader.Log) -> None:
        closed.append(log.file.closed)
        logs.append(log)
        raise InputError("no chain")

    logs = list[reader.Log]()
    with patch("core.transcript.chain.active_chain", fail), pytest.raises(InputError, match="no chain"):
        await aload(file.path) if served else load(file.path)

    assert closed == [False]
    assert logs[0].file.closed
