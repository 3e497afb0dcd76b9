"""What is done when the API refuses: what goes, in which order, how often, and when the error is shown after all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.api.endpoint import Reply
from core.errors import ApiError, FailureKind
from core.model import JSON, Block, Message, Usage, block_text
from core.stages.base import Plan, Scene
from core.stages.collapse import Collapse
from core.stages.read_dedup import ReadDedup
from core.stages.tool_budget import ToolBudget
from core.turn.events import Recovered
from core.turn.journal import Journal
from core.turn.loop import Conversation
from core.turn.request import RequestOptions
from tests.stages.build import History, image
from tests.turn.fake import Fake, conversation, too_long

LINE = "def alpha_{0}(x): return x + {0}  # line {0}\n"


def text_of(chars: int, seed: int = 0) -> str:
    line = LINE.format(seed)
    return (line * (chars // len(line) + 1))[:chars]


def long_history(rounds: int, chars: int = 9_000, turns: int = 4) -> History:
    made = History()
    for number in range(rounds):
        if number % (rounds // turns) == 0:
            made.prompt(f"Request {number}: always keep the tests green.")
        path = f"/srv/app/f{number % 7}.py"
        made.use(f"t{number}", "Read", text_of(chars, number), file_path=path)
        if number % (rounds // turns) == rounds // turns - 1:
            made.answer(f"Step {number} is done.")
    return made


def reactive(folder: Path, fake: Fake, made: History, **fields: Any) -> Conversation:
    """Nothing is done before the API refuses."""
    fields = {"stages": (), "reactive_only": True, **fields}
    return conversation(folder, fake, Journal("s", made.messages), **fields)


def shown(talk: Conversation) -> str:
    return "\n".join(block_text(b) for m in talk.work.scene().view().messages for b in m.content)


class Waiting(Collapse):
    """Folds nothing by itself."""

    def plan(self, scene: Scene) -> Plan:
        return Plan(self.name)


@pytest.mark.parametrize("stages", [(), (Waiting(),)], ids=["peel", "drain"])
@pytest.mark.parametrize("factor", [1.0, 1.3, 0.8])
@pytest.mark.parametrize("says_figures", [True, False])
def test_a_prompt_that_is_too_long_is_made_to_fit(
    stages: tuple[Any, ...], factor: float, says_figures: bool, tmp_path: Path
) -> None:
    fake = Fake(window_tokens=60_000, factor=factor, says_figures=says_figures)
    talk = reactive(tmp_path, fake, long_history(40), stages=stages)

    result = talk.turn("Now fix the login bug.")

    assert result.reply.text == "Done."
    assert 1 <= fake.refused <= (1 if says_figures else 3)
    assert fake.count(fake.bodies[-1]) <= fake.window_tokens
    said = shown(talk)
    assert "Request 0: always keep the tests green." in said
    assert "Now fix the login bug." in said
    (event,) = result.recovered
    assert (event.asked_tokens is not None) is says_figures
    assert event.rungs[0] == ("drain" if stages else "peel")
    assert event.removed


def test_the_error_itself_is_nowhere_and_what_went_is_told_and_stored(tmp_path: Path) -> None:
    fake = Fake(window_tokens=60_000)
    talk = reactive(tmp_path, fake, long_history(40))

    (event,) = talk.turn("Go on.").recovered

    assert "prompt is too long" not in shown(talk)
    assert "What follows was peeled off" in shown(talk)
    stored = {body.id for body in talk.work.store.bodies()}
    assert {i for i in event.removed if i.startswith("t")} <= stored


def test_a_second_refusal_takes_the_next_steps_and_no_step_is_taken_twice(tmp_path: Path) -> None:
    made = long_history(40)
    fake = Fake(window_tokens=400_000, failures=[too_long(150_000, 60_000)] * 9)
    talk = reactive(tmp_path, fake, made)

    with pytest.raises(ApiError, match="prompt is too long"):
        talk.turn("Go on.")

    assert talk.work.state.rungs == {"clip", "drain", "peel", "peel-more", "peel-all", "summary"}
    assert len(fake.bodies) <= 5
    sizes = [fake.count(b) for b in fake.bodies]
    assert sizes == sorted(sizes, reverse=True)
    assert "Go on." in shown(talk)


def test_the_next_turn_may_climb_again(tmp_path: Path) -> None:
    fake = Fake(window_tokens=400_000, failures=[too_long(150_000, 60_000)] * 9)
    talk = reactive(tmp_path, fake, long_history(40))
    with pytest.raises(ApiError):
        talk.turn("Go on.")
    fake.failures.clear()

    assert talk.turn("And now?").reply.text == "Done."
    assert talk.work.state.rungs == frozenset()


@pytest.mark.parametrize("kind", ["rate", "overloaded", "network", "auth", "spend", "request", "deadline", "cancelled"])
def test_what_no_smaller_request_would_help_is_shown_at_once(kind: FailureKind, tmp_path: Path) -> None:
    fake = Fake(failures=[ApiError(kind, "no", asked_tokens=300_000, limit_tokens=200_000)])
    talk = reactive(tmp_path, fake, long_history(8))

    with pytest.raises(ApiError, match="no"):
        talk.turn("Go on.")

    assert len(fake.bodies) == 1
    assert talk.work.state.rungs == frozenset()


def test_where_nothing_may_be_compacted_the_error_is_shown(tmp_path: Path) -> None:
    fake = Fake(window_tokens=60_000)
    talk = reactive(tmp_path, fake, long_history(40), compaction=False)

    with pytest.raises(ApiError):
        talk.turn("Go on.")

    assert len(fake.bodies) == 1


def calling(name: str, given: dict[str, JSON], times: int = 1) -> Any:
    def script(fake: Fake, _body: Mapping[str, JSON]) -> Sequence[Block] | str:
        called = sum(b["type"] == "tool_use" for m in fake.bodies[-1]["messages"] for b in m["content"])
        return [{"type": "tool_use", "id": f"c{called}", "name": name, "input": given}] if called < times else "Done."

    return script


def answering(content: str) -> Any:
    return lambda calls: [{"type": "tool_result", "tool_use_id": c["id"], "content": content} for c in calls]


@pytest.mark.parametrize("stages", [(), (ToolBudget(), ReadDedup(), Collapse())], ids=["bare", "all"])
def test_one_newest_file_larger_than_the_window_is_clipped_and_points_to_itself(
    stages: tuple[Any, ...], tmp_path: Path
) -> None:
    fake = Fake(calling("Read", {"file_path": "/srv/app/huge.log"}), window_tokens=60_000)
    talk = reactive(tmp_path, fake, History(), stages=stages, tools=answering(text_of(600_000)))

    result = talk.turn("Read the log.")

    assert result.reply.text == "Done."
    assert [e.rungs for e in result.recovered] == [("clip",)]
    assert "read the part of /srv/app/huge.log that is needed" in shown(talk)
    assert len(shown(talk)) < 5_000
    assert "Read the log." in shown(talk)


def test_another_newest_result_is_stored_and_previewed(tmp_path: Path) -> None:
    fake = Fake(calling("Bash", {"command": "make"}), window_tokens=60_000)
    talk = reactive(tmp_path, fake, History(), tools=answering(text_of(600_000)))

    result = talk.turn("Make it.")

    assert [e.removed for e in result.recovered] == [("c0",)]
    assert "<persisted-output>" in shown(talk)
    body = next(b for b in talk.work.store.bodies() if b.id == "c0")
    assert talk.work.store.read(body).decode() == text_of(600_000)


def test_a_clip_comes_before_all_that_is_old(tmp_path: Path) -> None:
    fake = Fake(calling("Bash", {"command": "make"}, times=21), window_tokens=60_000)
    talk = reactive(tmp_path, fake, long_history(20, 1_000), tools=answering(text_of(600_000)))
    before = talk.work.state.messages

    talk.turn("Make it.")

    assert talk.work.state.messages[: len(before)] == before


def pictures(count: int) -> History:
    made = History()
    for number in range(count):
        made.prompt(f"See {number}.", image(f"picture {number}".encode() * 30)).answer("Seen.")
    return made


def media_error(said: str = "image exceeds 5 MB maximum: 9 bytes > 5 bytes") -> ApiError:
    return ApiError("media", said)


def images_in(body: Mapping[str, Any]) -> int:
    return sum(b["type"] == "image" for m in body["messages"] for b in m["content"])


def test_images_go_in_three_passes_the_newest_of_the_user_last(tmp_path: Path) -> None:
    fake = Fake(failures=[media_error("too many images and documents"), media_error("too many images and documents")])
    talk = reactive(tmp_path, fake, pictures(3))
    prompt: list[Block] = [{"type": "text", "text": "And these?"}, image(b"a" * 90), image(b"b" * 50)]

    result = talk.turn(prompt)

    assert [images_in(b) for b in fake.bodies] == [5, 2, 1]
    assert [e.rungs for e in result.recovered] == [("media-old", "media-large")]
    assert {i for e in result.recovered for i in e.removed} == {b.id for b in talk.work.store.bodies()}
    again = Journal.load(talk.work.journal.dump())
    assert conversation(tmp_path, fake, again, stages=()).work.body() == talk.work.body()


def test_the_last_pass_takes_all_images_and_then_the_error_is_shown(tmp_path: Path) -> None:
    fake = Fake(failures=[media_error("too many images and documents")] * 9)
    talk = reactive(tmp_path, fake, pictures(2))

    with pytest.raises(ApiError, match="too many images"):
        talk.turn([{"type": "text", "text": "This?"}, image(b"new" * 30)])

    assert [images_in(b) for b in fake.bodies] == [3, 1, 0]


@pytest.mark.parametrize(("pictures_bytes", "first"), [(90_000, "media-old"), (900, "peel")])
def test_a_body_of_too_many_bytes_loses_what_most_of_them_are(pictures_bytes: int, first: str, tmp_path: Path) -> None:
    made = long_history(8)
    for number in range(3):
        made.prompt(f"See {number}.", image(bytes([number]) * pictures_bytes)).answer("Seen.")
    fake = Fake(failures=[ApiError("too-long", "Request exceeds the maximum size")])

    (event,) = reactive(tmp_path, fake, made).turn("Go on.").recovered

    assert event.rungs == (first,)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("image exceeds 5 MB maximum: 9000 bytes > 300 bytes", 1),
        ("image dimensions exceed max allowed size: 700 pixels", 0),
        ("At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels", 2),
    ],
)
def test_a_limit_that_is_named_says_which(said: str, kept: int, tmp_path: Path) -> None:
    from tests.stages.build import PNG

    fake = Fake(failures=[media_error(said)] * (kept < 2))
    talk = reactive(tmp_path, fake, History())

    talk.turn([{"type": "text", "text": "These?"}, image(PNG), image(PNG + b"x" * 900)])

    assert images_in(fake.bodies[-1]) == kept


def test_an_answer_gets_less_room_where_that_is_what_is_missing(tmp_path: Path) -> None:
    error = ApiError("output-room", "no room", asked_tokens=210_000, limit_tokens=200_000)
    fake = Fake(failures=[error])
    talk = reactive(tmp_path, fake, long_history(8))

    assert [e.rungs for e in talk.turn("Go on.").recovered] == [("max-tokens",)]

    assert [b["max_tokens"] for b in fake.bodies] == [20_000, 10_000]
    talk.turn("And?")
    assert fake.bodies[-1]["max_tokens"] == 10_000


def test_a_model_that_writes_less_is_asked_for_no_more_than_it_can(tmp_path: Path) -> None:
    fake = Fake(failures=[ApiError("output-room", "no", asked_tokens=20_000, limit_tokens=8_192)])
    talk = reactive(tmp_path, fake, long_history(8))

    talk.turn("Go on.")

    assert fake.bodies[-1]["max_tokens"] == 8_192


def test_an_answer_that_has_the_least_room_already_gets_no_less(tmp_path: Path) -> None:
    error = ApiError("output-room", "no room")
    fake = Fake(failures=[error])
    talk = reactive(tmp_path, fake, long_history(30), request=RequestOptions(max_tokens=4_096))

    (event,) = talk.turn("Go on.").recovered

    assert event.rungs == ("peel",)
    assert fake.bodies[-1]["max_tokens"] == 4_096


def test_less_room_than_that_is_made_by_what_goes(tmp_path: Path) -> None:
    error = ApiError("output-room", "no room", asked_tokens=120_000, limit_tokens=100_000)
    fake = Fake(failures=[error, error])
    talk = reactive(tmp_path, fake, long_history(30))

    (event,) = talk.turn("Go on.").recovered

    assert event.rungs == ("max-tokens", "peel")


def thoughtful() -> History:
    made = History().prompt("Go.")
    for number in range(4):
        made.use(f"t{number}", "Bash", "ok", thinking=f"Thought {number}.", command="make")
    return made.answer("Made.", thinking="Thought 4.")


def thinking_error(said: str) -> ApiError:
    return ApiError("thinking", said)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("messages.5.content.0: Invalid `signature` in `thinking` block", ["Thought 0.", "Thought 1."]),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", []),
        ("a thinking block is bound to a different conversation", []),
    ],
)
def test_the_named_thinking_and_all_behind_it_goes_and_it_is_asked_once_more(
    said: str, left: list[str], tmp_path: Path
) -> None:
    fake = Fake(failures=[thinking_error(said)])
    talk = reactive(tmp_path, fake, thoughtful())

    (event,) = talk.turn("On.").recovered

    assert [b["thinking"] for m in fake.bodies[-1]["messages"] for b in m["content"] if b["type"] == "thinking"] == left
    assert len(event.removed) == 5 - len(left)


def test_thinking_is_stripped_once_a_turn(tmp_path: Path) -> None:
    fake = Fake(failures=[thinking_error("no"), thinking_error("no again")])

    with pytest.raises(ApiError, match="no again"):
        reactive(tmp_path, fake, thoughtful()).turn("On.")


def test_a_refusal_for_thinking_that_is_not_there_is_shown(tmp_path: Path) -> None:
    fake = Fake(failures=[thinking_error("no")])

    with pytest.raises(ApiError, match="no"):
        reactive(tmp_path, fake, long_history(8)).turn("On.")


def test_an_answer_that_was_cut_at_the_window_is_asked_for_again_with_more_room(tmp_path: Path) -> None:
    cut = Reply(({"type": "text", "text": "Half an"},), "model_context_window_exceeded", Usage(59_000, 0, 0, 900))
    fake = Fake(lambda fake, _body: cut if len(fake.bodies) == 1 else "Whole.", window_tokens=60_000, factor=0.2)
    retries: list[str] = []
    talk = reactive(tmp_path, fake, long_history(60), on_retry=retries.append)

    result = talk.turn("Go on.")

    assert result.reply.text == "Whole."
    assert fake.refused == 0
    assert "Half an" not in shown(talk)
    assert len(retries) == 1
    assert isinstance(result.recovered[0], Recovered)


def test_where_nothing_can_go_the_cut_answer_is_the_answer(tmp_path: Path) -> None:
    cut = Reply(({"type": "text", "text": "Half an"},), "model_context_window_exceeded", Usage(59_000, 0, 0, 900))
    fake = Fake(lambda _fake, _body: cut, window_tokens=60_000)

    result = reactive(tmp_path, fake, History()).turn("Hi.")

    assert (result.reply.text, result.recovered) == ("Half an", ())


def test_in_a_loop_that_holds_thinking_all_is_summarised_and_the_request_stays_word_for_word(tmp_path: Path) -> None:
    made = long_history(30).prompt("Now fix the login bug.")
    made.use("x", "Bash", text_of(3_000), thinking="Hm.", command="make")
    fake = Fake(window_tokens=60_000)
    talk = reactive(tmp_path, fake, made)

    reply = talk._asked()[0]

    assert reply.text == "Done."
    kinds = [m.kind for m in talk.work.state.messages]
    assert kinds == ["summary", "prompt"]
    assert block_text(talk.work.state.messages[1].content[0]) == "Now fix the login bug."


def test_a_store_that_cannot_be_written_leaves_all_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "tool-results").write_text("a file where the folder would be")
    fake = Fake(window_tokens=60_000)
    talk = reactive(tmp_path, fake, long_history(40))
    before: tuple[Message, ...] = talk.work.state.messages

    with pytest.raises(ApiError, match="too long"):
        talk.turn("Go on.")

    assert talk.work.state.messages[:-1] == before
