"""Turns whose summaries a model writes: forks, summaries that are too long themselves, rubbish, hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.api.endpoint import Reply
from core.compaction.hooks import About, Answer
from core.errors import ApiError
from core.model import JSON, Usage, block_text
from core.summarizers.extractive import Extractive
from core.summarizers.fallback import Fallback
from core.summarizers.model import ModelSummarizer
from core.turn.events import Compacted
from core.turn.journal import Journal
from core.turn.loop import Conversation
from tests.stages.build import History
from tests.turn.fake import MODEL, Fake, conversation, too_long
from tests.turn.test_loop import events_of

CASES = Path(__file__).parent.parent / "data" / "cases"
REPLIES: dict[str, Any] = json.loads((CASES / "compactfail-3.replies.json").read_text())
SUMMARY = (
    "<summary>\n"
    + "\n".join(
        f"## {title}\nNothing to say."
        for title in (
            "Request and intent", "Concepts", "Files and code", "Errors and fixes", "Problem solving",
            "All user messages", "Open tasks", "Current work", "Next step",
        )
    )
    + "\n</summary>"
)  # fmt: skip


class Writer(Fake):
    """A model that is asked for summaries: `failures` first, then `says`."""

    says: Any = SUMMARY

    def __init__(self, *failures: ApiError, says: Any = SUMMARY) -> None:
        super().__init__(lambda _fake, _body: self._said(), failures=[*failures], window_tokens=1_000_000)
        self.says = says

    def _said(self) -> Any:
        match self.says:
            case {"text": str(text), "stop_reason": str(reason)}:
                return Reply(({"type": "text", "text": text},), reason, Usage(10, 0, 0, 5))
            case _:
                return self.says

    def send(self, body: Mapping[str, JSON], on_text: Any = None) -> Reply:
        self.bodies.append(json.loads(json.dumps(body)))
        if self.failures:
            raise self.failures.pop(0)
        reply = self._reply(self._said())
        return reply if reply.usage.prompt_tokens else Reply(reply.content, reply.stop_reason, Usage(10, 0, 0, 5))


def near_full(folder: Path, writer: Writer, fallback: bool, **fields: Any) -> tuple[Conversation, Fake]:
    """Longer than the window: 60,000 tokens, with turns of 500."""
    made = History()
    for number in range(58):
        made.prompt(f"Request {number}: " + "word " * 400).answer(f"Answer {number}.")
    summarizer: Any = ModelSummarizer(writer, MODEL.id)
    if fallback:
        summarizer = Fallback(summarizer, Extractive())
    fake = Fake(window_tokens=60_000)
    fields = {"stages": (), "keep_tokens": 4_000, "summary_chars": 9_000, **fields}
    return conversation(folder, fake, Journal("s", made.messages), summarizer=summarizer, **fields), fake


def compacted(talk: Conversation) -> list[Compacted]:
    return [e for e in events_of(talk.work.journal) if isinstance(e, Compacted)]


def test_a_summary_request_that_is_too_long_twice_is_made_shorter_by_whole_rounds_and_fits(tmp_path: Path) -> None:
    writer = Writer(too_long(40_000, 30_000), too_long(35_000, 30_000))
    talk, fake = near_full(tmp_path, writer, fallback=False)

    result = talk.turn("Now fix the login bug.")

    assert len(writer.bodies) == 3
    sizes = [len(json.dumps(b)) for b in writer.bodies]
    assert sizes == sorted(sizes, reverse=True)
    assert dict(result.stages)["full"] > 10_000
    assert [e.summarizer for e in compacted(talk)] == ["anthropic"]
    assert block_text(talk.work.state.messages[-2].content[0]) == "Now fix the login bug."
    assert fake.refused == 0


def test_one_that_never_fits_ends_in_the_offline_summary_and_in_no_error(tmp_path: Path) -> None:
    writer = Writer(*[too_long(40_000, 30_000)] * 9)
    talk, fake = near_full(tmp_path, writer, fallback=True)

    result = talk.turn("Now fix the login bug.")

    assert result.reply.text == "Done."
    assert len(result.warnings) == 1
    assert "extractive took over" in result.warnings[0]
    assert [e.summarizer for e in compacted(talk)] == ["extractive"]
    assert talk.work.state.auto.failures == 0
    assert fake.refused == 0


def test_without_a_fallback_the_failure_is_counted_and_nothing_changes(tmp_path: Path) -> None:
    writer = Writer(*[too_long(40_000, 30_000)] * 9)
    talk, _ = near_full(tmp_path, writer, fallback=False)
    before = talk.work.state.messages

    result = talk.turn("Now fix the login bug.")

    assert "automatic compaction failed" in result.warnings[0]
    assert talk.work.state.auto.failures == 1
    assert compacted(talk) == []
    assert talk.work.state.messages[: len(before)] == before


@pytest.mark.parametrize("reply", ["a", "b", "c", "d"])
def test_an_answer_that_is_no_summary_is_a_failure_and_after_three_it_is_quiet(reply: str, tmp_path: Path) -> None:
    writer = Writer(says=REPLIES[reply])
    talk, _ = near_full(tmp_path, writer, fallback=False)

    results = [talk.turn(f"More {n}.") for n in range(5)]

    assert [len(r.warnings) for r in results] == [1, 1, 1, 0, 0]
    assert compacted(talk) == []
    asked = len(writer.bodies)
    writer.says = SUMMARY
    talk.turn("More.")
    assert len(writer.bodies) == asked
    talk.compact()
    assert len(compacted(talk)) == 1


def test_once_the_conversation_was_sent_the_summary_is_asked_for_behind_it(tmp_path: Path) -> None:
    writer = Writer()
    talk, fake = near_full(tmp_path, writer, fallback=False, automatic=False)
    talk.turn("More.")
    sent = fake.bodies[-1]

    talk.compact()

    fork = writer.bodies[0]
    assert len(writer.bodies) == 1
    assert fork["model"] == sent["model"]
    texts = [b["text"] for m in fork["messages"] for b in m["content"]]
    assert texts[: len(texts) - 2] == [b["text"] for m in sent["messages"] for b in m["content"]]


class Listening:
    """Hooks that say something at each moment."""

    def __init__(self, blocked: str = "") -> None:
        self.blocked = blocked
        self.told: list[str] = []

    def pre_compact(self, about: About, instructions: str) -> Answer:
        self.told.append(f"pre {about.trigger}")
        return Answer("Mind the parser.", self.blocked)

    def session_start(self, about: About) -> Answer:
        self.told.append("start")
        return Answer("The build is green.")

    def post_compact(self, about: About, summary: str) -> Answer:
        self.told.append("post")
        return Answer()


def test_hooks_have_their_say_in_their_order(tmp_path: Path) -> None:
    hooks, writer = Listening(), Writer()
    talk, _ = near_full(tmp_path, writer, fallback=False, hooks=hooks)

    talk.turn("More.")

    assert hooks.told == ["pre auto", "start", "post"]
    assert "Mind the parser." in json.dumps(writer.bodies[0])
    assert "The build is green." in str(talk.work.state.messages[1].content)


def test_a_hook_that_forbids_it_is_a_failure(tmp_path: Path) -> None:
    talk, _ = near_full(tmp_path, Writer(), fallback=False, hooks=Listening("not now"))

    assert "not now" in talk.turn("More.").warnings[0]
    assert compacted(talk) == []
