"""Where a history may be cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.context.rounds import contiguous, cut_points, in_thinking_loop, tail_start
from core.context.view import messages_of
from core.model import Block, Message, tool_results, tool_uses
from core.testing import Transcript
from core.transcript.chain import load
from tests.disk import messages, on_disk
from tests.sessions import transcripts

CASES = Path(__file__).parents[1] / "data" / "cases"
sizes = st.integers(0, 1_000)


def view(made: Transcript) -> tuple[Message, ...]:
    with on_disk(made) as path:
        return messages(path)


@settings(max_examples=60)
@given(made=transcripts(), keep=st.integers(0, 3_000), data=st.data())
def test_a_cut_parts_no_pair_and_no_response(made: Transcript, keep: int, data: st.DataObject) -> None:
    shown = view(made)
    start = tail_start(shown, data.draw(st.lists(sizes, min_size=len(shown), max_size=len(shown))), keep)

    for at in {start, *cut_points(shown)}:
        calls = {b["id"] for m in shown[:at] for b in tool_uses(m)}
        results = {b["tool_use_id"] for m in shown[at:] for b in tool_results(m)}
        assert not calls & results
        ids = [m.response_id for m in shown[:at] if m.response_id]
        assert not {m.response_id for m in shown[at:]} & set(ids)
        assert at == len(shown) or shown[at].kind in ("prompt", "response")


@settings(max_examples=60)
@given(made=transcripts(), keep=st.integers(0, 3_000), data=st.data())
def test_as_much_is_kept_as_fits_and_no_more(made: Transcript, keep: int, data: st.DataObject) -> None:
    shown = view(made)
    tokens = data.draw(st.lists(sizes, min_size=len(shown), max_size=len(shown)))
    start = tail_start(shown, tokens, keep)
    earlier = [at for at in cut_points(shown) if at < start]

    assert sum(tokens[start:]) <= keep
    assert in_thinking_loop(shown) or not earlier or sum(tokens[earlier[-1] :]) > keep


def test_five_parallel_results_stay_with_their_calls() -> None:
    log, chain = load(CASES / "pairs-2.jsonl")
    with log:
        shown = messages_of(log, chain)

    assert [m.kind for m in shown[-3:]] == ["response", "results", "response"]
    assert len(tool_uses(shown[-3])) == 5
    assert cut_points(shown)[-3:] == [len(shown) - 3, len(shown) - 1, len(shown)]
    # two messages are asked for, and the second of them is the results: the cut moves in front of the calls
    assert tail_start(shown, [1] * len(shown), keep_tokens=2) == len(shown) - 1
    assert tail_start(shown, [1] * len(shown), keep_tokens=3) == len(shown) - 3


def test_results_that_come_one_by_one_are_one_group() -> None:
    made = Transcript().prompt("Look").call("Read", "Grep", file_path="a.py")
    shown = view(made.result("1", made.calls[1]).result("2", made.calls[0]).answer("Done"))

    assert [m.kind for m in shown] == ["prompt", "response", "results", "results", "response"]
    assert cut_points(shown) == [0, 1, 4, 5]


def test_a_call_without_any_result_opens_no_pair() -> None:
    shown = view(Transcript().prompt("Look").call("Read").prompt("Again").answer("Done"))

    assert cut_points(shown) == [0, 1, 2, 3, 4]


def test_a_tail_begins_with_neither_a_note_nor_an_attachment() -> None:
    shown = view(Transcript().prompt("Look").answer("Yes").note("By the way").attachment("date", "Monday").prompt("Go"))

    assert [m.kind for m in shown] == ["prompt", "response", "meta", "attachment", "prompt"]
    assert cut_points(shown) == [0, 1, 4, 5]


def test_nothing_at_all_is_cut_at_its_end() -> None:
    assert cut_points([]) == [0]
    assert tail_start([], [], 100) == 0


THOUGHT: Block = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN: Block = {"type": "redacted_thinking", "data": "x"}
CALL: Block = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
RESULT: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
SAID: Block = {"type": "text", "text": "Done."}
PROMPT = Message("user", "prompt", (SAID,))
RESULTS = Message("user", "results", (RESULT,))


def response(*blocks: Block) -> Message:
    return Message("assistant", "response", blocks)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ([PROMPT, response(THOUGHT, CALL), RESULTS], True),
        ([PROMPT, response(HIDDEN, CALL)], True),
        ([PROMPT, response(THOUGHT), response(CALL), RESULTS], True),
        ([response(THOUGHT, CALL), RESULTS], True),
        ([PROMPT, response(CALL), RESULTS], False),
        ([response(CALL), RESULTS], False),
        ([PROMPT, response(THOUGHT), PROMPT, response(CALL), RESULTS], False),
        ([PROMPT, response(THOUGHT, CALL), RESULTS, PROMPT], False),
        ([PROMPT, response(THOUGHT, CALL), RESULTS, response(SAID)], False),
        ([PROMPT], False),
        ([], False),
    ],
)
def test_a_turn_is_bound_to_its_thinking_while_it_waits(shown: Sequence[Message], expected: bool) -> None:
    assert in_thinking_loop(shown) is expected
    if expected:
        assert tail_start(shown, [1] * len(shown), 1_000) == len(shown)


def test_ids_that_are_no_text_open_no_pair() -> None:
    shown = [response({**CALL, "id": {}}), Message("user", "results", ({**RESULT, "tool_use_id": []},)), PROMPT]

    assert cut_points(shown) == [0, 2, 3]


def test_two_halves_without_an_id_are_no_pair() -> None:
    call: Block = {**CALL, "id": None}
    result: Block = {**RESULT, "tool_use_id": None}

    assert cut_points([response(call), PROMPT, Message("user", "results", (result,))]) == [0, 1, 3]


@pytest.mark.parametrize(
    ("uuids", "is_so"),
    [("bc", True), ("d", True), ("ac", False), ("cb", False), ("bb", False), ("dx", False), ("", False)],
)
def test_neighbours_are_all_there_and_in_order_and_nothing_has_no_place(uuids: str, is_so: bool) -> None:
    assert contiguous(uuids, {"a": 0, "b": 1, "c": 2, "d": 3}) is is_so
