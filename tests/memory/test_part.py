"""What the notes do not tell of: where it begins and ends, how much it is, and how it is cut for a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context.rounds import closed_points
from core.memory.part import chunks, noted_end, unseen
from core.model import JSON, call_id, tool_results, tool_uses
from core.testing import Transcript
from tests.memory.build import part_of, shown
from tests.sessions import transcripts


def talk() -> Transcript:
    return Transcript().prompt("One").use("Read", "x", file_path="a.py").answer("Done.").prompt("Two")


def test_all_is_unseen_without_notes_and_nothing_behind_the_last_message() -> None:
    messages = shown(talk())
    seen = unseen(messages, [10] * 5, "")

    assert (seen.start, seen.end, seen.tokens, seen.responses, seen.turns) == (0, 5, 50, 2, 2)
    assert unseen(messages, [10] * 5, "gone") == seen
    assert unseen(messages, [10] * 5, messages[3].uuids[-1]).start == 4
    assert unseen(messages, [10] * 5, messages[4].uuids[-1]).tokens == 0


def test_what_is_noted_leaves_no_call_open() -> None:
    open_call = talk().call("Bash", command="make")
    killed = talk().call("Bash", command="make").prompt("Go on").answer("Yes.")
    half = talk().call("Bash", "Read", command="make")
    half.result("ok", half.calls[-2])

    assert noted_end(shown(open_call)) == 5
    assert noted_end(shown(half)) == 5
    assert noted_end(shown(killed)) == 8
    assert noted_end(shown(talk())) == 5
    assert noted_end(()) == 0
    assert part_of(open_call).covers == open_call.rows[4]["uuid"]


@given(transcripts())
def test_whatever_the_session_no_call_is_open_where_notes_end(made: Transcript) -> None:
    messages = shown(made)
    end = noted_end(messages)

    assert end in closed_points(messages)
    answered = {call_id(b) for m in messages[:end] for b in tool_results(m)}
    last = next((m for m in reversed(messages[:end]) if m.kind == "response"), None)
    assert last is None or {call_id(b) for b in tool_uses(last)} <= answered


TODOS: JSON = [{"content": "Parse", "status": "completed"}]
GOES_ON: JSON = [{"content": "Parse", "status": "completed"}, {"content": "Ship", "status": "in_progress"}]
LISTED = Transcript().prompt("Go").use("TodoWrite", "ok", todos=TODOS)


@pytest.mark.parametrize(
    ("made", "pause"),
    [
        (Transcript().prompt("Go").answer("Done."), True),
        (Transcript().prompt("Go"), False),
        (Transcript().prompt("Go").use("Bash", "ok", command="make"), False),
        (Transcript().prompt("Go").use("Bash", "ok", command="cd x && git -C . commit -m 'y'"), True),
        (Transcript().prompt("Go").use("TodoWrite", "ok", todos=TODOS), True),
        (Transcript().prompt("Go").use("TodoWrite", "ok", todos=[{"content": "Parse", "status": "pending"}]), False),
        (LISTED.use("TodoWrite", "ok", todos=GOES_ON), False),
        (Transcript().prompt("Go").use("TaskUpdate", "ok", taskId="1", status="completed"), True),
    ],
)
def test_a_pause_is_where_nothing_is_half_done(made: Transcript, pause: bool) -> None:
    assert unseen(shown(made), [1] * 9, "").pause is pause


def test_a_long_part_is_cut_between_rounds() -> None:
    made = Transcript().prompt("Go")
    for n in range(6):
        made.use("Read", "x", file_path=f"{n}.py")
    messages = shown(made)
    sizes = [10] * 13
    seen = unseen(messages, sizes, messages[0].uuid)

    assert [*chunks(sizes, messages, seen, 45)] == [5, 9, 13]
    assert [*chunks(sizes, messages, seen, 1_000)] == [13]
    assert [*chunks(sizes, messages, seen, 1)] == [3, 5, 7, 9, 11, 13]
    assert [*chunks(sizes, messages, unseen(messages, sizes, messages[-1].uuid), 45)] == []


@given(transcripts(), st.integers(1, 50))
def test_the_pieces_are_the_whole_part(made: Transcript, most: int) -> None:
    messages = shown(made)
    seen = unseen(messages, [10] * len(messages), "")
    ends = [*chunks([10] * len(messages), messages, seen, most)]

    assert ends == sorted({*ends})
    assert not ends or ends[-1] == seen.end
    assert {*ends} <= {*closed_points(messages)}
