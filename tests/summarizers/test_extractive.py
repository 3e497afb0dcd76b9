"""The offline summariser through its one method: what is in the summary, how long it is, what a second one keeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.model import Block, Kind, Message
from core.summarizers.base import SummaryRequest
from core.summarizers.extractive import Extractive


def said(text: str, kind: Kind = "prompt", uuid: str = "11112222-0000") -> Message:
    return Message("user", kind, ({"type": "text", "text": text},), (uuid,))


def answer(text: str, *blocks: Block) -> Message:
    return Message("assistant", "response", ({"type": "text", "text": text}, *blocks), ("aaaabbbb-0000",))


def call(id_: str, name: str, **given_: str) -> Block:
    return {"type": "tool_use", "id": id_, "name": name, "input": dict(given_)}


def result(id_: str, text: str, failed: bool = False) -> Message:
    return Message(
        "user", "results", ({"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": failed},)
    )


def summary_of(*messages: Message, budget: int = 24_000, previous: str = "", instructions: str = "") -> str:
    return Extractive().summarize(SummaryRequest(messages, budget, instructions, previous, "/w", "/t.jsonl")).text


def section(text: str, title: str) -> str:
    return text.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]


ANY_TEXT = st.text(max_size=400) | st.sampled_from(
    [
        "# Summary of the conversation so far\n## Files and code\n- `a`: read",
        "~~~\n~~~",
        "- (x) [y] z",
        "- FACT:\n  - a",
        "never\n" * 50,
    ]
)


def blocks() -> st.SearchStrategy[Block]:
    value = st.recursive(
        st.none() | st.booleans() | st.integers() | ANY_TEXT,
        lambda x: st.lists(x, max_size=3) | st.dictionaries(ANY_TEXT, x, max_size=3),
    )
    keys = st.sampled_from(
        ["type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "todos", "command", "file_path"]
    )
    kinds = st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "tool_use", "tool_result", "image", "thinking", "x"])}, optional={}
    )
    return st.builds(lambda a, b: {**b, **a}, kinds, st.dictionaries(keys, value, max_size=5))


MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "system"]),
        st.sampled_from(["prompt", "response", "results", "summary", "meta", "command", "attachment"]),
        st.lists(blocks(), max_size=3).map(tuple),
        st.lists(st.text(max_size=10), max_size=2).map(tuple),
    ),
    max_size=8,
)


@given(MESSAGES, st.integers(-5, 9_000), ANY_TEXT, ANY_TEXT)
def test_any_messages_give_a_summary_within_the_budget_and_always_the_same(
    messages: list[Message], budget: int, previous: str, instructions: str
) -> None:
    request = SummaryRequest(messages, budget, instructions, previous)

    first = Extractive().summarize(request)

    assert len(first.text) <= max(0, budget)
    assert Extractive().summarize(request) == first
