"""docs/json.md: it says what the commands print."""

from __future__ import annotations

from msgspec.structs import fields

from cli.main import COMMANDS
from core.service.session import SessionRef
from core.service.usage import Spent
from scripts import json_docs


def test_the_page_is_what_the_script_writes() -> None:
    assert json_docs.PAGE.read_text(encoding="utf-8") == json_docs.page(), "run python -m scripts.json_docs"


def test_every_command_is_in_it_but_those_that_speak_a_hosts_language() -> None:
    assert {*COMMANDS} - {"hook", "serve"} == {name.split()[0] for name in json_docs.COMMANDS if name}


def test_values_are_listed_and_said() -> None:
    page = json_docs.page()

    assert '| `how` | `"memory"`, `"full"`, `"partial"`, `"micro"`, `"none"` | memory: by the notes' in page
    states = '`"live"`, `"ready"`, `"compacted"`, `"foreign"`, `"empty"`, `"damaged"`'
    assert f"| `state` | {states} | live: a client has it open." in page
    assert "| SessionNotFound | 2 | No session answers to the name, or more than one does. |" in page
    assert "| ApiError | 1 | A model call that gave no answer: `kind` says what to do about it. |" in page
    assert page.count("### SessionRef\n") == 1


def test_the_same_has_the_same_key_in_all_results() -> None:
    kinds: dict[str, set[object]] = {}
    for result in json_docs.COMMANDS.values():
        for field in fields(result):
            kinds.setdefault(field.name, set()).add(field.type)

    assert (kinds["session"], kinds["usage"]) == ({SessionRef}, {Spent})
    assert not {*kinds} & {"source", "session_id", "remarks", "report"}
