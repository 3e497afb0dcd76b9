"""Sets are announced once, then by their differences, and whole again after a compaction."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.attachments import decode, scan
from core.attachments.agent_listing_delta import AgentListingDelta
from core.attachments.base import Attachment, World
from core.attachments.deferred_tools_delta import DeferredToolsDelta
from core.attachments.delta import Delta, announced_by
from core.attachments.mcp_instructions_delta import McpInstructionsDelta
from core.model import JSON

SETS = st.dictionaries(st.text("abc", min_size=1, max_size=2), st.text("xy", min_size=1, max_size=2), max_size=5)


def world(kind: type[Delta], current: Mapping[str, str]) -> World:
    if kind is DeferredToolsDelta:
        return World(deferred_tools=current)
    return World(agents=current) if kind is AgentListingDelta else World(mcp_instructions=current)


@pytest.mark.parametrize("kind", [DeferredToolsDelta, AgentListingDelta, McpInstructionsDelta])
@given(sets=st.lists(SETS, max_size=6))
def test_the_fold_of_all_deltas_is_the_current_set(kind: type[Delta], sets: list[dict[str, str]]) -> None:
    earlier: list[Attachment] = []
    for current in sets:
        found = scan(world(kind, current), earlier).attachments
        assert len(found) <= 1
        earlier += found
        expected = kind.current(world(kind, current))
        assert announced_by([d for d in earlier if isinstance(d, kind)]) == expected
        assert scan(world(kind, current), earlier).attachments == ()  # no difference, no attachment


def test_only_the_difference_is_announced() -> None:
    first = scan(World(deferred_tools={"A": "A", "B": "B"}), ()).attachments
    second = scan(World(deferred_tools={"B": "B", "C": "C"}), first).attachments

    assert second == (DeferredToolsDelta(("C",), ("C",), ("A",)),)
    assert "\nC\n\nThese tools are no longer available, do not search for them:\nA" in second[0].text()
    assert "B" not in second[0].text().split("\n")


def test_after_a_compaction_ate_the_deltas_the_whole_set_is_announced_again() -> None:
    current = World(agents={"plan": "- plan: plans", "explore": "- explore: looks"})
    first = scan(current, ()).attachments

    assert scan(current, first).attachments == ()
    assert scan(current, ()).attachments == first
    assert isinstance(first[0], AgentListingDelta)
    assert first[0].is_initial
    assert first[0].text().startswith("These agent types can be started:\n- plan: plans")


def test_more_agents_are_no_first_announcement() -> None:
    first = scan(World(agents={"plan": "- plan"}), ()).attachments
    second = scan(World(agents={"explore": "- explore"}), first).attachments

    assert second[0].text() == (
        "More agent types can be started now:\n- explore\n\nThese agent types are no longer available:\n- plan"
    )


def test_a_server_that_changes_what_it_says_is_announced_again_and_one_that_says_nothing_is_not() -> None:
    first = scan(World(mcp_instructions={"db": "Ask first.", "mute": " "}), ()).attachments
    second = scan(World(mcp_instructions={"db": "Never ask."}), first).attachments

    assert first == (McpInstructionsDelta(("db",), ("## db\nAsk first.",), ()),)
    assert second == (McpInstructionsDelta(("db",), ("## db\nNever ask.",), ()),)
    assert "## db\nNever ask." in second[0].text()
    gone = scan(World(mcp_instructions={}), second).attachments
    assert gone[0].text() == "These servers left, what they said does not hold any more:\n- db"


def test_what_is_not_known_announces_nothing_and_takes_nothing_back() -> None:
    earlier = scan(World(deferred_tools={"A": "A"}), ()).attachments

    assert scan(World(), earlier).attachments == ()


def test_the_rows_of_a_client_are_folded() -> None:
    row: JSON = {
        "type": "deferred_tools_delta",
        "addedNames": ["A", "B"],
        "addedLines": ["A", "B"],
        "removedNames": [],
        "pendingMcpServers": [],
    }
    earlier = decode(row)
    assert earlier is not None

    assert scan(World(deferred_tools={"A": "A"}), [earlier]).attachments == (DeferredToolsDelta((), (), ("B",)),)


def test_the_base_of_the_deltas_is_about_no_set() -> None:
    class Bare(Delta, frozen=True, tag="bare"):
        """Says nothing about itself."""

    for ask in (lambda: Bare().added, lambda: Bare().removed, lambda: Bare.current(World())):
        with pytest.raises(NotImplementedError):
            ask()
    with pytest.raises(NotImplementedError):
        Bare.of({}, (), True)
