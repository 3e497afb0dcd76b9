"""What a conversation is after a restart: the same as in memory, at every moment."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
)
from core.errors import Damaged
from core.model import Message, Usage
from core.turn.autocompact import AutoState
from core.turn.events import (
    Acted,
    Appended,
    Attached,
    Climbed,
    Compacted,
    Decided,
    Event,
    Failed,
    Limited,
    Paused,
    Recovered,
    Refilled,
    Row,
    Stripped,
)
from core.turn.journal import Journal
from core.turn.state import Draft, TurnState
from tests.stages.build import History

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def history() -> tuple[Message, ...]:
    made = History().prompt("Go.").use("t1", "Read", "x" * 500, thinking="Hm.", file_path="a.py").answer("Read.")
    return tuple(made.prompt("On.").use("t2", "Bash", "y" * 500, command="make").answer("Made.").messages)


def summary(text: str = "What was.") -> Row:
    return Row.of(Message("user", "summary", ({"type": "text", "text": text},), ("s1",)))


IDS = [m.uuid for m in history()]
DECISIONS: list[Decision] = [
    Seen(("t1",)),
    Replaced("t1", "gone", "cleared", at_request=2),
    MediaReplaced("u1", "media-1", "a picture", 1),
    Snipped("snip", ("u2", "u3"), "[2 messages]", 100, "u5", 2),
    Collapsed("span", ("u5", "u6"), "A note.", 100, 10, at_request=2),
    Committed(("span",), 2),
    CacheEdited(("t2",), "u6", 2),
    Nudged(40_000, 2, "u5"),
]
EVENTS: list[Event] = [
    *(Appended(Row.of(m)) for m in history()),
    *(Decided("stage", (d,), 10) for d in DECISIONS),
    Compacted("full", "auto", (summary(), "u5", "u6"), "extractive", 100, 20, Usage(1, 2, 3, 4)),
    Compacted("peel", "reactive", ("u1", summary("Peeled."), "span", "snip", "gone")),
    Compacted("memory", "manual", (summary(),)),
    Attached(Row("system", "attachment", ({"type": "text", "text": "It is Monday."},), ("a1",)), {"type": "date"}),
    Failed("no text", Usage(5)),
    Refilled(),
    Paused(150_000),
    Acted(),
    Climbed("drain"),
    Stripped(("u2",)),
    Limited(8_000),
    Recovered("too long", ("drain",), ("u1",), 210_000, 200_000),
]


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_whatever_happens_memory_is_what_load_gives_at_every_prefix(events: list[Event]) -> None:
    journal = Journal("s")
    for event in events:
        journal.append(event)
        again = Journal.load(journal.dump())
        assert again.state == journal.state
        assert again.lines == journal.lines
        assert again.new_id("x") == journal.new_id("x")


def test_every_event_is_read_as_it_was_written() -> None:
    journal = Journal("s")
    journal.append(*EVENTS)

    assert folded(*(msgspec.json.decode(line, type=Event) for line in journal.lines)) == journal.state


def folded(*events: Event) -> TurnState:
    draft = Draft()
    for event in events:
        draft.add(event)
    return draft.state()


def test_a_row_that_was_being_written_is_not_part_of_it() -> None:
    journal = Journal("s", history())

    assert Journal.load(journal.dump()[:-1]).state.messages == history()[:-1]
    assert Journal.load(b"").state == Journal("").state


@pytest.mark.parametrize("line", [b"{}", b"no", b'{"event":"unknown"}', b"\xff"])
def test_a_line_that_is_no_event_is_named(line: bytes) -> None:
    with pytest.raises(Damaged, match="line 2 of the journal"):
        Journal.load(Journal("s").dump() + line + b"\n")


def test_half_of_a_character_is_the_same_in_memory_as_on_disk() -> None:
    journal = Journal("s", [Message("user", "prompt", ({"type": "text", "text": "a\ud800b"},), ("u1",))])

    assert journal.state.messages[0].content == ({"type": "text", "text": "a?b"},)
    assert Journal.load(journal.dump()).state == journal.state


def journal_of(*events: Event) -> Journal:
    journal = Journal("s", history())
    journal.append(*events)
    return journal


def test_a_compaction_leaves_the_layout_without_thinking_and_without_what_was_staged() -> None:
    made = [Decided("x", (Replaced("t1", "gone", "cleared", at_request=2), DECISIONS[4]))]
    state = journal_of(*made, Compacted("full", "auto", (summary(), "u2", "u3"))).state

    assert [m.uuid for m in state.messages] == ["s1", "u2", "u3"]
    assert THOUGHT not in state.messages[1].content
    assert state.decisions.replaced["t1"].at_request == 0
    assert state.decisions.staged == ()
    assert state.stale == {"u2"}
    assert state.quiet


def test_what_stays_brings_along_the_decisions_about_it_and_no_others() -> None:
    events: list[Event] = [
        *(Decided("x", (d,)) for d in DECISIONS),
        Compacted("peel", "auto", (summary(), "span", "u7")),
    ]
    state = journal_of(*events).state

    assert [m.uuid for m in state.messages] == ["s1", "u5", "u6", "u7"]
    assert [s.id for s in state.decisions.committed] == ["span"]
    assert [e.ids for e in state.decisions.cache_edits] == [("t2",)]
    assert (state.decisions.snips, {*state.decisions.replaced}, {*state.decisions.media}) == ((), set(), set())
    assert state.decisions.seen == {"t1"}


def test_a_snip_that_stays_stays_snipped() -> None:
    events: list[Event] = [Decided("x", (DECISIONS[3],)), Compacted("peel", "auto", ("u1", "snip"))]
    state = journal_of(*events).state

    assert [m.uuid for m in state.messages] == ["u1", "u2", "u3"]
    assert [s.at_request for s in state.decisions.snips] == [0]


def test_attachments_count_as_long_as_they_are_in_view() -> None:
    attached = Attached(Row("system", "attachment", ({"type": "text", "text": "x"},), ("a1",)), {"type": "date"})

    assert journal_of(attached).state.attachments == ({"type": "date"},)
    assert journal_of(attached, Compacted("full", "auto", (summary(), "a1"))).state.attachments == ({"type": "date"},)
    assert journal_of(attached, Compacted("full", "auto", (summary(), "u5"))).state.attachments == ()


def test_a_new_prompt_may_be_recovered_anew() -> None:
    climbed = journal_of(Climbed("drain"), Climbed("peel"))

    assert climbed.state.rungs == {"drain", "peel"}
    climbed.append(EVENTS[1])
    assert climbed.state.rungs == {"drain", "peel"}
    climbed.append(EVENTS[0])
    assert climbed.state.rungs == frozenset()


def test_a_warning_waits_for_the_next_figure_after_something_was_taken_out() -> None:
    cleared = Replaced("t1", "gone", "cleared")

    assert not journal_of(Decided("microcompact", (cleared,), 0)).state.quiet
    assert not journal_of(Decided("budget", (cleared,), 10)).state.quiet
    quiet = journal_of(Decided("microcompact", (cleared,), 10))
    assert quiet.state.quiet
    quiet.append(Appended(Row("assistant", "response", ({"type": "text", "text": "x"},), ("r",))))
    assert quiet.state.quiet  # it says nothing about the size
    quiet.append(Appended(Row("assistant", "response", ({"type": "text", "text": "x"},), ("q",), usage=Usage(10))))
    assert not quiet.state.quiet


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Acted(), AutoState()),
        (Compacted("full", "manual", ()), AutoState()),
        (Compacted("full", "auto", ()), AutoState(refills=1, since_requests=0)),
        (Failed("x"), AutoState(failures=2, refills=1, since_requests=1, paused_at_tokens=9)),
    ],
)
def test_the_user_resets_what_automatic_compaction_remembers(event: Event, expected: AutoState) -> None:
    answered = Appended(Row("assistant", "response", ({"type": "text", "text": "x"},), ("r",)))
    before: list[Any] = [Compacted("full", "auto", ("u1",)), answered, Refilled(), Failed("x"), Paused(9)]

    assert journal_of(*before, event).state.auto == expected


def test_all_that_was_charged_is_added_up() -> None:
    said = Appended(Row("assistant", "response", ({"type": "text", "text": "x"},), ("r",), usage=Usage(1, 2, 3, 4, 1)))
    made = Compacted("full", "auto", (), usage=Usage(10, 20, 30, 40))

    assert journal_of(said, made, Failed("x", Usage(100))).state.spent == Usage(111, 22, 33, 44, 1)


def test_thinking_that_was_refused_does_not_come_back() -> None:
    state = journal_of(Stripped(("u2",))).state

    assert state.messages[1].content[0]["type"] == "tool_use"


def test_the_newest_figure_is_remembered_with_what_it_was_charged_for() -> None:
    said = Appended(Row("assistant", "response", ({"type": "text", "text": "x"},), ("r",), usage=Usage(10)))
    later = Appended(Row("user", "prompt", ({"type": "text", "text": "x"},), ("p",)))
    state = journal_of(said, later).state

    assert state.charged is not None
    assert state.charged.messages == state.messages[:-1]
    assert journal_of(later).state.charged is None


def test_what_a_snip_or_a_span_hides_counts_as_told_no_more() -> None:
    told = [Attached(Row("user", "attachment", ({"type": "text", "text": n},), (n,)), {"name": n}) for n in "abc"]
    hidden = Decided("snip", (Snipped("snip", ("a", "u2"), "[2 messages]", 100, "c", 2),))
    span = Decided("collapse", (Collapsed("span", ("b",), "A note.", 100, 10, at_request=2),))

    assert folded(*told, hidden, span).attachments == ({"name": "b"}, {"name": "c"})
    committed = Decided("collapse", (Committed(("span",), 2),))
    assert folded(*told, hidden, span, committed).attachments == ({"name": "c"},)
