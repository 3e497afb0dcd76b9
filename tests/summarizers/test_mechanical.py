"""What code appends to a text of a model: all that the text does not say, in little room, and readable again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.model import Message
from core.summarizers.base import SummaryRequest
from core.summarizers.extractive.previous import read_back
from core.summarizers.extractive.sections import FOUND
from core.summarizers.mechanical import mechanical
from tests.summarizers.build import done, said, section, summary_of

MESSAGES: tuple[Message, ...] = (
    said("Never touch the folder /etc/live. Answer in German."),
    *done(
        "TodoWrite", todos=[{"content": "Write the docs", "status": "pending"}, {"content": "x", "status": "completed"}]
    ),
    *done("Edit", file_path="/w/app.py", old_string="a", new_string="def start_server():"),
    *done("Read", "class HttpServer: max_idle_time", file_path="/w/seen.py"),
    *done("Bash", "ok", command="pytest tests/test_app.py"),
)


def found(said: str = "", room: int = 6_000, *messages: Message) -> str:
    return mechanical(SummaryRequest(messages or MESSAGES), said, room)


def test_tasks_rules_changed_files_and_names_are_there() -> None:
    text = found()

    assert text.startswith(FOUND)
    assert section(text, "Tasks") == ["- (todo) Write the docs (pending)"]
    assert "- Never touch the folder /etc/live. Answer in German." in section(text, "Rules")
    assert [line for line in section(text, "Files") if "/w/app.py" in line and "start_server" in line]
    assert "/w/seen.py" not in "".join(section(text, "Files"))
    names = "".join(section(text, "Names"))
    assert "/w/seen.py" in names
    assert "max_idle_time" in names


def test_what_the_text_says_is_not_said_again() -> None:
    said = "I write the docs next; `/w/app.py` and /w/seen.py, `max_idle_time`; never touch the folder /etc/live."
    text = found(said + " Never touch the folder /etc/live.  Answer in German.")

    assert "Write the docs" not in text
    assert "Never touch" not in text
    assert "/w/app.py" not in text
    assert "max_idle_time" not in text
    assert "start_server" in text


def test_nothing_found_is_nothing_appended() -> None:
    assert found("", 6_000, said("hello")) == ""
    assert found("", 60) == ""


def test_the_next_summary_reads_it_back() -> None:
    text = f"A model said this.\n\n{found()}"
    earlier = read_back([text])

    assert [(i.tag, i.text) for i in earlier.of("tasks")] == [("todo", "Write the docs (pending)")]
    assert any(i.text.startswith("`/w/app.py`: edited") for i in earlier.of("files"))
    assert any("seen.py" in i.text for i in earlier.of("names"))
    assert any("A model said this" in i.text for i in earlier.of("findings"))
    again = summary_of(said("go on"), previous=text)
    assert "Write the docs (pending)" in again
    assert "max_idle_time" in again


MANY = [message for n in range(60) for message in done("Edit", f"some_name_{n}", file_path=f"/w/file_{n}.py", edits=[])]


@given(st.integers(0, 4_000), st.booleans())
def test_it_is_never_longer_than_its_room(room: int, many: bool) -> None:
    assert len(found("", room, *(MANY if many else MESSAGES))) <= room
