"""The plan of a compaction: what goes, what stays, and when there is nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.compaction.cut import SLACK
from core.compaction.full import MIN_GAIN, CompactionPlan, Context, Options, choose, plan, text_message
from core.compaction.restore import RestoreLimits
from core.errors import CompactionError, NothingToCompact, SummaryRejected
from core.model import Block, Kind, Message
from core.summarizers.base import Summary, SummaryRequest

CALL: Block = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}}
RESULT: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
THOUGHT: Block = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


class Says:
    """A summariser that says one thing, and remembers what it was asked."""

    name = "says"

    def __init__(self, text: str = "So far.") -> None:
        self.text = text
        self.asked: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> Summary:
        self.asked.append(request)
        return Summary(self.text, self.name)


def message(kind: Kind, *blocks: Block) -> Message:
    return Message("assistant" if kind == "response" else "user", kind, blocks or ({"type": "text", "text": "x"},))


SESSION = (
    message("prompt"),
    message("response"),
    message("prompt"),
    message("response", CALL),
    message("results", RESULT),
)


def planned(
    shown: Sequence[Message],
    keep: int = 0,
    *,
    sizes: Sequence[int] = (),
    in_place: bool = False,
    says: Says | None = None,
    cwd: str = "",
    front_tokens: int = 10,
) -> CompactionPlan:
    options = Options(keep, 3_000, "Mind the tests", RestoreLimits())
    each = list(sizes) or [100] * len(shown)
    context = Context(shown, each, 5_000, lambda front: [front_tokens] * len(front), cwd, "/h.md")
    return plan(context, says or Says(), options, cut=choose(shown, each, options, in_place))


def test_the_summariser_gets_what_goes_and_where_it_can_be_read() -> None:
    says = Says()
    result = planned(SESSION, keep=200, says=says, cwd="/nonexistent")

    assert result.gone == SESSION[:3]
    assert result.kept == SESSION[3:]
    assert says.asked == [SummaryRequest(SESSION[:3], 3_000, "Mind the tests", "", "/nonexistent", "/h.md")]


def test_the_summariser_gets_images_in_words_and_what_goes_keeps_them() -> None:
    says = Says()
    image: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    result = planned((message("prompt", image), *SESSION[1:]), keep=200, says=says)

    assert says.asked[0].messages[0].content == ({"type": "text", "text": "[image]"},)
    assert result.gone[0].content == (image,)


def test_sizes_add_up(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x", encoding="utf-8")
    shown = (*SESSION, message("prompt"), message("response"))
    result = planned(shown, keep=250, cwd=str(tmp_path))

    assert [r.path for r in result.restored] == ["a.py"]
    assert result.sizes_tokens == (10, 10, 100, 100)
    assert (result.tokens_before, result.tokens_after) == (5_700, 5_220)
    assert result.overhead_tokens == 5_000
    assert result.prompt_tokens == [5_020, 5_120]


def test_an_empty_session_and_one_within_what_is_kept_need_nothing() -> None:
    for in_place in (False, True):
        for shown in ((), SESSION, (message("meta"), message("attachment"))):
            why = r"only \d+ tokens are messages, and the newest 10\.0k stay" if shown else "it holds no messages"
            with pytest.raises(NothingToCompact, match=why):
                planned(shown, keep=10_000, in_place=in_place)
        with pytest.raises(NothingToCompact):
            planned((message("summary"), message("meta")), in_place=in_place)


def test_what_would_free_too_little_is_left() -> None:
    planned(SESSION, sizes=[100] * 5, front_tokens=int(500 * (1 - MIN_GAIN)))
    with pytest.raises(NothingToCompact, match="only 49 of 500 tokens"):
        planned(SESSION, sizes=[100] * 5, front_tokens=int(500 * (1 - MIN_GAIN)) + 1)
    with pytest.raises(NothingToCompact, match="only 0 of 500 tokens"):
        planned(SESSION, sizes=[100] * 5, front_tokens=1_000)


def test_a_session_is_compacted_again_when_enough_was_added() -> None:
    grown = (message("summary"), message("meta"), *SESSION)
    with pytest.raises(NothingToCompact):
        planned(grown, keep=400, sizes=[2_000, 2_000, 100, 100, 100, 100, int(400 * SLACK) - 400])
    result = planned(grown, keep=400, sizes=[2_000, 2_000, 100, 100, 100, 100, int(400 * SLACK) - 399])

    assert [m.kind for m in result.gone] == ["summary", "meta", "prompt", "response"]


def test_in_place_the_last_group_stays_however_large() -> None:
    result = planned(SESSION, keep=0, in_place=True)
    assert result.kept == SESSION[3:]
    assert planned(SESSION, keep=0).kept == ()


def test_a_turn_in_progress_with_thinking_is_summarised_whole_but_not_in_place() -> None:
    shown = (*SESSION[:3], message("response", THOUGHT, CALL), SESSION[4])

    assert planned(shown, keep=200).kept == ()
    with pytest.raises(CompactionError, match="in the middle of a turn") as caught:
        planned(shown, keep=200, in_place=True)
    assert not isinstance(caught.value, NothingToCompact)
    assert "without {in_place}" in caught.value.hint


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_summary_without_text_is_refused(text: str) -> None:
    with pytest.raises(SummaryRejected, match="the summary of says is empty"):
        planned(SESSION, says=Says(text))


def test_a_text_is_a_user_message() -> None:
    assert text_message("meta", "x") == Message("user", "meta", ({"type": "text", "text": "x"},))


def test_thinking_of_what_is_kept_is_not_counted() -> None:
    said: Block = {"type": "text", "text": "Done."}
    shown = (*SESSION, message("prompt"), message("response", THOUGHT, said))
    found = planned(shown, keep=300, sizes=[500] * 5 + [100] * 2)

    assert [m.kind for m in found.kept] == ["prompt", "response"]
    assert found.sizes_tokens == (10, 100, 10)
    assert found.tokens_after == 5_000 + sum(found.sizes_tokens)
