"""What of a model's answers is a summary: each line of the case of rubbish replies, and what comes close."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.api.endpoint import Reply
from core.errors import SummaryRejected
from core.model import JSON, Block
from core.summarizers.answer import Written, read, read_text, whole_lines

REPLIES = json.loads((Path(__file__).parents[1] / "data" / "cases" / "compactfail-3.replies.json").read_text("utf-8"))


def reply(content: JSON, stop_reason: str = "end_turn") -> Reply:
    blocks: list[Block] = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else [b for b in content if isinstance(b, dict)]
        if isinstance(content, list)
        else []
    )
    return Reply(tuple(blocks), stop_reason)


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("a", "empty"),
        ("b", "empty"),
        ("c", "called a tool"),
        ("d", "refused"),
        ("f", "<summary>"),
    ],
)
def test_rubbish_is_rejected_with_the_check_that_it_failed(line: str, check: str) -> None:
    with pytest.raises(SummaryRejected, match=check):
        read(reply(REPLIES[line]))


def test_a_summary_that_reached_the_limit_is_known_to_be_cut() -> None:
    e = REPLIES["e"]

    assert read(reply(e["text"], e["stop_reason"])) == Written("1. Primary request: the user asked to", is_cut=True)


def test_a_summary_is_what_stands_between_the_tags() -> None:
    text = "<analysis>Hm, a <b> tag.</analysis>\n<summary>\n## Request\n- do it\n</summary>\nDone."

    assert read(reply(text)) == Written("## Request\n- do it")


def test_a_whole_summary_is_whole_whatever_comes_behind_it() -> None:
    assert read(reply("<summary>all</summary> and", "max_tokens")) == Written("all")
    called: JSON = [{"type": "text", "text": "<summary>all</summary>"}, {"type": "tool_use", "id": "t", "name": "Read"}]
    assert read(reply(called, "tool_use")) == Written("all")


def test_a_tag_that_is_not_closed_is_a_cut() -> None:
    assert read(reply("<summary>half of")).is_cut


def test_a_refusal_of_the_api_is_one_whatever_it_says() -> None:
    with pytest.raises(SummaryRejected, match="refused"):
        read(reply("<summary>all</summary>", "refusal"))


def test_a_long_text_may_begin_like_a_refusal() -> None:
    with pytest.raises(SummaryRejected, match="<summary>"):
        read(reply("I can't say it shorter: " + "word " * 200))


def test_empty_tags_are_an_empty_summary() -> None:
    with pytest.raises(SummaryRejected, match="empty"):
        read(reply("<summary> \n </summary>"))


@pytest.mark.parametrize(
    "call",
    [
        '<function_calls>\n<invoke name="Read">',
        "<tool_call>{}</tool_call>",
        '{"type": "tool_use", "name": "Read"}',
        "[TOOL_CALLS] Read",
    ],
)
def test_a_summary_that_calls_a_tool_is_rejected_but_not_one_that_quotes_a_call(call: str) -> None:
    with pytest.raises(SummaryRejected, match="call of a tool"):
        read(reply(f"<summary>Then {call}</summary>"))

    assert read(reply(f"<summary>The parser fails on\n```\n{call}\n```\n</summary>")).text.startswith("The parser")


@pytest.mark.parametrize("text", ["`" * 200_001, "~" * 200_001, ("`" * 5 + "~" * 7) * 20_000])
def test_a_text_of_nothing_but_fences_is_read_in_time(text: str) -> None:
    assert read_text(f"<summary>{text}</summary>").text == text


def test_a_text_that_a_person_gives_needs_no_tags() -> None:
    assert read_text("All is done.", needs_tags=False) == Written("All is done.")
    assert read_text("<summary>in tags</summary>", needs_tags=False) == Written("in tags")
    with pytest.raises(SummaryRejected, match="refused"):
        read_text("I'm sorry, but I can't.", needs_tags=False)


def test_a_cut_text_ends_with_its_last_whole_line() -> None:
    assert whole_lines("one\ntwo\nthr") == "one\ntwo"
    assert whole_lines("one") == "one"


@given(st.text(max_size=80), st.sampled_from(["end_turn", "max_tokens", "refusal", "tool_use", ""]))
def test_any_answer_is_a_text_or_is_rejected(text: str, stop_reason: str) -> None:
    try:
        written = read(reply(text, stop_reason)).text
    except SummaryRejected as error:
        written = error.hint

    assert written.strip()
