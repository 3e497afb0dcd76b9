"""Short ids: unique, stable, and a way back to the message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context import short_ids
from core.context.short_ids import ShortIds, tag
from core.errors import IdNotFound
from core.model import Message

UUIDS = st.lists(st.uuids().map(str), unique=True, max_size=30)


def of(*uuids: str) -> ShortIds:
    return ShortIds.of([Message("user", "prompt", (), (uuid,)) for uuid in uuids])


@given(UUIDS)
def test_each_message_has_an_id_of_its_own_that_leads_back_to_it(uuids: list[str]) -> None:
    ids = of(*uuids)

    assert len({ids.short(u) for u in uuids}) == len(uuids)
    assert [ids.find(tag(ids.short(u))) for u in uuids] == uuids
    assert [ids.find(u) for u in uuids] == uuids


@given(UUIDS, st.integers(0, 30))
def test_appending_messages_changes_no_id_even_when_ids_collide(uuids: list[str], count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(short_ids, "LENGTH", 1)  # 32 ids: among thirty messages some collide
        before, after = of(*uuids[:count]), of(*uuids)

    assert [before.short(u) for u in uuids[:count]] == [after.short(u) for u in uuids[:count]]
    assert len({after.short(u) for u in uuids}) == len(uuids)


def test_a_row_of_a_response_and_a_call_lead_to_their_messages() -> None:
    call: Message = Message("assistant", "response", ({"type": "tool_use", "id": "toolu_1"},), ("a1", "a2"))
    result = Message("user", "results", ({"type": "tool_result", "tool_use_id": "toolu_1"},), ("b1",))
    ids = ShortIds.of([call, result])

    assert ids.find("a2") == "a1"
    assert ids.find("toolu_1") == "a1"
    assert ShortIds.of([result]).find("toolu_1") == "b1"


def test_the_start_of_an_id_is_enough_when_only_one_begins_so() -> None:
    ids = of("aaaa-1", "aaaa-2", "bbbb-1")

    assert ids.find("bbbb") == "bbbb-1"
    with pytest.raises(IdNotFound, match="2 ids begin with aaaa"):
        ids.find("aaaa")


@pytest.mark.parametrize("name", ["", "  ", "[id:]", "nothing"])
def test_an_unknown_id_is_refused_with_a_way_to_find_one(name: str) -> None:
    with pytest.raises(IdNotFound, match="no message of the active context") as caught:
        of("aaaa-1").find(name)

    assert "{proposals}" in caught.value.hint


def test_what_has_no_short_id_keeps_its_own() -> None:
    assert of("aaaa-1").short("zzzz") == "zzzz"
