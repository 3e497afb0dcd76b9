"""Damage: what is reported of it, and what a repair makes of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from core.context.view import api_messages, messages_of
from core.model import JSON
from core.transcript.chain import load
from core.transcript.check import LONG_LINE_BYTES, check
from core.transcript.findings import NOTES, Finding
from core.transcript.records import Record, Source
from core.transcript.repair import repair
from tests.rows import STEPS, Rows, any_rows, damaged

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
SOUND = tuple(name for name in STEPS if name != "dangling")


def checked(folder: Path, data: bytes) -> tuple[list[Finding], bytes, list[dict[str, JSON]]]:
    """The findings, the repaired file, and what is sent for the file."""
    path = folder / "session.jsonl"
    path.write_bytes(data)
    log, chain = load(path, whole=True)
    with log:
        return check(log, chain), b"".join(repair(log)), api_messages(messages_of(log, chain))


def kinds(folder: Path, data: bytes) -> list[tuple[str, int]]:
    return [(f.kind, f.line) for f in checked(folder, data)[0]]


def conversation() -> Rows:
    transcript = Rows()
    transcript.prompt("first")
    transcript.calls(2)
    transcript.prompt("second")
    return transcript


@same_folder
@given(any_rows(SOUND))
def test_a_sound_file_is_left_as_it_is(tmp_path: Path, transcript: Rows) -> None:
    findings, repaired, _ = checked(tmp_path, transcript.data())

    assert repaired == transcript.data()
    assert not [f for f in findings if f.repaired]


@same_folder
@given(damaged())
def test_a_repaired_file_has_the_view_of_the_damaged_one_and_nothing_left_to_repair(
    tmp_path: Path, data: bytes
) -> None:
    _, repaired, sent = checked(tmp_path, data)
    findings, again, sent_again = checked(tmp_path, repaired)

    assert sent_again == sent
    assert again == repaired
    assert not [f for f in findings if f.repaired]


def test_findings_come_in_file_order_with_physical_lines(tmp_path: Path) -> None:
    lines = conversation().lines()
    lines[1] = lines[1].rstrip(b"\n")
    lines[4] = b"\n\nnull\n" + lines[4]

    assert kinds(tmp_path, b"".join(lines)) == [("joined-line", 2), ("not-a-row", 6)]


def test_a_repeated_row_is_damage_unless_a_compaction_repeats_it(tmp_path: Path) -> None:
    transcript = conversation()
    again = transcript.lines()[2]

    assert kinds(tmp_path, transcript.data() + again) == [("duplicate-uuid", 3)]
    transcript.repeating_compaction(3)
    assert kinds(tmp_path, transcript.data()) == []


def test_a_parent_that_is_not_in_the_file_is_replaced_by_the_row_before(tmp_path: Path) -> None:
    transcript = conversation()
    lost = transcript.user("lost", parent="nowhere")
    before = transcript.uuids()[-2]

    findings, repaired, _ = checked(tmp_path, transcript.data())

    assert [(f.kind, f.repaired) for f in findings] == [("missing-parent", "hung off the row before it")]
    row = msgspec.json.decode(repaired.splitlines()[-1])
    assert (row["uuid"], row["parentUuid"]) == (lost, before)
    assert repaired.splitlines()[:-1] == transcript.data().splitlines()[:-1]


def test_loops_of_parents_are_cut_where_the_walk_ends(tmp_path: Path) -> None:
    transcript = conversation()
    for loop in ((0, 3), (4, 4)):
        transcript.rows[loop[0]]["parentUuid"] = transcript.uuids()[loop[1]]

    findings, repaired, _ = checked(tmp_path, transcript.data())

    assert [(f.kind, f.line) for f in findings] == [("cycle", 1), ("cycle", 5)]
    parents = [msgspec.json.decode(line)["parentUuid"] for line in repaired.splitlines()]
    assert (parents[0], parents[4]) == (None, None)


STAMPS: list[tuple[list[str | None], list[str]]] = [
    (["2026-01-01T00:00:00.000Z", None, "2026-01-01T00:00:05.000Z"], ["2026-01-01T00:00:00.001Z"]),
    (["2026-01-01T00:00:05.000Z", None, "2026-01-01T00:00:05.000Z"], ["2026-01-01T00:00:05.000Z"]),
    (["2026-01-01T00:00:05.000Z", None, "2025-01-01T00:00:00.000Z"], ["2026-01-01T00:00:05.001Z"]),
    ([None, None, "2026-01-01T00:00:00.000Z"], ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"]),
    ([None, "some day", None], ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z"]),
    (["2026-01-01T00:00:00", None, None], ["2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00.002Z"]),
]


@pytest.mark.parametrize(("stamps", "added"), STAMPS)
def test_a_row_without_a_timestamp_gets_one_between_its_neighbours(
    tmp_path: Path, stamps: list[str | None], added: list[str]
) -> None:
    transcript = Rows()
    for stamp in stamps:
        transcript.user("hi")
        transcript.rows[-1]["timestamp"] = stamp

    findings, repaired, _ = checked(tmp_path, transcript.data())

    rows = [msgspec.json.decode(line) for line in repaired.splitlines()]
    assert [f.kind for f in findings] == ["no-timestamp"] * len(added)
    assert [row["timestamp"] for row, old in zip(rows, stamps, strict=True) if old is None] == added


def test_pairs_that_are_not_whole_are_reported(tmp_path: Path) -> None:
    transcript = Rows()
    transcript.calls(2, answered=1)
    transcript.user([{"type": "tool_result", "tool_use_id": "toolu_of_nothing", "content": "?"}])

    findings, _, sent = checked(tmp_path, transcript.data())

    assert [(f.kind, f.line) for f in findings] == [("open-call", 3), ("orphan-result", 5)]
    assert "toolu_of_nothing" not in str(sent)


@pytest.mark.parametrize(
    ("more", "kinds"),
    [("", ["open-call"]), ("prompt", ["unpaired-call"]), ("answer", ["unpaired-call"])],
)
def test_a_call_whose_result_may_still_come_is_no_damage(tmp_path: Path, more: str, kinds: list[str]) -> None:
    transcript = Rows()
    transcript.calls(2, answered=1)
    if more:
        transcript.user("Go on") if more == "prompt" else transcript.assistant({"type": "text", "text": "Done."}, "m")

    assert [f.kind for f in checked(tmp_path, transcript.data())[0]] == kinds
    assert {"open-call", "no-final-newline"} < NOTES


def test_a_long_line_that_is_hard_to_read_is_reported_all_the_same(tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, b'{"type":"mode","mode":"' + b"x" * LONG_LINE_BYTES + b'\\ud800"}\n')[0][1:]

    assert finding.kind == "long-line"
    assert "1,048," in finding.message


def test_bytes_that_are_repaired_are_the_ones_that_are_read(tmp_path: Path) -> None:
    transcript = conversation()
    data = transcript.data().replace(b"first", b"\0\xff \\ud83d")

    _, repaired, sent = checked(tmp_path, data)

    assert "\ufffd \ufffd" in str(sent)
    assert checked(tmp_path, repaired)[2] == sent
    assert checked(tmp_path, repaired)[0] == []


def test_a_row_of_bad_bytes_without_a_message_is_odd(tmp_path: Path) -> None:
    data = b'{"type":"user","uuid":"u","parentUuid":null,"timestamp":"2026-01-05T09:00:00Z","x":"\\ud800"}\n'

    assert kinds(tmp_path, data) == [("bad-bytes", 1), ("odd-row", 1)]


def test_a_block_of_which_the_end_is_missing_is_named(tmp_path: Path) -> None:
    source = Source("session.jsonl", "s", 1)
    record = Record(op="compact", id="1", session_id="s", source=source).row(b"x" * 99)
    data = conversation().data()

    findings = checked(tmp_path, data + record)[0]

    assert [(f.kind, f.offset) for f in findings] == [("cut-block", len(data))]
