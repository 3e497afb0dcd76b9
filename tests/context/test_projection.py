from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from core.context.decisions import (
    CacheEdited,
    Collapsed,
    Committed,
    Decision,
    MediaReplaced,
    Nudged,
    Replaced,
    Seen,
    Snipped,
    State,
    Withdrawn,
    fold,
)
from core.context.projection import Projected, project
from core.model import JSON, Block, Message
from core.transcript.blob import media_blob

IMAGE: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
OTHER: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "BBBB"}}
THINKING: Block = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
EVERY: tuple[Decision, ...] = (
    Seen(("t1",)),
    Replaced("t1", "text", "budget", leans_on="t0", at_request=3),
    MediaReplaced("t1", "media-1", "note", 3),
    Snipped("s1", ("u1", "u2"), "marker", 7, "u6", 4),
    Collapsed("c1", ("u3",), "note", 9, 3, 1, 4),
    Committed(("c1",), 5),
    Withdrawn(("s1",), "undone", 6),
    CacheEdited(("t2",), "u5", 6),
    Nudged(1_000, 7),
)


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def prompt(uuid: str, *blocks: Block) -> Message:
    return Message("user", "prompt", blocks, (uuid,))


def response(uuid: str, *blocks: Block) -> Message:
    return Message("assistant", "response", (THINKING, *blocks), (uuid,), f"msg_{uuid}")


def call(ident: str) -> Block:
    return {"type": "tool_use", "id": ident, "name": "Bash", "input": {}}


def result(uuid: str, ident: str, content: JSON) -> Message:
    return Message("user", "results", ({"type": "tool_result", "tool_use_id": ident, "content": content},), (uuid,))


MESSAGES = (
    prompt("u1", text("Go.")),
    response("u2", call("t1")),
    result("u3", "t1", "one"),
    response("u4", call("t2")),
    result("u5", "t2", [text("two"), IMAGE]),
    response("u6", text("Done.")),
)


def projected(*decisions: Decision, messages: Sequence[Message] = MESSAGES) -> Projected:
    return project(messages, fold(decisions))


def content_of(view: Projected, uuid: str) -> JSON:
    return next(m.content[0]["content"] for m in view.messages if m.uuid == uuid)


def thinking(view: Projected) -> list[str]:
    """The messages that have kept theirs."""
    return [m.uuid for m in view.messages if THINKING in m.content]


def test_every_decision_is_the_same_after_it_was_written_and_read() -> None:
    assert msgspec.json.decode(msgspec.json.encode(EVERY), type=tuple[Decision, ...]) == EVERY


@pytest.mark.parametrize("cut", range(len(EVERY) + 1))
def test_a_state_is_the_same_in_one_fold_and_in_two(cut: int) -> None:
    assert fold(EVERY[cut:], fold(EVERY[:cut])) == fold(EVERY)


def test_without_decisions_nothing_changes() -> None:
    view = project(MESSAGES, State())
    assert view == Projected(MESSAGES, None)
    assert all(a is b for a, b in zip(view.messages, MESSAGES, strict=True))


def test_what_decisions_are_about_need_not_be_there() -> None:
    lost: tuple[Decision, ...] = (
        Replaced("lost", "x", "cleared"),
        MediaReplaced("lost", "media-1", "x"),
        Snipped("s1", ("lost",), "x"),
        Collapsed("c1", ("lost",), "x"),
        Committed(("c1", "lost")),
        Withdrawn(("lost",)),
        Seen(("lost",)),
    )
    assert projected(*lost).changed_from is None


# Replacements


def test_text_is_replaced_by_text_and_a_list_by_a_list() -> None:
    view = projected(Replaced("t1", "new", "cleared"), Replaced("t2", "new", "cleared"))
    assert content_of(view, "u3") == "new"
    assert content_of(view, "u5") == [text("new")]


def test_the_budget_leaves_images_in_their_place() -> None:
    assert content_of(projected(Replaced("t2", "new", "budget")), "u5") == [text("new"), IMAGE]


def test_the_first_decision_about_a_result_holds() -> None:
    state = fold([Replaced("t1", "first", "budget"), Replaced("t1", "second", "cleared")])
    assert content_of(project(MESSAGES, state), "u3") == "first"
    assert state.seen == {"t1"}


def test_thinking_goes_behind_the_first_change_and_stays_before_it() -> None:
    view = projected(Replaced("t2", "new", "cleared"))
    assert view.changed_from == 4
    assert thinking(view) == ["u2", "u4"]
    assert thinking(projected(Replaced("t1", "new", "cleared"))) == ["u2"]


def test_a_response_of_thinking_alone_is_gone_behind_a_change() -> None:
    view = projected(Replaced("t1", "new", "cleared"), messages=(*MESSAGES, response("u7")))
    assert view.messages[-1].uuid == "u6"


@pytest.mark.parametrize(
    "gone",
    [
        Replaced("t1", "cleared", "cleared"),
        CacheEdited(("t1",), "u5"),
        Snipped("s1", ("u2", "u3"), "2 removed"),
    ],
)
def test_a_pointer_gives_way_to_the_content_when_what_it_points_to_goes(gone: Decision) -> None:
    pointer = Replaced("t2", "see t1", "unchanged", leans_on="t1")
    assert content_of(projected(pointer), "u5") == [text("see t1")]
    assert content_of(projected(pointer, gone), "u5") == [text("two"), IMAGE]
    assert content_of(projected(pointer, messages=MESSAGES[3:]), "u5") == [text("two"), IMAGE]


def test_a_pointer_holds_again_when_a_snip_is_taken_back() -> None:
    pointer, snip = Replaced("t2", "see t1", "unchanged", leans_on="t1"), Snipped("s1", ("u2", "u3"), "x")
    assert content_of(projected(pointer, snip, Withdrawn(("s1",))), "u5") == [text("see t1")]


# Thinking, and when a change was decided


LOOKED = (prompt("u1", text("Look."), IMAGE), *MESSAGES[1:])
CHANGES: tuple[tuple[Decision, ...], ...] = (
    (Replaced("t1", "new", "budget"),),
    (MediaReplaced("u1", media_blob(IMAGE).id, "note"),),
    (Snipped("s1", ("u1",), "1 removed"),),
    (Collapsed("c1", ("u1",), "note", at_request=0), Committed(("c1",))),
)


def dated(decisions: Sequence[Decision], request: int) -> list[Decision]:
    """The decisions, the last of them made after so many responses."""
    return [*decisions[:-1], msgspec.structs.replace(decisions[-1], at_request=request)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: type(c[-1]).__name__)
def test_what_was_thought_after_a_change_stays(change: Sequence[Decision]) -> None:
    in_front = {"u2"} if isinstance(change[0], Replaced) else set()
    assert {*thinking(projected(*dated(change, 2), messages=LOOKED))} == in_front | {"u6"}
    assert {*thinking(projected(*dated(change, 3), messages=LOOKED))} == in_front


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: type(c[-1]).__name__)
def test_behind_a_change_of_which_it_is_not_known_when_it_was_made_no_thinking_stays(
    change: Sequence[Decision],
) -> None:
    old = msgspec.json.decode(
        msgspec.json.encode(change).replace(b',"at_request":null', b""), type=tuple[Decision, ...]
    )
    assert set(thinking(projected(*old, messages=LOOKED))) <= {"u2"}


def test_a_change_before_the_first_response_costs_no_thinking() -> None:
    refused = MediaReplaced("u1", media_blob(IMAGE).id, "note", at_request=0)
    view = projected(refused, messages=LOOKED)
    assert view.changed_from == 0
    assert thinking(view) == ["u2", "u4", "u6"]


def test_the_latest_of_the_changes_of_a_message_counts() -> None:
    two = prompt("u1", IMAGE, OTHER)
    notes = [MediaReplaced("u1", media_blob(b).id, "note", n) for n, b in ((0, IMAGE), (2, OTHER))]
    assert thinking(projected(*notes, messages=(two, *MESSAGES[1:]))) == ["u6"]


def test_responses_that_are_gone_are_counted_too() -> None:
    span = (Collapsed("c1", ("u2", "u3"), "note"), Committed(("c1",), 2))
    assert thinking(projected(*span)) == ["u6"]


SNIP = Snipped("s1", ("u1",), "1 removed", at_request=1)


def test_a_snip_that_is_taken_back_at_once_leaves_no_trace() -> None:
    view = projected(SNIP, Withdrawn(("s1",), at_request=1))
    assert view == Projected(MESSAGES, None)


@pytest.mark.parametrize(
    ("until", "left"), [(2, ["u2", "u6"]), (3, ["u2"]), (None, ["u2"])], ids=["then", "later", "unknown"]
)
def test_what_was_thought_while_messages_were_away_is_left_out(until: int | None, left: list[str]) -> None:
    view = projected(SNIP, Withdrawn(("s1",), at_request=until))
    assert [m.uuid for m in view.messages] == [m.uuid for m in MESSAGES]
    assert thinking(view) == left


def test_a_span_that_is_put_back_was_away_since_it_was_committed() -> None:
    staged = Collapsed("c1", ("u1",), "note", at_request=0)
    log = (staged, Committed(("c1",), 1), Withdrawn(("c1",), "expanded", 2))
    assert thinking(projected(*log)) == ["u2", "u6"]
    assert thinking(projected(staged, Withdrawn(("c1",), "rejected", 2))) == ["u2", "u4", "u6"]


def test_of_messages_that_are_still_away_nothing_is_left_out_for_having_been_away() -> None:
    """The line in their place has a date of its own."""
    again = Snipped("s2", ("u1",), "1 removed", at_request=2)
    assert thinking(projected(SNIP, Withdrawn(("s1",), at_request=2), again)) == ["u6"]


# Images and documents


def test_one_image_of_a_result_is_replaced_by_its_content() -> None:
    messages = (response("u1", call("t1")), result("u2", "t1", [IMAGE, text("between"), OTHER, "no block", IMAGE]))
    view = projected(MediaReplaced("t1", media_blob(IMAGE).id, "note"), messages=messages)
    assert content_of(view, "u2") == [text("note"), text("between"), OTHER, "no block", text("note")]


def test_an_image_of_a_message_is_replaced_in_that_message_only() -> None:
    messages = (prompt("u1", text("Look."), IMAGE, OTHER), prompt("u2", IMAGE))
    view = projected(MediaReplaced("u1", media_blob(IMAGE).id, "note"), messages=messages)
    assert view.messages[0].content == (text("Look."), text("note"), OTHER)
    assert view.messages[1] is messages[1]
    assert view.changed_from == 0


def test_the_first_note_holds_and_further_ones_are_added() -> None:
    first, second = media_blob(IMAGE).id, media_blob(OTHER).id
    log = [MediaReplaced("u1", first, "a"), MediaReplaced("u1", second, "b"), MediaReplaced("u1", first, "c")]
    view = projected(*log, messages=(prompt("u1", IMAGE, OTHER),))
    assert view.messages[0].content == (text("a"), text("b"))


@pytest.mark.parametrize("budget_first", [True, False])
def test_a_note_stays_beside_the_text_that_the_budget_put_there(budget_first: bool) -> None:
    log: list[Decision] = [Replaced("t2", "new", "budget"), MediaReplaced("t2", media_blob(IMAGE).id, "note")]
    view = projected(*(log if budget_first else log[::-1]))
    assert content_of(view, "u5") == [text("new"), text("note")]
    assert project(view.messages, fold(log)).messages == view.messages


def test_what_was_cleared_takes_its_images_and_notes_along() -> None:
    log: list[Decision] = [MediaReplaced("t2", media_blob(IMAGE).id, "note"), Replaced("t2", "new", "cleared")]
    assert content_of(projected(*log), "u5") == [text("new")]


# Snips and spans


def test_one_line_stands_where_a_snip_began() -> None:
    view = projected(Snipped("s1", ("u2", "u3", "u4", "u5"), "4 removed"))
    assert [m.uuid for m in view.messages] == ["u1", "s1", "u6"]
    assert view.messages[1].content == (text("4 removed"),)
    assert view.messages[1].kind == "meta"
    assert view.changed_from == 1


def test_a_snip_of_which_a_part_is_there_takes_that_part() -> None:
    assert [m.uuid for m in projected(Snipped("s1", ("lost", "u1"), "x")).messages][:2] == ["s1", "u2"]


def test_a_span_stands_for_its_messages_once_it_is_committed() -> None:
    staged = Collapsed("c1", ("u2", "u3"), "note")
    assert projected(staged).changed_from is None
    view = projected(staged, Committed(("c1",)))
    assert [m.uuid for m in view.messages] == ["u1", "c1", "u4", "u5", "u6"]
    assert projected(staged, Committed(("c1",)), Withdrawn(("c1",))).changed_from is None


@pytest.mark.parametrize("uuids", [("u2", "u4"), ("u3", "u2"), ("u2", "lost"), ("u2", "u2"), ()])
def test_a_span_that_is_not_there_as_it_was_is_passed_over(uuids: tuple[str, ...]) -> None:
    assert projected(Collapsed("c1", uuids, "note"), Committed(("c1",))).changed_from is None


def test_of_spans_that_overlap_the_first_holds_and_a_snip_takes_what_is_left() -> None:
    log: list[Decision] = [
        Collapsed("c1", ("u2", "u3"), "note"),
        Collapsed("c2", ("u3", "u4"), "note"),
        Committed(("c1", "c2"), 4),
        Snipped("s1", ("u3", "u4", "u5"), "x"),
    ]
    assert [m.uuid for m in projected(*log).messages] == ["u1", "c1", "s1", "u6"]
    assert fold(log).last_commit_request == 4


def test_what_the_server_does_not_show_is_known_and_stays_in_the_view() -> None:
    state = fold([CacheEdited(("t1",), "u3"), CacheEdited(("t2",), "u5"), Nudged(9, 1)])
    assert state.cleared_on_server == {"t1", "t2"}
    assert [n.tokens for n in state.nudges] == [9]
    assert project(MESSAGES, state).changed_from is None
