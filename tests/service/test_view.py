"""The active view as an operation."""

from __future__ import annotations

from pathlib import Path

from core.service.session import opened
from core.service.view import ViewResult, view
from core.testing import Transcript
from core.transcript.projects import session_file

DATA = Path(__file__).parents[1] / "data"


def viewed(path: Path) -> ViewResult:
    with opened(session_file(path)) as session:
        return view(session)


def test_neighbours_of_one_role_are_one_message(tmp_path: Path) -> None:
    made = Transcript().prompt("One").note("Two").answer("Three")
    result = viewed(made.write(tmp_path / "a.jsonl"))

    assert [(m["role"], [b["text"] for b in m["content"]]) for m in result.messages] == [
        ("user", ["One", "Two"]),
        ("assistant", ["Three"]),
    ]
    assert result.warnings == []


def test_an_interrupted_call_is_completed_for_the_model_and_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    data = (DATA / "cases" / "pairs-3.jsonl").read_bytes()
    path.write_bytes(data)
    (block,) = viewed(path).messages[-1]["content"]

    assert (block["tool_use_id"], block["is_error"]) == ("toolu_dead", True)
    assert path.read_bytes() == data
    # the client wrote the real result after all
    made = Transcript().back_to("00000000-0000-4000-8000-000000000002").result("3 passed", "toolu_dead")
    made.rows[-1]["parentUuid"] = "00000000-0000-4000-8000-000000000002"
    path.write_bytes(data + made.data())
    (block,) = viewed(path).messages[-1]["content"]
    assert block["content"] == "3 passed"


def test_what_is_wrong_with_the_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(Transcript().prompt("One").data() + b'{"type":"user","uuid":"x"')
    assert any("torn" in line or "cut" in line for line in viewed(path).warnings)
    assert any(viewed(DATA / "foreign" / "codex" / "damaged.jsonl").warnings)


def test_metadata_alone_is_an_empty_view() -> None:
    assert viewed(DATA / "cases" / "boundary-6.jsonl").messages == []
