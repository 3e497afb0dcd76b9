"""Any bytes whatever give a result or an error that a person can read, never another exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import FoldmarkError, SessionNotFound
from core.transcript.formats import find_format, read
from core.transcript.formats.markdown import write_markdown
from core.transcript.formats.outgoing import write_messages

DATA = Path(__file__).parents[2] / "data" / "foreign"
SAMPLES = [p.read_bytes() for p in sorted(DATA.glob("*/*.json*")) if p.name != "expected.json"]


def _words() -> list[str]:
    """Every key and short text of the samples: what makes a made-up value look like a conversation."""
    found: dict[str, None] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                found[key] = None
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
        elif isinstance(value, str) and len(value) < 30:
            found[value] = None

    for sample in SAMPLES:
        text = sample.decode()
        for piece in [text, *text.split("\n")]:
            try:
                walk(json.loads(piece))
            except ValueError:
                continue
    return list(found)


WORDS = st.sampled_from(_words()) | st.text(max_size=3)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6), max_leaves=30
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any") / "file"


def _use(path: Path, data: bytes) -> None:
    """Reads a file as far as it goes and writes what was read."""
    path.write_bytes(data)
    try:
        if find_format(path).name == "claude-code":
            return
        try:
            conversation = read(path)
        except SessionNotFound:
            conversation = read(path, "1")
    except FoldmarkError:
        return
    for messages in (conversation.messages, conversation.active):
        json.loads(write_messages(messages, conversation.system, conversation.tools))
        write_markdown(messages, conversation.title, conversation.system).encode()
    for finding in conversation.findings:
        finding.message.encode()


@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b'{"messages":' * 400 + b"[]" + b"}" * 400)
@example(b'[{"role":"user","content":' + b"[" * 900 + b"]" * 900 + b"}]")
@example(b'{"info":{"id":NaN},"messages":[{"info":{"role":"user","time":{"created":Infinity}},"parts":[]}]}')
@example(b'[{"role":"user","content":"\\ud800"}]')
@example(b'\xef\xbb\xbf{"max_tokens":1,\r\n"messages":[{"role":"user","content":"a\0b"}]}\r\n\0\0')
def test_any_bytes(path: Path, data: bytes) -> None:
    _use(path, data)


@settings(max_examples=150)
@given(VALUES)
def test_any_json(path: Path, value: Any) -> None:
    _use(path, json.dumps(value).encode())


@settings(max_examples=150)
@given(st.sampled_from(SAMPLES), st.data())
def test_any_change_of_a_sample(path: Path, sample: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(sample)))
        end = data.draw(st.integers(start, min(len(sample), start + 200)))
        new = data.draw(st.binary(max_size=5) | VALUES.map(lambda v: json.dumps(v).encode()))
        sample = sample[:start] + new + sample[end:]
    _use(path, sample)


@settings(max_examples=150)
@given(st.integers(0, len(SAMPLES) - 1), st.data())
def test_any_value_in_the_place_of_another(path: Path, which: int, data: st.DataObject) -> None:
    lines = SAMPLES[which].split(b"\n")
    try:
        records = [json.loads(line) for line in lines if line.strip()]
    except ValueError:
        try:
            records = [json.loads(SAMPLES[which])]
        except ValueError:
            return
    spots = [spot for record in records for spot in _spots(record)]
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(spots))
        container[key] = data.draw(VALUES)
    _use(path, b"\n".join(json.dumps(r).encode() for r in records))


def _spots(value: Any) -> list[tuple[Any, Any]]:
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [spot for key in keys for spot in ((value, key), *_spots(value[key]))]


@pytest.mark.parametrize("end", range(0, 9_000, 150))
def test_any_cut_of_a_rollout(path: Path, end: int) -> None:
    _use(path, (DATA / "codex" / "sample.jsonl").read_bytes()[:end])
