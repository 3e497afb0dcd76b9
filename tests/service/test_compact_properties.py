"""What holds for every session and every choice of how much is kept."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from core.context.rounds import in_thinking_loop
from core.context.view import api_messages
from core.errors import CompactionError
from core.model import JSON, Block, Message, block_text, tool_results, tool_uses
from core.service.compact import CompactResult
from core.service.context import context_report
from core.service.history import output, outputs, search
from core.service.session import opened
from core.service.undo import undo
from core.testing import Transcript
from core.transcript.projects import session_file
from tests.disk import compacted, messages, on_disk, rows, tree
from tests.sessions import transcripts

some = settings(max_examples=30)
KEEPS = st.sampled_from((0, 50, 400, 2_000, 20_000))
PLACES = st.booleans()
"""Whether in place."""


@some
@given(made=transcripts(), keep=KEEPS)
def test_a_new_session_is_a_summary_and_the_newest_messages_word_for_word(made: Transcript, keep: int) -> None:
    with on_disk(made) as path:
        before, stat = messages(path), path.stat()
        result = compacted(path, keep)
        assert path.read_bytes() == made.data()
        assert path.stat().st_mtime_ns == stat.st_mtime_ns
        if not result.changed:
            assert tree(path.parent) == {path.name: made.data()}
            return
        kept = as_sent(before[result.loss.reachable :])
        after = messages(result.output)
        written = {row.get("uuid") for row in rows(result.output)}

        assert after[0].kind == "summary"
        assert blocks(api_messages(after[1:])) == blocks(api_messages(without_open_calls(kept)))
        assert [u for m in after[1:] for u in m.uuids] == [u for m in kept for u in m.uuids if u in written]
        assert not open_calls(after)
        assert_one_chain(rows(result.output)[1:])


@some
@given(made=transcripts(), keep=KEEPS)
def test_in_place_the_old_rows_stay_and_the_context_is_the_same(made: Transcript, keep: int) -> None:
    with on_disk(made) as path:
        before = messages(path)
        result = in_place_or_refused(path, keep)
        if not result or not result.changed:
            assert tree(path.parent) == {path.name: made.data()}
            return
        kept = [replace(m, content=plain(m.content)) for m in before[result.loss.reachable :]]
        after = messages(path)

        assert kept
        assert after[0].kind == "summary"
        assert path.read_bytes().startswith(made.data())
        assert blocks(api_messages(after[1:])) == blocks(api_messages(kept))
        assert_one_chain(rows(path)[len(made.rows) + 1 :])


@some
@given(made=transcripts(), keep=KEEPS, in_place=PLACES)
def test_a_second_compaction_changes_nothing(made: Transcript, keep: int, in_place: bool) -> None:
    with on_disk(made) as path:
        first = in_place_or_refused(path, keep) if in_place else compacted(path, keep)
        if first is None:
            return
        files = tree(path.parent)

        assert not compacted(Path(first.output), keep, in_place=in_place).changed
        assert not compacted(path, keep, in_place=in_place).changed
        assert tree(path.parent) == files


@some
@given(made=transcripts(), keep=KEEPS, in_place=PLACES)
def test_the_size_that_is_promised_is_the_size_that_is_measured(made: Transcript, keep: int, in_place: bool) -> None:
    with on_disk(made) as path:
        result = in_place_or_refused(path, keep) if in_place else compacted(path, keep)
        if result is None:
            return
        with opened(session_file(Path(result.output))) as session:
            measured = context_report(session).tokens

        assert abs(measured.total - result.tokens_after) <= 0.02 * result.tokens_after


@some
@given(made=transcripts(), keep=KEEPS, in_place=PLACES, newline=st.booleans(), later=st.booleans())
def test_undo_gives_the_bytes_back(made: Transcript, keep: int, in_place: bool, newline: bool, later: bool) -> None:
    with on_disk(made, newline) as path:
        before, more = path.read_bytes(), Transcript().prompt("Later").data() if in_place and later else b""
        result = in_place_or_refused(path, keep) if in_place else compacted(path, keep)
        if not result or not result.changed:
            return
        with path.open("ab") as file:
            file.write(more)

        undo(session_file(Path(result.output)), path.parents[2], path.parents[1] / "locks")
        # rows that others wrote begin on a line of their own
        assert path.read_bytes() == (before + (b"\n" if more and not newline else b"") + more)
        assert [*tree(path.parent)] == [path.name]


@some
@given(made=transcripts(), keep=KEEPS, in_place=PLACES)
def test_every_message_and_result_that_is_gone_can_be_read_and_found(
    made: Transcript, keep: int, in_place: bool
) -> None:
    with on_disk(made) as path:
        before = messages(path)
        result = in_place_or_refused(path, keep) if in_place else compacted(path, keep)
        if result is None:
            return
        with opened(session_file(Path(result.output)), whole=True) as session:
            listed = {line.id: line.where for line in outputs(session).outputs}
            for message in before:
                for block in tool_results(message):
                    call = str(block["tool_use_id"])
                    assert output(session, call).text == block_text(block)
                    assert listed[call] in ("active", "earlier", "stored")
                    assert call in {hit.id for hit in search(session, f"Output {call}").hits}
                if message.kind == "prompt" and message.role == "user":
                    assert output(session, message.uuid).text == "\n".join(map(block_text, message.content))


@settings(max_examples=20)
@given(made=transcripts(agent_id="a0ad4f4"), keep=KEEPS, in_place=PLACES)
def test_the_file_of_a_subagent_is_a_conversation_like_any_other(made: Transcript, keep: int, in_place: bool) -> None:
    with on_disk(made) as path:
        before = messages(path)
        result = in_place_or_refused(path, keep) if in_place else compacted(path, keep)

        assert before
        assert path.read_bytes().startswith(made.data())
        if result and result.changed:
            assert [m.kind for m in messages(result.output)].count("summary") == 1
            sides = {(row["isSidechain"], row.get("agentId")) for row in rows(result.output) if "uuid" in row}
            assert sides == ({(True, "a0ad4f4")} if in_place else {(False, None)})


def in_place_or_refused(path: Path, keep: int) -> CompactResult | None:
    """None for a turn in progress whose thinking cannot be moved."""
    try:
        return compacted(path, keep, in_place=True)
    except CompactionError:
        assert in_thinking_loop(messages(path))
        return None


def as_sent(kept: Sequence[Message]) -> list[Message]:
    """Kept messages as they stand in a new file: no thinking, no changes of state; system messages are the user's."""
    return [
        replace(m, role="user" if m.role == "system" else m.role, content=plain(m.content))
        for m in kept
        if not (m.role == "system" and m.kind == "attachment")
    ]


def plain(content: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(b for b in content if b["type"] not in ("thinking", "redacted_thinking"))


def without_open_calls(sent: Sequence[Message]) -> list[Message]:
    dead = open_calls(sent)
    return [replace(m, content=tuple(b for b in m.content if b.get("id") not in dead)) for m in sent]


def open_calls(sent: Sequence[Message]) -> list[JSON]:
    answered = [b["tool_use_id"] for m in sent for b in tool_results(m)]
    return [b["id"] for m in sent for b in tool_uses(m) if b["id"] not in answered]


def blocks(sent: Sequence[dict[str, JSON]]) -> list[tuple[JSON, JSON]]:
    """The blocks with their roles, however they are merged."""
    return [(m["role"], b) for m in sent if isinstance(m["content"], list) for b in m["content"]]


def assert_one_chain(block: Sequence[dict[str, JSON]]) -> None:
    """No branch, in file order, each row later than the one before; no thinking."""
    chain = [row for row in block if "uuid" in row]
    assert chain[0]["parentUuid"] is None
    for a, b in itertools.pairwise(chain):
        assert b["parentUuid"] == a["uuid"]
        assert str(a["timestamp"]) < str(b["timestamp"])
    assert b'"thinking"' not in b"".join(str(row).encode() for row in chain)
