"""The example of a turn loop of one's own, against a scripted API: what it switches on is seen at work."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.api.anthropic import Access, AnthropicEndpoint
from core.model import JSON
from core.stages.microcompact import Form
from core.testing import ScriptedApi
from core.testing.answers import Answer, text, tool_call
from core.testing.api import Request

EXAMPLE = Path(__file__).parents[2] / "examples" / "turn_loop.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("turn_loop", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "docs").mkdir(parents=True)
    (made / "CLAUDE.md").write_text("Name the line.")
    (made / "docs" / "CLAUDE.md").write_text("These are drafts.")
    for number in range(30):
        (made / f"f{number}.txt").write_text(f"file {number} says so\n" * 700)
    (made / "docs" / "a.txt").write_text("alpha")
    return made


def agent(example: ModuleType, folder: Path, api: ScriptedApi, clock: Clock, *more: Any) -> Any:
    endpoint = AnthropicEndpoint(Access("any", base_url=api.url), clock=time.monotonic, sleep=time.sleep)
    return example.Agent(folder, endpoint, clock, *more)


def reading(*names: str) -> Iterator[Answer]:
    for number, name in enumerate(names):
        yield tool_call("Read", {"file_path": name}, call_id=f"toolu_{name.replace('.', '_')}_{number}")


def scripted(answers: Sequence[Answer | Callable[[Request], Answer]]) -> ScriptedApi:
    return ScriptedApi([*answers])


def sent(body: Mapping[str, JSON]) -> str:
    return json.dumps(body)


def test_it_reads_answers_and_tells_what_changed(example: ModuleType, folder: Path, clock: Clock) -> None:
    with scripted([*reading("docs/a.txt", "none.txt"), text("alpha"), text("beta")]) as api:
        mine = agent(example, folder, api, clock)
        assert mine.ask("What is in docs?") == "alpha\n[context: ok]"
        first, read, missing = api.bodies
        assert "Name the line." in sent(first)
        assert "These are drafts." not in sent(first)
        assert "These are drafts." in sent(read)
        assert "no such text file" in sent(missing)

        (folder / "docs" / "a.txt").write_text("beta")
        clock.now += timedelta(days=1)
        assert mine.ask("And now?").startswith("beta")
        assert "-alpha\\n+beta" in sent(api.bodies[-1])
        assert "Today is 2026-03-02" in sent(api.bodies[-1])


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if k != "cache_control"}
    return [without_marks(v) for v in value] if isinstance(value, list) else value


def test_after_a_restart_it_goes_on_with_the_same_bytes(example: ModuleType, folder: Path, clock: Clock) -> None:
    with scripted([*reading("f1.txt"), text("So."), text("Still so.")]) as api:
        agent(example, folder, api, clock).ask("What is in f1?")
        agent(example, folder, api, clock).ask("And?")

        before, after = (without_marks(body["messages"]) for body in api.bodies[-2:])
        assert after[: len(before)] == before
        assert api.bodies[-2]["system"] == api.bodies[-1]["system"]
    assert (folder / ".agent").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("form", "key"), [("public", "clear_tool_uses_20250919"), ("pinned", "cache_edits")])
def test_old_results_leave_the_request_at_the_server(
    form: Form, key: str, example: ModuleType, folder: Path, clock: Clock
) -> None:
    names = [f"f{number}.txt" for number in range(25)]
    with scripted([*reading(*names), text("All read.")]) as api:
        agent(example, folder, api, clock, form).ask("Read all.")

        assert any(key in sent(body) for body in api.bodies)
        assert "file 0 says so" in sent(api.bodies[-1])


def test_after_a_long_pause_old_results_are_cleared(example: ModuleType, folder: Path, clock: Clock) -> None:
    names = [f"small{number}.txt" for number in range(8)]
    for name in names:
        (folder / name).write_text(f"{name} is small\n" * 40)
    with scripted([*reading(*names), text("All read."), text("Yes.")]) as api:
        mine = agent(example, folder, api, clock)
        mine.ask("Read all.")
        assert "Old tool result content cleared" not in sent(api.bodies[-1])
        clock.now += timedelta(minutes=61)
        mine.ask("Sure?")

        assert sent(api.bodies[-1]).count("Old tool result content cleared") == 3


def snip_the_oldest(request: Request) -> Answer:
    """By the ids that user messages end with."""
    ids = re.findall(r"\[id:(\w+)\]", sent(request.body))
    return tool_call("snip_range", {"from_id": ids[1], "to_id": ids[4]}, call_id="toolu_snip")


def put_it_back(request: Request) -> Answer:
    found = re.search(r"snip-\w{8}", sent(request.body))
    assert found is not None
    return tool_call("put_back", {"id": found[0]}, call_id="toolu_back")


def test_the_model_takes_out_a_range_and_puts_it_back(example: ModuleType, folder: Path, clock: Clock) -> None:
    answers = [text(f"Answer {number}. " + "so it is " * 1_000) for number in range(14)]
    with scripted([*answers, snip_the_oldest, put_it_back, text("It is back.")]) as api:
        mine = agent(example, folder, api, clock)
        for number in range(14):
            mine.ask(f"Question {number}?")
        mine.ask("Go on.")

        whole, snipped, back = api.bodies[-3:]
        assert len(sent(snipped)) < 0.9 * len(sent(whole))
        assert "Answer 2." in sent(whole)
        assert "Answer 2." not in sent(snipped)
        assert "Answer 2." in sent(back)
        again = agent(example, folder, api, clock)
        assert again.work.state == mine.work.state


def test_what_goes_wrong_in_a_tool_is_told_to_the_model(example: ModuleType, folder: Path, clock: Clock) -> None:
    calls = [
        tool_call("snip_range", {"from_id": "nobody"}, call_id="toolu_1"),
        tool_call("put_back", {"id": "span-00000000"}, call_id="toolu_2"),
    ]
    with scripted([*calls, text("So be it.")]) as api:
        agent(example, folder, api, clock).ask("Tidy up.")

        assert sent(api.bodies[-1]).count('"is_error": true') == 2


def test_it_says_how_full_the_context_is(example: ModuleType, folder: Path, clock: Clock) -> None:
    with scripted([text("Read.")]) as api:
        said = agent(example, folder, api, clock, "content", 60_000).ask("word " * 12_000)

    assert said == "Read.\n[context: warning]"
