"""The active chain: which rows the next request is made of."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.context.view import api_messages, messages_of
from core.model import JSON, block_text
from core.transcript import backwards, reader
from core.transcript.chain import Chain, load
from tests.rows import Rows, any_rows, damaged

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, data: bytes) -> Path:
    path = folder / "session.jsonl"
    path.write_bytes(data)
    return path


def texts(path: Path, whole: bool = False) -> list[str]:
    """The text of each message that is sent; calls and results by their ids."""
    log, chain = load(path, whole)
    with log:
        return [
            block_text(b) or str(b.get("id") or b.get("tool_use_id"))
            for m in messages_of(log, chain)
            for b in m.content
        ]


def chain_of(folder: Path, transcript: Rows) -> Chain:
    log, chain = load(written(folder, transcript.data()))
    log.close()
    return chain


@same_folder
@given(any_rows() | damaged(), st.integers(40, 900))
def test_a_large_file_gives_the_same_view_read_from_its_end_as_read_whole(
    tmp_path: Path, given_: Rows | bytes, batch: int
) -> None:
    path = written(tmp_path, given_ if isinstance(given_, bytes) else given_.data())

    with patch.multiple(backwards, WHOLE_BYTES=0, BATCH_BYTES=batch):
        tail, tail_chain = load(path)
        whole, whole_chain = load(path, whole=True)
    with tail, whole:
        assert tail_chain.entries == whole_chain.entries
        assert (tail_chain.boundary, tail_chain.leaf) == (whole_chain.boundary, whole_chain.leaf)
        assert api_messages(messages_of(tail, tail_chain)) == api_messages(messages_of(whole, whole_chain))


@same_folder
@given(any_rows() | damaged(), st.integers(40, 900))
def test_the_size_of_the_batches_has_no_say(tmp_path: Path, given_: Rows | bytes, batch: int) -> None:
    path = written(tmp_path, given_ if isinstance(given_, bytes) else given_.data())

    at_once = reader.open_log(path, whole=True)
    with patch.object(backwards, "BATCH_BYTES", batch):
        in_pieces = reader.open_log(path, whole=True)

    with at_once, in_pieces:
        assert in_pieces.entries == at_once.entries


# The rest states what the client was measured to do.


def started() -> Rows:
    transcript = Rows()
    transcript.prompt("one")
    transcript.prompt("two")
    return transcript


def test_the_newest_leaf_in_file_order_is_resumed(tmp_path: Path) -> None:
    transcript = started()
    transcript.rewind(1)
    transcript.prompt("three")

    assert texts(written(tmp_path, transcript.data())) == ["one", "about one", "three", "about three"]


def test_a_last_prompt_row_names_another_leaf(tmp_path: Path) -> None:
    transcript = started()
    old = transcript.tip
    transcript.rewind(1)
    transcript.prompt("three")
    transcript.tip = old
    transcript.note("last-prompt")

    assert texts(written(tmp_path, transcript.data())) == ["one", "about one", "two", "about two"]


def test_a_last_prompt_row_that_names_an_inner_row_or_none_is_ignored(tmp_path: Path) -> None:
    transcript = started()
    for named in (transcript.uuids()[1], "00000000-0000-0000-0000-000000000000"):
        transcript.tip = named
        transcript.note("last-prompt")

        assert texts(written(tmp_path, transcript.data())) == ["one", "about one", "two", "about two"]


def test_a_last_prompt_row_can_name_a_leaf_before_the_boundary_of_a_small_file_only(tmp_path: Path) -> None:
    transcript = started()
    old = transcript.tip
    transcript.compaction()
    transcript.tip = old
    transcript.note("last-prompt")
    path = written(tmp_path, transcript.data())

    assert texts(path) == ["one", "about one", "two", "about two"]
    with patch.object(backwards, "WHOLE_BYTES", 0):
        assert texts(path) == ["Summary of what was."]


def test_a_last_prompt_row_before_the_last_boundary_does_not_count(tmp_path: Path) -> None:
    transcript = started()
    transcript.note("last-prompt")
    transcript.compaction()

    assert texts(written(tmp_path, transcript.data())) == ["Summary of what was."]


def test_a_loop_of_parents_ends_the_walk_and_is_reported(tmp_path: Path) -> None:
    transcript = started()
    transcript.rows[0]["parentUuid"] = transcript.uuids()[2]

    chain = chain_of(tmp_path, transcript)

    assert [e.uuid for e in chain.entries] == transcript.uuids()
    assert [(f.kind, f.offset) for f in chain.findings] == [("cycle", 0)]


def test_rows_in_reverse_order_are_walked_by_their_parents(tmp_path: Path) -> None:
    transcript = started()
    transcript.calls(2)
    transcript.rows.reverse()

    chain = chain_of(tmp_path, transcript)

    assert [e.uuid for e in chain.entries][:4] == transcript.uuids()[:-5:-1]
    assert sorted(e.uuid for e in chain.entries) == sorted(transcript.uuids())


def test_progress_rows_are_passed_through(tmp_path: Path) -> None:
    transcript = started()
    transcript.add("progress", data={})
    transcript.prompt("three")
    transcript.add("progress", data={})

    chain = chain_of(tmp_path, transcript)

    assert chain.leaf is not None
    assert chain.leaf.uuid == transcript.uuids()[-2]
    assert texts(tmp_path / "session.jsonl")[-1] == "about three"


def test_results_that_hang_off_their_own_calls_are_all_there(tmp_path: Path) -> None:
    transcript = started()
    transcript.calls(3, order=1)
    transcript.prompt("three")

    assert len(chain_of(tmp_path, transcript).entries) == len(transcript.uuids())


def test_a_response_without_an_id_keeps_its_results_beside_it(tmp_path: Path) -> None:
    transcript = started()
    for row in (1, 3):
        transcript.rows[row]["message"] = {"content": [{"type": "tool_use", "id": f"toolu_{row}", "input": {}}]}
    tip = transcript.tip
    for n, uuid in ((1, transcript.uuids()[1]), (3, transcript.uuids()[3])):
        transcript.tip = uuid
        transcript.user([{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "ok"}])
    transcript.tip = tip
    transcript.prompt("three")

    order = [e.uuid for e in chain_of(tmp_path, transcript).entries]
    assert order == [transcript.uuids()[n] for n in (0, 1, 4, 2, 3, 5, 6, 7)]


def test_a_rewind_in_a_large_file_cannot_reach_what_is_before_the_boundary(tmp_path: Path) -> None:
    transcript = started()
    transcript.compaction()
    transcript.prompt("three")
    transcript.rewind(1)
    transcript.prompt("four")
    path = written(tmp_path, transcript.data())

    assert texts(path) == ["one", "about one", "four", "about four"]
    with patch.object(backwards, "WHOLE_BYTES", 0):
        assert texts(path) == ["Summary of what was.", "three", "about three", "four", "about four"]


def test_a_large_file_ends_at_its_last_boundary_also_for_repeated_response_ids(tmp_path: Path) -> None:
    transcript = started()
    response = transcript.rows[-1]["message"]
    transcript.compaction()
    transcript.add("assistant", message=response)
    path = written(tmp_path, transcript.data())

    assert texts(path) == ["Summary of what was.", "about two", "about two"]
    with patch.object(backwards, "WHOLE_BYTES", 0):
        assert texts(path) == ["Summary of what was.", "about two"]


def test_rows_go_on_behind_the_rows_that_a_compaction_kept(tmp_path: Path) -> None:
    transcript = started()
    transcript.keeping_compaction(2)
    transcript.prompt("three")

    assert texts(written(tmp_path, transcript.data())) == [
        "Summary of what was.", "two", "about two", "three", "about three",
    ]  # fmt: skip


def test_with_kept_rows_a_rewind_to_before_the_boundary_leads_to_the_last_of_them(tmp_path: Path) -> None:
    transcript = started()
    transcript.keeping_compaction(2)
    transcript.prompt("three")
    transcript.rewind(0)
    transcript.prompt("four")
    path = written(tmp_path, transcript.data())

    expected = ["Summary of what was.", "two", "about two", "four", "about four"]
    assert texts(path) == expected
    with patch.object(backwards, "WHOLE_BYTES", 0):
        assert texts(path) == expected


def test_with_kept_rows_a_parent_that_is_nowhere_is_replaced_by_the_row_before(tmp_path: Path) -> None:
    transcript = started()
    transcript.keeping_compaction(2)
    transcript.prompt("three")
    transcript.user("four", parent="nowhere")
    path = written(tmp_path, transcript.data())

    expected = ["Summary of what was.", "two", "about two", "three", "about three", "four"]
    assert texts(path) == expected
    with patch.object(backwards, "WHOLE_BYTES", 0):
        assert texts(path) == expected


def test_rows_that_an_older_boundary_kept_can_be_kept_again(tmp_path: Path) -> None:
    transcript = started()
    transcript.keeping_compaction(1)
    transcript.prompt("three")
    transcript.keeping_compaction(3)
    transcript.prompt("four")

    assert texts(written(tmp_path, transcript.data())) == [
        "Summary of what was.", "about two", "three", "about three", "four", "about four",
    ]  # fmt: skip


def test_an_older_boundary_that_kept_rows_closes_what_is_before_the_last_one(tmp_path: Path) -> None:
    transcript = started()
    transcript.keeping_compaction(2)
    transcript.prompt("three")
    old = transcript.tip
    transcript.compaction()
    transcript.prompt("four")
    transcript.tip = old
    transcript.prompt("five")

    assert texts(written(tmp_path, transcript.data())) == [
        "Summary of what was.", "four", "about four", "five", "about five",
    ]  # fmt: skip


def segment(transcript: Rows, keep: int) -> None:
    """A compaction that names the first and the last kept row only."""
    transcript.keeping_compaction(keep)
    row = next(r for r in reversed(transcript.rows) if "compactMetadata" in r)
    metadata = row["compactMetadata"]
    assert isinstance(metadata, dict)
    named = metadata["preservedMessages"]
    assert isinstance(named, dict)
    assert isinstance(named["uuids"], list)
    head, tail = named["uuids"][0], named["uuids"][-1]
    row["compactMetadata"] = {
        "preservedSegment": {"headUuid": head, "tailUuid": tail, "anchorUuid": named["anchorUuid"]}
    }


@pytest.mark.parametrize("whole_bytes", [0, 1 << 20])
def test_a_segment_is_filled_in_by_the_parents(tmp_path: Path, whole_bytes: int) -> None:
    transcript = started()
    segment(transcript, 3)

    with patch.object(backwards, "WHOLE_BYTES", whole_bytes):
        assert texts(written(tmp_path, transcript.data())) == [
            "Summary of what was.", "about one", "two", "about two",
        ]  # fmt: skip


@pytest.mark.parametrize("whole_bytes", [0, 1 << 20])
def test_a_segment_whose_ends_no_parents_join_keeps_nothing(tmp_path: Path, whole_bytes: int) -> None:
    transcript = started()
    segment(transcript, 3)
    transcript.rows[2]["parentUuid"] = None

    with patch.object(backwards, "WHOLE_BYTES", whole_bytes):
        assert texts(written(tmp_path, transcript.data())) == ["Summary of what was."]


def test_a_summary_from_here_on_follows_the_rows_that_it_keeps(tmp_path: Path) -> None:
    transcript = started()
    one, answer = transcript.uuids()[:2]
    boundary = transcript.boundary()
    kept: list[str] = [one, answer]
    transcript.rows[-1]["compactMetadata"] = {"preservedMessages": {"anchorUuid": boundary, "uuids": [*kept]}}
    transcript.summary()
    transcript.prompt("three")

    assert texts(written(tmp_path, transcript.data())) == [
        "one", "about one", "Summary of what was.", "three", "about three",
    ]  # fmt: skip


def test_a_row_that_a_boundary_keeps_twice_is_kept_once(tmp_path: Path) -> None:
    transcript = started()
    one, answer = transcript.uuids()[:2]
    boundary = transcript.boundary()
    kept: list[JSON] = [one, answer, one, answer]
    transcript.rows[-1]["compactMetadata"] = {"preservedMessages": {"anchorUuid": boundary, "uuids": kept}}
    transcript.summary()

    assert texts(written(tmp_path, transcript.data())) == ["one", "about one", "Summary of what was."]


def test_rows_repeated_behind_a_boundary_stand_there_whatever_hung_off_the_old_ones(tmp_path: Path) -> None:
    transcript = started()
    kept = transcript.tip
    transcript.prompt("a branch that was left")
    transcript.tip = kept
    transcript.repeating_compaction(2)

    assert texts(written(tmp_path, transcript.data())) == ["Summary of what was.", "two", "about two"]


ODD_METADATA: list[JSON] = [
    None,
    [],
    {"preservedMessages": 1},
    {"preservedSegment": {}},
    {"preservedMessages": {"uuids": [1]}},
    {"preservedSegment": {"headUuid": "00000000-0000-4000-8000-000000000001", "tailUuid": 5}},
    {"preservedSegment": {"tailUuid": "00000000-0000-4000-8000-000000000001"}},
]


@pytest.mark.parametrize("metadata", ODD_METADATA)
def test_odd_metadata_of_a_boundary_keeps_nothing(tmp_path: Path, metadata: JSON) -> None:
    transcript = started()
    transcript.boundary()
    transcript.rows[-1]["compactMetadata"] = metadata
    transcript.summary()

    assert texts(written(tmp_path, transcript.data())) == ["Summary of what was."]


def test_kept_rows_without_a_place_to_go_stay_where_they_are(tmp_path: Path) -> None:
    transcript = started()
    transcript.keeping_compaction(1)
    row = next(r for r in transcript.rows if "compactMetadata" in r)
    row["compactMetadata"] = {"preservedMessages": {"uuids": [transcript.uuids()[3]]}}
    transcript.tip = transcript.uuids()[-1]
    transcript.prompt("three")

    assert texts(written(tmp_path, transcript.data())) == ["Summary of what was.", "three", "about three"]
