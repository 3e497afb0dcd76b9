"""Transcripts that broke tools of this kind, each standing for its kind: `tests/data/cases/<name>.jsonl`."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from core.context.view import api_messages, messages_of
from core.model import JSON, Message, block_text, tool_results, tool_uses
from core.transcript.chain import Chain, load
from core.transcript.check import check
from core.transcript.findings import NOTES, Finding
from core.transcript.repair import repair
from core.transcript.store import Store

CASES = Path(__file__).parents[1] / "data" / "cases"


def uuid(n: int) -> str:
    return f"00000000-0000-4000-8000-{n:012x}"


@dataclass(frozen=True)
class Case:
    """All that is said about a transcript."""

    chain: Chain
    messages: tuple[Message, ...]
    sent: list[dict[str, JSON]]
    findings: list[Finding]
    repaired: bytes
    rows: int

    @property
    def texts(self) -> list[str]:
        return [block_text(b) for m in self.messages for b in m.content]

    def lines(self, kind: str) -> list[int]:
        """Where findings of a kind are."""
        return [f.line for f in self.findings if f.kind == kind]

    def blocks(self, n: int) -> list[dict[str, JSON]]:
        """The content of a message as it is sent."""
        content = self.sent[n]["content"]
        assert isinstance(content, list)
        return [b for b in content if isinstance(b, dict)]


def read(path: Path) -> Case:
    log, chain = load(path, whole=True)
    with log:
        messages = messages_of(log, chain)
        sent = api_messages(messages)
        return Case(chain, messages, sent, check(log, chain), b"".join(repair(log)), len(log.entries))


def case(name: str) -> Case:
    return read(CASES / f"{name}.jsonl")


def source(name: str) -> bytes:
    return (CASES / f"{name}.jsonl").read_bytes()


def rewritten(folder: Path, data: bytes) -> Case:
    path = folder / "copy.jsonl"
    path.write_bytes(data)
    return read(path)


# corrupt-1: two whole records on one physical line


def test_both_records_of_a_joined_line_are_read_and_it_is_reported_once() -> None:
    found = case("corrupt-1")

    assert found.rows == 8
    assert [(f.kind, f.line) for f in found.findings] == [("joined-line", 3)]


def test_a_rewrite_puts_the_missing_line_end_back(tmp_path: Path) -> None:
    found = case("corrupt-1")

    assert len(found.repaired.splitlines()) == 8
    assert rewritten(tmp_path, found.repaired).findings == []
    assert rewritten(tmp_path, found.repaired).sent == found.sent


# corrupt-2: a record that is cut, and the next one on the same line


def test_the_record_behind_a_cut_one_is_read_and_all_after_it() -> None:
    found = case("corrupt-2")

    assert found.rows == 7
    assert found.texts[-1] == "Module 1 is fine."
    assert "Step 1: look at module 1." in found.texts


def test_a_cut_record_is_reported_with_its_line_and_its_place() -> None:
    (cut,) = (f for f in case("corrupt-2").findings if f.kind == "spliced-line")

    assert cut.line == 3
    assert source("corrupt-2")[cut.offset :].startswith(b'{"parentUuid":"00000000-0000-4000-8000-000000000002"')


def test_children_of_a_lost_row_hang_off_the_row_before_them_and_its_call_is_left_out() -> None:
    found = case("corrupt-2")

    assert found.lines("missing-parent") == [3]
    assert [e.uuid for e in found.chain.entries][:3] == [uuid(1), uuid(2), uuid(4)]
    assert found.lines("unpaired-call") == [2]
    assert "toolu_r000" not in json.dumps(found.sent)


# corrupt-3: the last record is cut, no line end


def test_a_torn_tail_is_reported_and_left_out() -> None:
    found = case("corrupt-3")

    assert found.rows == 7
    assert [(f.kind, f.line) for f in found.findings] == [("torn-tail", 8)]


def test_a_repaired_torn_tail_ends_with_a_line_end() -> None:
    found = case("corrupt-3")

    assert source("corrupt-3").startswith(found.repaired)
    assert found.repaired.endswith(b"}\n")


# corrupt-5: one uuid, two contents


def test_of_two_rows_of_one_uuid_the_last_counts_once_and_the_other_is_reported() -> None:
    found = case("corrupt-5")
    rows = [json.loads(line) for line in source("corrupt-5").splitlines()]
    twice = next(u for u, n in Counter(r["uuid"] for r in rows).items() if n > 1)
    last = [r for r in rows if r["uuid"] == twice][-1]

    assert found.lines("duplicate-uuid") == [2]
    assert [e.uuid for e in found.chain.entries].count(twice) == 1
    assert [list(m.content) for m in found.messages if twice in m.uuids] == [last["message"]["content"]]


def test_no_message_comes_twice_and_children_of_repeated_rows_find_their_parent() -> None:
    found = case("corrupt-5")

    assert len(set(found.texts)) == len(found.texts) == 4
    assert found.lines("missing-parent") == []


# corrupt-7: parents that were never written


def test_a_row_without_a_parent_hangs_off_the_row_before_it() -> None:
    assert len(case("corrupt-7").chain.entries) == 14


def test_a_first_row_with_an_unknown_parent_is_a_root_without_a_word(tmp_path: Path) -> None:
    cut = b"".join(source("boundary-1").splitlines(keepends=True)[3:11])

    found = rewritten(tmp_path, cut)

    assert found.lines("missing-parent") == []
    assert len(found.chain.entries) == 8


def test_a_repair_never_hangs_a_row_off_one_of_another_session(tmp_path: Path) -> None:
    lines = source("corrupt-7").splitlines(keepends=True)
    other = b"22222222-2222-4222-8222-222222222222"
    mixed = b"".join([*lines[:4], *(x.replace(b"11111111-1111-4111-8111-111111111111", other) for x in lines[4:])])

    found = rewritten(tmp_path, mixed)

    assert found.lines("missing-parent") == [5, 9]
    assert [f.repaired for f in found.findings] == ["", "hung off the row before it"]
    assert found.repaired.splitlines(keepends=True)[4] == mixed.splitlines(keepends=True)[4]


# corrupt-9: byte-order mark, CRLF, U+2028 inside strings, half a surrogate, bytes that are no UTF-8


def test_lines_end_at_line_feeds_alone() -> None:
    found = case("corrupt-9")

    assert found.rows == 4
    assert found.texts[0] == "Line sep: \u2028 para \u2029 nel \x85 end."


def test_half_a_surrogate_and_bad_bytes_are_replaced_in_what_goes_out_and_counted() -> None:
    found = case("corrupt-9")

    assert found.texts[2] == "broken \ufffd surrogate"
    assert "\ufffd" in found.texts[3]
    msgspec.json.encode(found.sent)
    "".join(found.texts).encode()
    assert found.lines("bad-bytes") == [1, 3, 4]
    assert "2 sequences" in found.findings[-1].message


def test_rows_that_nothing_is_wrong_with_keep_their_bytes() -> None:
    before, after = source("corrupt-9").split(b"\n"), case("corrupt-9").repaired.split(b"\n")

    assert after[1] == before[1]
    assert not after[0].startswith(b"\xef\xbb\xbf")


# corrupt-10: odd but plausible rows


def test_odd_rows_stop_nothing_and_an_unknown_type_is_passed_through_as_a_parent() -> None:
    found = case("corrupt-10")

    assert found.texts == ["hello"]
    assert [e.type for e in found.chain.entries] == ["wormhole", "user"]
    assert b'"wormhole"' in found.repaired


def test_odd_rows_are_counted_by_reason() -> None:
    counts = Counter(f.kind for f in case("corrupt-10").findings)

    assert counts == {"not-a-row": 1, "odd-row": 5, "pretty-printed": 1, "no-timestamp": 1}


def test_a_file_that_is_pretty_printed_throughout_is_read(tmp_path: Path) -> None:
    pretty = b"".join(msgspec.json.format(line, indent=2) + b"\n" for line in source("pairs-1").splitlines())

    found = rewritten(tmp_path, pretty)

    assert found.sent == case("pairs-1").sent
    assert {f.kind for f in found.findings} == {"pretty-printed"}
    assert len(found.repaired.splitlines()) == 9


def test_a_file_that_is_one_json_document_is_reported_once(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in source("pairs-1").splitlines()]

    found = rewritten(tmp_path, json.dumps(lines, indent=2).encode())

    assert found.rows == 0
    assert len(found.findings) == 1


# huge-1: a line whose bulk is not sent


def huge(folder: Path, megabytes: int) -> Path:
    rows = [json.loads(line) for line in source("huge-1").splitlines()]
    rows[2]["toolUseResult"]["stdout"] = "0123456789abcde\n" * (megabytes << 16)
    path = folder / "huge.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def test_only_the_content_of_a_message_counts_for_the_view_and_the_tokens() -> None:
    found = case("huge-1")
    (result,) = (e for e in found.chain.entries if e.uuid == uuid(3))

    assert result.size > 200_000
    assert sum(o.chars for o in result.outlines) < 3_000
    assert len(json.dumps(found.sent)) < 6_000


def test_a_long_line_costs_a_small_multiple_of_its_length_in_memory(tmp_path: Path) -> None:
    path = huge(tmp_path, 12)

    tracemalloc.start()
    log, chain = load(path)
    with log:
        messages_of(log, chain)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(chain.entries) == 4
    assert peak < 4 * path.stat().st_size


def test_a_long_line_is_named_with_its_length_and_what_makes_it_long(tmp_path: Path) -> None:
    (finding,) = (f for f in read(huge(tmp_path, 12)).findings if f.kind != "gone-output")

    assert (finding.kind, finding.line, finding.repaired) == ("long-line", 3, "")
    assert "toolUseResult" in finding.message


# boundary-1: the classic boundary


def test_the_view_begins_behind_the_boundary_and_older_rows_stay_readable() -> None:
    log, chain = load(CASES / "boundary-1.jsonl")
    with log:
        messages = messages_of(log, chain)
        before = [log.row(e) for e in log.entries if chain.boundary and e.offset < chain.boundary.offset]

    assert [block_text(m.content[0]) for m in messages][1:] == ["go on", "going on"]
    assert len(messages) == 3
    assert len([row for row in before if row.get("message")]) == 12


def test_a_summary_is_no_prompt_of_a_person() -> None:
    assert [m.kind for m in case("boundary-1").messages] == ["summary", "prompt", "response"]


# boundary-2: rows that a boundary keeps in their old place


def test_kept_rows_follow_the_summary_and_nothing_else_of_before_is_sent() -> None:
    found = case("boundary-2")

    order = [e.uuid for e in found.chain.entries]
    assert order == [uuid(n) for n in (10, 7, 8, 11, 12, 13, 14, 15)]


def test_what_a_compaction_command_leaves_is_no_request() -> None:
    kinds = {m.uuid: m.kind for m in case("boundary-2").messages}

    assert [kinds[uuid(n)] for n in (11, 12, 13)] == ["meta", "command", "command"]


def test_rows_are_ordered_by_their_place_and_not_by_time(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in source("boundary-2").splitlines()]
    for n, row in enumerate(rows):
        row["timestamp"] = f"2026-01-05T09:{59 - n:02d}:00.000Z"

    found = rewritten(tmp_path, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

    assert [e.uuid for e in found.chain.entries] == [e.uuid for e in case("boundary-2").chain.entries]


def test_of_kept_rows_that_are_not_all_in_the_file_the_others_are_sent(tmp_path: Path) -> None:
    lines = source("boundary-2").splitlines(keepends=True)

    found = rewritten(tmp_path, b"".join(line for n, line in enumerate(lines, 1) if n != 7))

    assert [e.uuid for e in found.chain.entries][:2] == [uuid(10), uuid(8)]
    assert found.lines("preserved-not-in-file") == [8]


# boundary-3: history that is not in the file


def test_history_that_is_not_in_the_file_is_said_once_and_no_error() -> None:
    found = case("boundary-3")

    assert found.texts[1:] == ["ok", "yes"]
    assert [f.kind for f in found.findings] == ["history-not-in-file"]


# boundary-5: a rewind before a compaction


def test_a_branch_that_was_left_is_in_no_view() -> None:
    assert not [t for t in case("boundary-5").texts if "First a" in t]


def test_a_rewind_to_before_the_boundary_has_no_boundary_in_front(tmp_path: Path) -> None:
    row = json.loads(source("boundary-5").splitlines()[4])
    again = {**row, "uuid": uuid(99), "parentUuid": uuid(5), "message": {"role": "user", "content": "Third attempt"}}

    found = rewritten(tmp_path, source("boundary-5") + msgspec.json.encode(again) + b"\n")

    assert found.texts == ["start", "ready", "Second attempt", "Third attempt"]
    assert found.chain.boundary is None


# boundary-6: no conversation


@pytest.mark.parametrize("data", [source("boundary-6"), b""], ids=["metadata", "empty"])
def test_a_file_without_a_conversation_has_an_empty_view(tmp_path: Path, data: bytes) -> None:
    found = rewritten(tmp_path, data)

    assert (found.chain.entries, found.sent, found.findings) == ((), [], [])


def test_a_rewrite_keeps_the_last_of_each_single_value() -> None:
    assert case("boundary-6").repaired == source("boundary-6")


# pairs-1: parallel calls


def test_parallel_calls_are_one_response_and_their_results_one_message() -> None:
    found = case("pairs-1")

    assert [b["type"] for b in found.blocks(1)] == ["thinking", "tool_use", "tool_use", "tool_use"]
    assert [b["id"] for b in found.blocks(1)[1:]] == ["toolu_p0", "toolu_p1", "toolu_p2"]
    assert [b["tool_use_id"] for b in found.blocks(2)] == ["toolu_p0", "toolu_p1", "toolu_p2"]
    assert [m["role"] for m in found.sent] == ["user", "assistant", "user", "assistant"]


def test_parallel_calls_leave_no_orphans_and_the_file_is_as_it_should_be() -> None:
    found = case("pairs-1")

    assert found.findings == []
    assert found.repaired == source("pairs-1")
    assert "is_error" not in json.dumps(found.sent)


def test_parallel_results_are_counted_each() -> None:
    assert sum(len(tool_results(m)) for m in case("pairs-1").messages) == 3


# pairs-2: five calls at once


def test_five_calls_and_their_results_stay_together() -> None:
    found = case("pairs-2")
    (response,) = (m for m in found.messages if len(tool_uses(m)) == 5)
    at = next(n for n, m in enumerate(found.sent) if len(found.blocks(n)) >= 5 and m["role"] == "assistant")

    assert {b["tool_use_id"] for b in found.blocks(at + 1)} == {b["id"] for b in tool_uses(response)}


# pairs-3: killed in the middle of a call


def test_a_call_that_was_never_answered_gets_an_error_result_in_the_view_alone() -> None:
    before = source("pairs-3")
    found = case("pairs-3")

    (result,) = found.blocks(2)
    assert (result["tool_use_id"], result["is_error"]) == ("toolu_dead", True)
    assert source("pairs-3") == before
    assert found.repaired == before
    assert not [b for m in found.messages for b in tool_results(m)]


def test_a_real_result_that_comes_later_wins(tmp_path: Path) -> None:
    call = json.loads(source("pairs-3").splitlines()[-1])
    result: dict[str, JSON] = {"type": "tool_result", "tool_use_id": "toolu_dead", "content": "late, but real"}
    row = {**call, "type": "user", "uuid": uuid(99), "parentUuid": call["uuid"]}
    row["message"] = {"role": "user", "content": [result]}

    found = rewritten(tmp_path, source("pairs-3") + msgspec.json.encode(row) + b"\n")

    assert found.blocks(2) == [result]


# pairs-5: rows twice, and a call's id again with another result


def test_a_call_id_is_unique_in_the_view_and_the_first_pair_counts() -> None:
    found = case("pairs-5")
    blocks = [b for n in range(len(found.sent)) for b in found.blocks(n)]
    rows = [json.loads(line) for line in source("pairs-5").splitlines()]

    assert [b["id"] for b in blocks if b["type"] == "tool_use"] == ["toolu_dup"]
    (result,) = (b for b in blocks if b["type"] == "tool_result")
    assert result == rows[2]["message"]["content"][0]


def test_repeated_rows_count_once_and_the_second_pair_is_reported() -> None:
    found = case("pairs-5")

    assert found.lines("duplicate-uuid") == [2, 3]
    assert found.lines("duplicate-call") == [6]
    assert len(found.chain.entries) == 6


# sidechain-1: a subagent's rows in the main file


def test_a_sidechain_is_no_part_of_the_main_conversation() -> None:
    found = case("sidechain-1")

    assert len(found.messages) == 4
    assert not [t for t in found.texts if t.startswith("sidechain")]
    assert found.chain.entries[0].uuid == uuid(1)
    assert found.chain.leaf is not None
    assert found.chain.leaf.uuid == uuid(10)


def test_usage_of_a_sidechain_is_not_the_size_of_the_context() -> None:
    found = case("sidechain-1")

    assert not [e for e in found.chain.entries if e.sidechain]
    assert [m.usage is not None for m in found.messages] == [False, True, False, True]


# sidechain-2: a subagent's own file


def test_a_file_of_sidechain_rows_alone_is_a_conversation() -> None:
    found = case("sidechain-2")

    assert [m.kind for m in found.messages] == ["summary", "response"]
    assert found.texts[1] == "Review done."


def test_an_agent_file_of_one_row_is_no_error(tmp_path: Path) -> None:
    found = rewritten(tmp_path, source("sidechain-2").splitlines(keepends=True)[0])

    assert (len(found.messages), found.findings) == (1, [])


# thinking-1: one response over four rows


def test_rows_of_one_response_are_one_message_with_their_blocks_as_in_the_file() -> None:
    found = case("thinking-1")
    rows = [json.loads(line) for line in source("thinking-1").splitlines()]

    assert list(found.messages[1].content) == [row["message"]["content"][0] for row in rows[1:5]]
    sent = msgspec.json.encode(found.sent)
    for row in rows[1:5]:
        assert msgspec.json.encode(row["message"]["content"][0]) in sent


def test_empty_thinking_with_a_signature_is_kept() -> None:
    kept = [b for m in case("thinking-1").messages for b in m.content if b.get("type") == "thinking"]

    assert [b for b in kept if not b["thinking"] and b["signature"]]


def test_thinking_without_a_signature_is_not_sent_and_reported(tmp_path: Path) -> None:
    unsigned = source("thinking-1").replace(b'"signature"', b'"unsigned"')

    found = rewritten(tmp_path, unsigned)

    assert not [b for m in found.messages for b in m.content if b.get("type") == "thinking"]
    assert found.lines("unsigned-thinking") == [2, 7]


# persist-1: the file that an output was stored in is gone


def test_an_output_that_is_gone_while_its_transcript_is_kept_is_reported_and_no_damage() -> None:
    (finding,) = case("persist-1").findings

    assert (finding.kind, finding.line, finding.repaired) == ("gone-output", 3, "")
    assert finding.message.startswith("toolu_m: its stored output is gone")
    assert finding.kind in NOTES


def test_an_output_that_is_there_is_not_reported(tmp_path: Path) -> None:
    store = Store.beside(tmp_path / "copy.jsonl").folder
    store.mkdir(parents=True)
    (store / "toolu_m.txt").write_text("all of it", encoding="utf-8")

    assert rewritten(tmp_path, source("persist-1")).findings == []


# persist-3: a file's own text holds the markers


def test_of_a_file_that_holds_the_markers_no_path_is_looked_for() -> None:
    found = case("persist-3")

    assert "<persisted-output>" in "".join(found.texts)
    assert found.findings == []
