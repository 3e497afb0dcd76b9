"""Secrets in JSON values and in messages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Damaged
from core.model import JSON, Message
from core.redact.values import redact_json, redact_messages
from core.transcript.decode import decode_json
from tests.shared import SHARED

CASE = Path(__file__).parents[1] / "data" / "cases" / "secret-1.jsonl"
SECRETS = ("ghp_EX", "sk-ant-EX", "p4ssw0rd", "AKIAEX", "hunter2", "MIIEX", "PRIVATE KEY")


def test_every_secret_of_a_row_is_found_where_it_is() -> None:
    rows = [msgspec.json.decode(line) for line in CASE.read_bytes().splitlines() if line]

    found = [(n, *place.path, place.hit.kind) for n, row in enumerate(rows) for place in redact_json(row)[1]]

    assert found == [
        (0, "message", "content", "github-token"),
        (1, "message", "content", 0, "input", "command", "anthropic-key"),
        (1, "message", "content", 0, "input", "command", "url-password"),
        (2, "toolUseResult", "stdout", "aws-key"),
        (2, "toolUseResult", "stdout", "url-password"),
        (2, "toolUseResult", "stdout", "private-key"),
        (2, "message", "content", 0, "content", "aws-key"),
        (2, "message", "content", 0, "content", "url-password"),
        (2, "message", "content", 0, "content", "private-key"),
    ]
    clean = str([redact_json(row)[0] for row in rows])
    assert not [secret for secret in SECRETS if secret in clean]
    assert "AWS_ACCESS_KEY_ID=[REDACTED:aws-key]" in clean
    assert "PORT=8443" in clean
    assert "SHA=0123456789abcdef0123456789abcdef01234567" in clean


def test_the_value_that_was_given_stays_as_it_was() -> None:
    value: JSON = {"a": [{"password": "hunter2"}], "b": 1}

    new, places = redact_json(value)

    assert new == {"a": [{"password": "[REDACTED:password]"}], "b": 1}
    assert value == {"a": [{"password": "hunter2"}], "b": 1}
    assert [p.path for p in places] == [("a", 0, "password")]


def test_items_of_a_list_have_the_name_of_the_list() -> None:
    assert redact_json({"passwords": ["hunter2"], "password": ["hunter2"]})[0] == {
        "passwords": ["hunter2"],
        "password": ["[REDACTED:password]"],
    }


def test_pictures_signatures_and_encrypted_parts_are_left_alone() -> None:
    token = "ghp_" + "aB3dE5gH7jK9" * 3
    value: JSON = [
        {"type": "base64", "data": token},
        {"type": "redacted_thinking", "data": token},
        {"type": "thinking", "thinking": "", "signature": token},
    ]

    assert redact_json(value) == (value, [])
    assert redact_json({"type": "other", "data": token})[1]


def test_a_value_of_any_depth_is_redacted() -> None:
    value: JSON = "PASSWORD=hunter2"
    for _ in range(5_000):
        value = [value]

    new, places = redact_json(value)

    assert len(places[0].path) == 5_000
    while isinstance(new, list):
        new = new[0]
    assert new == "PASSWORD=[REDACTED:password]"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("PASSWORD=hunter2"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "token"]), inner, max_size=2),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_a_value_without_secrets_is_the_same_object_and_one_with_some_has_none_afterwards(value: JSON) -> None:
    new, places = redact_json(value)

    assert (new is value) == (not places)
    assert redact_json(new) == (new, [])
    assert len(places) == str(value).count("hunter2")


def test_messages_without_secrets_are_the_same_objects() -> None:
    clean = Message("user", "prompt", ({"type": "text", "text": "hello"},), ("u1",))
    secret = Message("assistant", "response", ({"type": "tool_use", "id": "t", "input": {"token": "x"}},), ("u2",))
    call = Message(
        "assistant", "response", ({"type": "tool_use", "id": "t", "input": {"password": "hunter2"}},), ("u3",)
    )

    new = redact_messages([clean, secret, call])

    assert new[0] is clean
    assert new[1] is secret
    assert new[2].content == ({"type": "tool_use", "id": "t", "input": {"password": "[REDACTED:password]"}},)
    assert new[2].uuids == ("u3",)


@pytest.mark.real
def test_hardly_anything_is_taken_for_a_secret_in_real_transcripts() -> None:
    files = sorted((SHARED / "real").glob("*.jsonl"))
    if not files:
        pytest.skip(f"no transcripts in {SHARED}")
    found = set()
    for line in (line for path in files for line in path.read_bytes().splitlines()):
        try:
            value = decode_json(line)
        except Damaged:  # there is one
            continue
        for place in redact_json(value)[1]:
            text: JSON = value
            for key in place.path:
                text = text[key]  # type: ignore[index]
            found.add(str(text)[place.hit.start : place.hit.end])

    assert len(found) <= 5
