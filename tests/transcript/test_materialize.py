"""What is written of a projection: rows that every client version resumes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.context.view import messages_of
from core.model import JSON, Block, Message
from core.testing import SESSION_ID, Transcript
from core.transcript.chain import load
from core.transcript.materialize import NewHistory, derived_id, materialize
from tests.disk import messages

NEW_ID = "22222222-2222-4222-8222-222222222222"
CASES = Path(__file__).parents[1] / "data" / "cases"
Row = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def written(folder: Path, made: Transcript, keep: int, **fields: object) -> list[Row]:
    """The rows of a compaction that keeps the last `keep` messages; also the file (in place: whole) as `out.jsonl`."""
    path = made.write(folder / f"{made.session_id}.jsonl")
    log, chain = load(path)
    with log:
        shown = messages_of(log, chain)
        kept = shown[len(shown) - keep :]
        sizes = [1_000 + 10 * n for n in range(len(kept))]
        plan = {"summary": "So far.", "kept": kept, "prompt_tokens": sizes} | fields
        in_place = fields.get("in_place")
        new_id = made.session_id if in_place else NEW_ID
        rows = materialize(log, chain, NewHistory(new_id, tokens_before=9_000, tokens_after=1_100, **plan))  # type: ignore[arg-type]
    old = path.read_bytes() if in_place else b""
    (folder / "out.jsonl").write_bytes(old + b"".join(row + b"\n" for row in rows))
    return [json.loads(row) for row in rows]


def content(row: Row) -> Any:
    return row["message"]["content"]


def rows_of(made: Transcript) -> list[Any]:
    return made.rows


def texts(shown: Sequence[Message]) -> list[tuple[str, str]]:
    return [(m.role, str(b.get("text") or b.get("content") or b.get("name"))) for m in shown for b in m.content]


def session() -> Transcript:
    made = Transcript().prompt("First").answer("Yes.").prompt("Second", permissionMode="plan")
    return made.use("Read", "text", thinking="Hm.", file_path="a.py").answer("Done.", thinking="So.")


def test_a_new_session_is_boundary_summary_notes_and_kept_rows(folder: Path) -> None:
    rows = written(folder, session(), 4, restored=["<system-reminder>\nfile\n</system-reminder>"], title="compacted: x")

    assert [row["type"] for row in rows] == [
        "system",
        "user",
        "user",
        "user",
        "assistant",
        "user",
        "assistant",
        "custom-title",
        "summary",
    ]
    assert rows[0]["subtype"] == "compact_boundary"
    assert rows[0]["logicalParentUuid"] == session().last
    assert rows[0]["compactMetadata"] == {"trigger": "manual", "preTokens": 9_000, "postTokens": 1_100}
    assert (rows[1]["isCompactSummary"], content(rows[1])) == (True, "So far.")
    assert rows[2]["isMeta"] is True
    assert rows[-2] == {"type": "custom-title", "customTitle": "compacted: x", "sessionId": NEW_ID}
    assert rows[-1] == {"type": "summary", "summary": "compacted: x", "leafUuid": rows[-3]["uuid"]}
    assert texts(messages(folder / "out.jsonl")) == [
        ("user", "So far."),
        ("user", "<system-reminder>\nfile\n</system-reminder>"),
        ("user", "Second"),
        ("assistant", "Read"),
        ("user", "text"),
        ("assistant", "Done."),
    ]


def test_rows_are_one_chain_of_one_session_later_and_later(folder: Path) -> None:
    rows = [row for row in written(folder, session(), 4) if "uuid" in row]

    assert rows[0]["parentUuid"] is None
    for a, b in itertools.pairwise(rows):
        assert b["parentUuid"] == a["uuid"]
        assert str(a["timestamp"]) < str(b["timestamp"])
    assert {row["sessionId"] for row in rows} == {NEW_ID}
    assert {(row["entrypoint"], row["isSidechain"], row["cwd"], row["gitBranch"]) for row in rows} == {
        ("cli", False, "/nowhere/app", "main")
    }


def test_kept_rows_keep_their_ids_and_what_else_they_say(folder: Path) -> None:
    old = {row["uuid"]: row for row in session().rows}
    kept = [row for row in written(folder, session(), 4) if row.get("uuid") in old]

    assert len(kept) == 4
    assert kept[0]["permissionMode"] == "plan"
    assert [row.get("requestId") for row in kept] == [old[row["uuid"]].get("requestId") for row in kept]
    assert [row["timestamp"] for row in kept] == [old[row["uuid"]]["timestamp"] for row in kept]


def test_usage_is_that_of_the_new_request_and_the_old_one_stands_beside_it(folder: Path) -> None:
    made = session()
    rows_of(made)[-1]["message"]["usage"]["cache_creation"] = {"ephemeral_5m_input_tokens": 5}
    old = rows_of(made)[-1]["message"]["usage"]
    row = written(folder, made, 4)[-1]

    assert row["message"]["usage"] == {
        "input_tokens": 1_030,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": old["output_tokens"],
    }
    assert row["foldmark"] == {"usage": old}

    again = Transcript()
    again.rows = written(folder, made, 4)
    assert written(folder, again, 1)[-1]["foldmark"] == {"usage": old}


def test_a_response_without_usage_stays_without(folder: Path) -> None:
    made = session()
    del rows_of(made)[-1]["message"]["usage"]
    row = written(folder, made, 1)[-1]
    assert "usage" not in row["message"]
    assert "foldmark" not in row


def test_what_clients_would_take_in_different_ways_is_written_out(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Second")
    made.note("Remember").rows[-1]["ownNote"] = True
    made.prompt("<task-notification>over</task-notification>").rows[-1]["origin"] = {"kind": "task-notification"}
    made.attachment("queued_command", "<system-reminder>\nAnd this\n</system-reminder>", role="user")
    made.attachment("environment", "Linux").attachment("nested_memory", "Use tabs", role="user")
    made.system("local_command", "<local-command-stdout>out</local-command-stdout>").system("informational", "seen")
    rows = written(folder, made.answer("Done."), 8)

    assert {row["type"] for row in rows} == {"system", "user", "assistant"}
    assert not {"ownNote", "origin", "attachment", "rendered", "renderedRole", "subtype"} & {
        k for r in rows[1:] for k in r
    }
    assert texts(messages(folder / "out.jsonl")) == [
        ("user", "So far."),
        ("user", "Second"),
        ("user", "<system-reminder>\nRemember\n</system-reminder>"),
        ("user", "<task-notification>over</task-notification>"),
        ("user", "And this"),
        ("user", "Use tabs"),
        ("user", "<local-command-stdout>out</local-command-stdout>"),
        ("assistant", "Done."),
    ]


def test_of_what_the_client_says_of_itself_the_last_word_goes_along(folder: Path) -> None:
    made = session().beside("permission-mode", permissionMode="plan").beside("mode", mode="a").beside("tag", tag="x")
    made.beside("permission-mode", permissionMode="acceptEdits").beside("ai-title", aiTitle="old")
    made.beside("last-prompt", lastPrompt="Second", leafUuid=made.last)
    rows = written(folder, made, 1)

    assert [row for row in rows if "uuid" not in row] == [
        {"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": NEW_ID},
        {"type": "mode", "mode": "a", "sessionId": NEW_ID},
        {"type": "tag", "tag": "x", "sessionId": NEW_ID},
        {"type": "last-prompt", "lastPrompt": "Second", "leafUuid": made.last, "sessionId": NEW_ID},
    ]


def test_every_singleton_of_a_file_without_conversation_is_the_last(folder: Path) -> None:
    lines = (CASES / "boundary-6.jsonl").read_text(encoding="utf-8").splitlines()
    made = session()
    made.rows = [*map(json.loads, lines), *made.rows]
    out = {row["type"]: row for row in written(folder, made, 1) if "uuid" not in row}

    last = {row["type"]: row for row in map(json.loads, lines)}
    for kind in out.keys() - {"last-prompt"}:
        assert {**out[kind], "sessionId": ""} == {**last[kind], "sessionId": ""}
    assert "permission-mode" in out


def test_calls_without_a_result_do_not_go_into_a_new_session(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Go").call("Bash", text="Running.", command="x")
    rows = written(folder, made, 2)

    assert texts(messages(folder / "out.jsonl")) == [("user", "So far."), ("user", "Go"), ("assistant", "Running.")]
    assert (
        b"tool_use"
        not in json.dumps([r.get("message") for r in rows]).replace('"stop_reason": "tool_use"', "").encode()
    )


def test_in_place_they_stay_because_the_result_may_still_come(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Go").call("Bash", command="x")
    written(folder, made, 2, in_place=True)
    path = folder / "out.jsonl"
    assert texts(messages(path))[-1] == ("assistant", "Bash")

    before = len(made.rows)
    made.result("late")
    with path.open("ab") as file:
        file.write(json.dumps(made.rows[before]).encode())
    assert texts(messages(path))[-2:] == [("assistant", "Bash"), ("user", "late")]


def test_in_place_every_row_of_the_tail_is_repeated_so_that_none_hangs_in_the_air(folder: Path) -> None:
    made = session().system("informational", "for the screen")
    *rows, _ = written(folder, made, 4, in_place=True)

    old = [row["uuid"] for row in made.rows]
    assert [row["uuid"] for row in rows[2:]] == old[2:]
    assert rows[0]["compactMetadata"]["preservedMessages"] == {
        "anchorUuid": rows[1]["uuid"],
        "uuids": old[2:],
        "allUuids": old[2:],
    }
    hidden = [row for row in rows if row.get("content") == "left out by a compaction"]
    assert len(hidden) == 2  # the two rows of thinking
    assert {row["sessionId"] for row in rows} == {SESSION_ID}
    assert "thinking" not in json.dumps([b for row in rows[2:] if "message" in row for b in content(row)])
    assert texts(messages(folder / "out.jsonl")) == [
        ("user", "So far."),
        ("user", "Second"),
        ("assistant", "Read"),
        ("user", "text"),
        ("assistant", "Done."),
    ]


def test_in_place_the_last_row_is_later_than_every_other_branch(folder: Path) -> None:
    made = session()
    branch = {**made.rows[1], "uuid": "99999999-9999-4999-8999-999999999999", "timestamp": "2030-01-01T00:00:00.000Z"}
    made.rows.insert(2, branch)
    *rows, _ = written(folder, made, 2, in_place=True)

    times = [row["timestamp"] for row in rows]
    assert times == sorted(times)
    assert times[-1] == "2030-01-01T00:00:00.001Z"
    assert times[-2] < branch["timestamp"]


def test_in_place_the_rows_of_a_subagent_stay_its_own(folder: Path) -> None:
    made = Transcript(agent_id="a0ad4f4").prompt("Review").answer("Yes.").prompt("More").answer("Done.")
    made.write(folder / "agent-a0ad4f4.jsonl")
    *rows, end = written(folder, made, 1, in_place=True)
    assert end["sessionId"] == SESSION_ID
    for row in rows:
        assert (row["isSidechain"], row["agentId"], row["sessionId"]) == (True, "a0ad4f4", SESSION_ID)
    assert texts(messages(folder / "out.jsonl")) == [("user", "So far."), ("assistant", "Done.")]
    # as a session of its own it is one like any other
    for row in written(folder, made, 1):
        assert "agentId" not in row
        assert row.get("isSidechain", False) is False


@pytest.mark.parametrize(
    "times",
    [
        ["2026-01-05T09:00:02.000Z"] * 4,
        [
            "2026-01-05T09:00:09.000Z",
            "2026-01-05T09:00:01.000Z",
            "2026-01-05T09:00:05.000Z",
            "2026-01-05T09:00:02.000Z",
        ],
        ["", "yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999Z"],
        ["9999-12-31T23:59:59.999-14:00", "2026-01-05T09:00:02", "2026-01-05T10:00:02.000900+01:00", "-5"],
    ],
)
def test_times_rise_whatever_the_rows_say(folder: Path, times: list[str]) -> None:
    made = Transcript().prompt("One").answer("1").prompt("Two").answer("2")
    for row, time in zip(made.rows, times, strict=True):
        row["timestamp"] = time
    for keep in (0, 1, 3):
        stamps = [str(row["timestamp"]) for row in written(folder, made, keep) if "uuid" in row]
        assert all(a < b for a, b in itertools.pairwise(stamps))
        assert all(len(stamp) == 24 and stamp.endswith("Z") for stamp in stamps)


def test_rows_that_are_hardly_messages_break_nothing(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Second").answer("a").answer("b").answer("c").answer("d")
    odd: list[JSON] = [None, {"content": None}, {"content": "text"}, {"content": []}]
    for row, message in zip(made.rows[3:], odd, strict=True):
        row["message"] = message
    blocks: list[JSON] = [{"type": "text", "text": " "}, 7, {"type": "text", "text": None}]
    made.rows[4]["message"] = {"id": "m", "content": blocks}

    assert texts(messages_in(folder, made, 4, in_place=False))[1:] == [("assistant", "text")]
    assert ("assistant", "text") in texts(messages_in(folder, made, 4, in_place=True))


def messages_in(folder: Path, made: Transcript, keep: int, in_place: bool) -> tuple[Message, ...]:
    written(folder, made, keep, in_place=in_place)
    return messages(folder / "out.jsonl")


def test_a_call_or_result_that_stands_twice_is_written_once(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Go").call("Read", file_path="a")
    made.result("one").result("two", made.calls[0])
    made.respond({"type": "tool_use", "id": made.calls[0], "name": "Read", "input": {}}).answer("Done.")
    rows = written(folder, made, 6)

    assert str(rows).count("'tool_use_id'") == 1
    assert [row for row in rows if "'name': 'Read'" in str(row)][1:] == []


def test_results_whose_call_is_gone_are_left_out_or_hidden(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Go").result("stray", "toolu_none").answer("Done.")

    assert [row["type"] for row in written(folder, made, 3)] == ["system", "user", "user", "assistant"]
    rows = written(folder, made, 3, in_place=True)
    assert [row.get("content") for row in rows][3] == "left out by a compaction"


def test_content_that_was_replaced_is_written_as_it_is_shown(folder: Path) -> None:
    path = session().write(folder / "a.jsonl")
    log, chain = load(path)
    with log:
        shown = messages_of(log, chain)
        stub: Block = {**shown[4].content[0], "content": "[cleared]"}
        kept = (*shown[:4], Message("user", "results", (stub,), shown[4].uuids, timestamp=shown[4].timestamp), shown[5])
        plan = NewHistory(NEW_ID, "", kept, [1] * 6, 10, 9, changed_from=4)
        rows = [json.loads(row) for row in materialize(log, chain, plan)]

    assert [row["type"] for row in rows] == [row["type"] for row in session().rows if "'So.'" not in str(row)]
    assert rows[0]["parentUuid"] is None
    assert "Hm." in str(rows)  # thinking in front of the change stays
    assert content(rows[-2])[0]["content"] == "[cleared]"


def test_a_message_that_stands_in_for_others_is_a_note_and_dropped_rows_are_gone(folder: Path) -> None:
    path = session().write(folder / "a.jsonl")
    log, chain = load(path)
    with log:
        shown = messages_of(log, chain)
        note = Message(
            "user", "meta", ({"type": "text", "text": "[folded]"},), ("stand-in",), timestamp=shown[0].timestamp
        )
        gone = frozenset(uuid for m in shown[:2] for uuid in m.uuids)
        plan = NewHistory(NEW_ID, "", (note, *shown[2:]), [1] * 5, 10, 9, dropped=gone)
        rows = [json.loads(row) for row in materialize(log, chain, plan)]

        assert (rows[0]["uuid"], rows[0]["isMeta"]) == ("stand-in", True)
        assert not gone & {row.get("uuid") for row in rows}

        in_place = NewHistory(SESSION_ID, "", (note, *shown[2:]), [1] * 5, 10, 9, dropped=gone, in_place=True)
        rows = [json.loads(row) for row in materialize(log, chain, in_place)]
        assert [row["type"] for row in rows[:2]] == ["system", "user"]
        assert "foldmark" not in rows[0]


def test_ids_are_made_of_what_they_stand_for(folder: Path) -> None:
    assert derived_id("a", "b") == derived_id("a", "b") != derived_id("ab")
    assert written(folder, session(), 2) == written(folder, session(), 2)
    assert written(folder, session(), 2)[0]["uuid"] != written(folder, session(), 2, summary="Other.")[0]["uuid"]


def test_in_place_rows_of_what_is_summarised_do_not_come_back_from_behind_the_cut(folder: Path) -> None:
    made = Transcript().prompt("First").use("Read", "text", file_path="a").prompt("Second").answer("Done.")
    made.rows.append({**made.rows[1], "uuid": "copy", "parentUuid": made.last, "timestamp": "2026-01-05T10:00:00.000Z"})
    made.last = "copy"
    made.respond({"type": "text", "text": "API Error"}).rows[-1]["isApiErrorMessage"] = True
    rows = written(folder, made, 2, in_place=True)

    assert [row.get("content") for row in rows[-3:-1]] == ["left out by a compaction"] * 2
    assert texts(messages(folder / "out.jsonl")) == [("user", "So far."), ("user", "Second"), ("assistant", "Done.")]


def test_a_local_command_is_a_user_row_which_all_clients_send(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Second").answer("Done.")
    made.system("local_command", "<command-name>/cost</command-name>")
    rows = written(folder, made, 2, in_place=True)

    row = next(row for row in rows if row.get("uuid") == made.last)
    assert (row["type"], str(content(row))) == (
        "user",
        str([{"type": "text", "text": "<command-name>/cost</command-name>"}]),
    )


def test_in_place_no_row_of_a_type_that_old_clients_do_not_know_is_on_the_chain(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").prompt("Second")
    made._chain({"type": "progress", "data": {}}).answer("Done.")
    progress = made.rows[-2]["uuid"]
    rows = written(folder, made, 2, in_place=True)

    row = next(row for row in rows if row.get("uuid") == progress)
    assert (row["type"], row["subtype"]) == ("system", "informational")
    assert texts(messages(folder / "out.jsonl")) == [("user", "So far."), ("user", "Second"), ("assistant", "Done.")]


def test_in_place_titles_and_modes_stand_at_the_end_again(folder: Path) -> None:
    made = Transcript().beside("ai-title", aiTitle="old").beside("custom-title", customTitle="Mine")
    made.beside("ai-title", aiTitle="Theirs").beside("permission-mode", permissionMode="plan")
    made.prompt("First").answer("Yes.").prompt("Second").answer("Done.")
    made.beside("last-prompt", lastPrompt="Second", leafUuid="other")
    rows = written(folder, made, 2, in_place=True, title="compacted: Mine")

    own = {"sessionId": SESSION_ID}
    assert rows[-5:] == [
        {"type": "permission-mode", **own, "permissionMode": "plan"},
        {"type": "ai-title", **own, "aiTitle": "Theirs"},
        {"type": "custom-title", **own, "customTitle": "Mine"},
        {"type": "last-prompt", **own, "lastPrompt": "Second", "leafUuid": rows[-6]["uuid"]},
        {"type": "foldmark-end", **own},
    ]
    assert [m.kind for m in messages(folder / "out.jsonl")] == ["summary", "prompt", "response"]


@pytest.mark.parametrize("in_place", [True, False])
def test_a_tasks_note_keeps_its_role_where_its_row_stays(folder: Path, in_place: bool) -> None:
    note = "<task-notification>done</task-notification>"
    made = session().prompt(note, origin={"kind": "task-notification"}).answer("Good.")
    shown = messages_in(folder, made, 2, in_place)
    assert [(m.role, m.content[0]["text"]) for m in shown[-2:]] == [
        ("system" if in_place else "user", note),
        ("assistant", "Good."),
    ]


def test_what_stands_beside_a_replaced_result_is_shortened_and_keeps_its_shape(folder: Path) -> None:
    made = Transcript().prompt("Read").use("Read", "long " * 1_000).use("Read", "other " * 1_000).answer("Done.")
    beside: JSON = {"filePath": "/p" * 400, "content": "x" * 5_000, "n": 3}
    made.rows[2]["toolUseResult"] = {"type": "text", "file": beside, "lines": ["y" * 5_000, "z", None]}
    path = made.write(folder / f"{SESSION_ID}.jsonl")
    log, chain = load(path)
    with log:
        shown = list(messages_of(log, chain))
        block: Block = {**shown[2].content[0], "content": "[stored]"}
        shown[2] = replace(shown[2], content=(block,))
        plan = NewHistory(NEW_ID, "", shown, [9] * len(shown), 10, 9, changed_from=2)
        rows = [json.loads(row) for row in materialize(log, chain, plan)]

    assert rows[2]["toolUseResult"] == {
        "type": "text",
        "file": {"filePath": "/p" * 400, "content": "x" * 200, "n": 3},
        "lines": ["y" * 200, "z", None],
    }
    assert rows[4]["toolUseResult"] == made.rows[4]["toolUseResult"]


# A head in front of the summary


def parted(folder: Path, made: Transcript, head: int, tail: int = 0, **fields: object) -> list[Row]:
    """The rows of a compaction that keeps the first `head` messages and the last `tail`; as `written`."""
    path = made.write(folder / f"{made.session_id}.jsonl")
    log, chain = load(path)
    with log:
        shown = messages_of(log, chain)
        end = len(shown) - tail
        kept = (*shown[:head], *shown[end:])
        gone = frozenset(uuid for m in shown[head:end] for uuid in m.uuids)
        in_place = fields.get("in_place")
        plan = NewHistory(
            made.session_id if in_place else NEW_ID, "So far.", kept, [500] * len(kept), 9_000, 1_100,
            summary_at=head, gone=gone, direction="from", changed_from=head, **fields,  # type: ignore[arg-type]
        )  # fmt: skip
        rows = materialize(log, chain, plan)
    old = path.read_bytes() if in_place else b""
    (folder / "out.jsonl").write_bytes(old + b"".join(row + b"\n" for row in rows))
    return [json.loads(row) for row in rows]


def long() -> Transcript:
    made = Transcript().prompt("First").answer("Yes.", thinking="Hm.").system("informational", "hook")
    made.prompt("Second").answer("Done.").system("informational", "late").prompt("Third").answer(
        "Good.", thinking="So."
    )
    return made


@pytest.mark.parametrize("in_place", [False, True])
def test_what_is_in_front_of_the_summary_stays_as_it_is(folder: Path, in_place: bool) -> None:
    old = {row["uuid"]: row for row in rows_of(long())}
    rows = [row for row in parted(folder, long(), 2, in_place=in_place, restored=["note"]) if "uuid" in row]

    kinds = [row.get("subtype") or row["type"] for row in rows]
    assert kinds[:7] == ["compact_boundary", "user", "assistant", "assistant", "informational", "user", "user"]
    assert kinds[7:] == (["informational"] if in_place else [])
    for row in rows[1:5]:
        assert row.get("message") == old[row["uuid"]].get("message")
    assert "Hm." in str(rows)
    assert "late" not in str(rows)
    assert [m.kind for m in messages(folder / "out.jsonl")] == ["prompt", "response", "summary", "meta"]
    for a, b in itertools.pairwise(rows):
        assert b["parentUuid"] == a["uuid"]
        assert str(a["timestamp"]) < str(b["timestamp"])


def test_in_place_the_last_id_of_before_is_the_last_one(folder: Path) -> None:
    rows = [row for row in parted(folder, long(), 2, in_place=True) if "uuid" in row]

    assert rows[-1]["uuid"] == long().last
    assert rows[-1]["content"] == "left out by a compaction"
    assert str(rows[-2]["timestamp"]) > str(rows_of(long())[-1]["timestamp"])
    preserved = rows[0]["compactMetadata"]["preservedMessages"]
    assert preserved["anchorUuid"] == rows[0]["uuid"]
    assert preserved["uuids"] == [row["uuid"] for row in rows[1:]]  # else clients let the next row skip the summary
    assert rows[0]["foldmark"]["leafUuid"] == long().last


@pytest.mark.parametrize("in_place", [False, True])
def test_between_a_head_and_a_tail_stands_the_summary(folder: Path, in_place: bool) -> None:
    rows = [row for row in parted(folder, long(), 2, 2, in_place=in_place) if "uuid" in row]

    assert texts(messages(folder / "out.jsonl")) == [
        ("user", "First"),
        ("assistant", "None"),
        ("assistant", "Yes."),
        ("user", "So far."),
        ("user", "Third"),
        ("assistant", "Good."),
    ]
    assert "So." not in str(rows)  # thinking behind the summary is gone
    assert [str(row["timestamp"]) for row in rows] == sorted(str(row["timestamp"]) for row in rows)


def test_in_front_of_the_summary_all_clients_read_the_same(folder: Path) -> None:
    made = Transcript().prompt("First").answer("Yes.").note("Go on")
    made.rows[-1]["ownNote"] = True
    made.prompt("<command-name>/x</command-name>")
    made.system("local_command", "<local-command-stdout>out</local-command-stdout>")
    made.respond({"type": "text", "text": "API Error"})
    made.rows[-1] |= {"isApiErrorMessage": True}
    made.attachment("queued_command", "Queued", role="user").answer("Fine.").prompt("Second").answer("Done.")
    rows = parted(folder, made, 7)

    assert "ownNote" not in str(rows)
    assert "Go on\\n</system-reminder>" in str(rows)
    assert "local_command" not in str(rows)
    assert "local-command-stdout" in str([row for row in rows if row["type"] == "user"])
    assert "API Error" not in str(rows)
    assert [row["message"]["content"] for row in rows if "Queued" in str(row)] == [[{"type": "text", "text": "Queued"}]]
    in_place = [row for row in parted(folder, made, 7, in_place=True) if "Queued" in str(row)]
    assert [row["type"] for row in in_place] == ["attachment"]  # as the running client has it


def test_the_mode_is_written_where_only_prompts_said_it(folder: Path) -> None:
    assert "permission-mode" not in str(written(folder, session(), 4))
    for in_place in (False, True):
        rows = written(folder, session(), 4, permission_mode="plan", in_place=in_place)
        (mode,) = [row for row in rows if row["type"] == "permission-mode"]
        new_id = session().session_id if in_place else NEW_ID
        assert mode == {"type": "permission-mode", "permissionMode": "plan", "sessionId": new_id}
    made = session().beside("permission-mode", permissionMode="default").beside("mode", mode="normal")
    rows = written(folder, made, 4, permission_mode="plan")
    assert [row["permissionMode"] for row in rows if row["type"] == "permission-mode"] == ["plan"]
    assert [row["mode"] for row in rows if row["type"] == "mode"] == ["normal"]
