"""Outlines of content blocks, from raw JSON and from decoded blocks."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context.tokens.estimate import Estimator
from core.context.tokens.models import lookup
from core.model import JSON, Block, block_text
from core.transcript.media import Media
from core.transcript.outline import (
    CODE,
    DENSE,
    DENSITIES,
    PROSE,
    BlockHead,
    BlockOutline,
    outline_blocks,
    outline_content,
    outline_heads,
)

texts = st.text(st.characters(codec="utf-8"), max_size=80).map(lambda s: s * 40)
values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, texts),
    st.builds(lambda t, s: {"type": "thinking", "thinking": t, "signature": s}, texts, texts),
    st.builds(lambda v: {"type": "tool_use", "id": "t1", "name": "Bash", "input": v}, values),
    st.builds(lambda v: {"type": "tool_result", "tool_use_id": "t1", "content": v}, values),
    st.builds(lambda t: {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": t}]}, texts),
    st.builds(lambda v: {"type": "image", "source": {"type": "base64", "data": v}}, texts),
    st.builds(lambda v: {"type": "of_the_future", "payload": v}, values),
)


def one(block: Block) -> BlockOutline:
    (outline,) = outline_blocks([block])
    return outline


@given(st.lists(blocks, max_size=4))
def test_raw_and_decoded_blocks_have_the_same_outline(content: list[Block]) -> None:
    raw = msgspec.json.encode(content)
    decoded = outline_blocks(content)

    assert outline_content(raw) == decoded
    assert outline_heads(msgspec.json.decode(raw, type=list[BlockHead])) in (decoded, None)


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_text_has_the_same_outline_however_it_is_escaped(text: str) -> None:
    ascii_only, plain = (json.dumps(text, ensure_ascii=e).encode() for e in (True, False))

    assert outline_content(ascii_only) == outline_content(plain)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=500))
def test_characters_are_counted_without_the_escapes_of_json(text: str) -> None:
    assert outline_content(json.dumps(text).encode())[0].chars == len(text)


def test_a_long_text_is_measured_by_a_sample_to_within_a_few_percent() -> None:
    text = "".join(f'line {n}: "quoted" C:\\dir\\file — {"é" * (n % 7)}\n' for n in range(5000))
    outline = one({"type": "text", "text": text})

    assert outline.chars == pytest.approx(len(text), rel=0.05)
    assert outline.wide == pytest.approx(len(text.encode()) - len(text), rel=0.25)


@pytest.mark.parametrize(
    ("text", "density"),
    [
        pytest.param("The cache is cold, so the whole prompt is written again.\n", PROSE, id="prose"),
        pytest.param("def read(path: Path) -> bytes:\n    return path.read_bytes()\n", CODE, id="code"),
        pytest.param('{"a":{"b":[1,2,{"c":"d"}]},"e":[]}\n', DENSE, id="json"),
        pytest.param("2026-11-29 08:15:42 pid 48213 took 17 of 9000 ms\n", DENSE, id="log"),
        pytest.param("", PROSE, id="empty"),
    ],
)
def test_density_tells_prose_from_code_from_data(text: str, density: float) -> None:
    assert abs(one({"type": "text", "text": text * 100}).density - density) < 0.5


@pytest.mark.parametrize("mark", ["=", "7"])
def test_density_rises_in_small_steps(mark: str) -> None:
    found = [one({"type": "text", "text": (mark * n).ljust(500, "a")}).density for n in range(180)]

    assert found == sorted(found)
    assert {PROSE, CODE, DENSE} <= {*found} <= {*DENSITIES}
    assert max(b - a for a, b in pairwise(found)) <= 0.25


def test_a_little_more_in_front_of_a_long_text_hardly_changes_its_estimate() -> None:
    lines = (f"`core/part.py`: it reads the rows, {'and so on ' * (n * 7 % 11 * 18 // 40)}\n" for n in range(150))
    text = "".join(lines)
    found = [
        Estimator(lookup("claude-opus-4-8")).tokens([one({"type": "text", "text": "x" * n + text})])
        for n in range(0, 120, 3)
    ]

    assert max(found) < 1.1 * min(found)


@pytest.mark.parametrize(
    ("text", "wide"),
    [("abc", 0), ("é", 1), ("я", 1), ("語", 2), ("👍", 3), ("→", 0), ("─┼", 0), ("═", 0), ("✅", 2)],
)
def test_wide_bytes_count_other_scripts_but_no_arrows_and_boxes(text: str, wide: int) -> None:
    assert one({"type": "text", "text": text}).wide == wide


def test_ids_and_names_of_calls_are_kept() -> None:
    call, result = outline_blocks(
        [
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/a"}},
            {"type": "tool_result", "tool_use_id": "t1", "content": "body"},
        ]
    )

    assert (call.tool_id, call.tool_name, call.chars) == ("t1", "Read", len('{"file_path":"/a"}'))
    assert (result.tool_id, result.chars) == ("t1", 4)


def test_a_tool_result_holds_what_is_nested_in_it() -> None:
    image: Block = {"type": "image", "source": {"type": "url", "url": "x"}}
    outline = one({"type": "tool_result", "content": [{"type": "text", "text": "seen 語"}, image]})

    assert outline == BlockOutline("tool_result", 6, PROSE, 2, media=(Media(),))


def test_hidden_thinking_is_sized_by_its_signature() -> None:
    hidden = one({"type": "thinking", "thinking": "", "signature": "A" * 2000})
    shown = one({"type": "thinking", "thinking": "x" * 1000, "signature": "A" * 400})

    assert hidden.chars == 2002 * 3 // 4 - 180
    assert shown.chars == 1000


def test_unknown_blocks_count_by_their_json() -> None:
    block: Block = {"type": "of_the_future", "payload": "x" * 5000}
    outline = one(block)

    assert outline.kind == "other"
    assert outline.chars == pytest.approx(len(json.dumps(block)), rel=0.01)


def test_a_pdf_counts_by_its_pages_and_a_text_document_by_its_text() -> None:
    pdf = "JVBERi0xLjQKMSAwIG9iago8PC9UeXBlIC9QYWdlPj4KZW5kb2JqCg=="
    assert one({"type": "document", "source": {"type": "base64", "data": pdf}}).media == (Media(pages=1),)

    text = one({"type": "document", "source": {"type": "text", "data": "x" * 900}})
    assert text.media == ()
    assert text.chars > 900


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        pytest.param(b'"a prompt"', ["text"], id="string"),
        pytest.param(b"[]", [], id="no blocks"),
        pytest.param(b"null", [], id="null"),
        pytest.param(b"", [], id="nothing"),
        pytest.param(b'{"type":"text"}', ["other"], id="an object"),
        pytest.param(b'[{"type":5},"x",null]', ["other"] * 3, id="blocks of wrong types"),
        pytest.param(b'[{"type":"text"', ["other"], id="torn"),
        pytest.param(b'[{"type":"text","text":"\xff\xfe"}]', ["text"], id="bad bytes"),
        pytest.param(b'[{"type":"text","text":"\\ud83d"}]', ["text"], id="lone surrogate"),
        pytest.param(b'[{"type":"text","text":null}]', ["text"], id="text that is none"),
        pytest.param(b'"torn \\u00', ["text"], id="torn escape"),
    ],
)
def test_any_content_has_an_outline(raw: bytes, kinds: list[str]) -> None:
    assert [outline.kind for outline in outline_content(raw)] == kinds


@given(st.binary(max_size=200))
def test_no_bytes_at_all_are_an_error(raw: bytes) -> None:
    for outline in outline_content(raw):
        assert outline.chars >= 0
        assert outline.wide >= 0


def nested(depth: int) -> Block:
    """A result in a result in a result ..."""
    block: Block = {"type": "text", "text": "inmost"}
    for _ in range(depth):
        block = {"type": "tool_result", "tool_use_id": "t1", "content": [block]}
    return block


def test_results_in_results_are_measured_by_their_length_however_deep() -> None:
    shallow, deep = one(nested(3)), one(nested(400))

    assert shallow.kind == deep.kind == "tool_result"
    assert deep.chars > 100 * shallow.chars
    assert block_text(nested(400)) == "inmost"


@pytest.mark.parametrize("depth", [900, 975, 1_020, 5_000])
def test_what_is_nested_too_deeply_to_be_decoded_is_measured_by_its_length(depth: int) -> None:
    lists = b"[" * depth + b'"x"' + b"]" * depth
    for content in (lists, b'[{"type":"tool_result","tool_use_id":"t1","content":' + lists + b"}]"):
        assert sum(outline.chars for outline in outline_content(content)) > depth
