from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Damaged
from core.model import JSON, Block
from core.transcript.blob import blob_of, media_blob, stored_blob


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_stored_as_it_is(value: str) -> None:
    contents: list[JSON] = [value, [{"type": "text", "text": value}]]
    for content in contents:
        blob = blob_of("toolu_a", content)
        assert (blob.file, blob.form, blob.kind) == ("toolu_a.txt", "text", "output")
        assert blob.content == value.encode()


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        [{"type": "text", "text": "a", "citations": []}],
        [{"type": "text", "text": 5}],
        {"type": "text", "text": "a"},
    ],
)
def test_all_else_is_stored_as_json(content: JSON) -> None:
    blob = blob_of("toolu_a", content)
    assert (blob.file, blob.form) == ("toolu_a.json", "JSON")
    assert msgspec.json.decode(blob.content) == content


@pytest.mark.parametrize("ident", ["../up", "a/b", "", "a" * 200, "nul\0", "a.b", "ü", "a b"])
def test_an_id_that_is_no_plain_name_names_no_file(ident: str) -> None:
    blob = blob_of(ident, "text")
    assert blob.id == ident
    assert blob.file.startswith("output-")
    assert "/" not in blob.file
    assert blob.file != blob_of(f"{ident}x", "text").file


def test_a_lone_surrogate_is_a_question_mark() -> None:
    assert blob_of("a", "x\ud800").content == b"x?"
    assert blob_of("a", ["x\ud800"]).content == b'["x?"]'


def test_what_is_nested_too_deeply_is_refused() -> None:
    value: JSON = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Damaged):
        blob_of("a", value)


@pytest.mark.parametrize(
    ("media_type", "suffix"),
    [("image/png", "png"), ("image/jpeg", "jpg"), ("application/pdf", "pdf"), ("../x", "bin"), (None, "bin")],
)
def test_an_image_is_stored_decoded_under_the_name_of_its_content(media_type: str | None, suffix: str) -> None:
    block: Block = {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": "AAEC"}}
    blob = stored_blob("whatever", block)
    assert blob == media_blob(block)
    assert (blob.content, blob.kind, blob.form) == (b"\0\1\2", "image", "media")
    assert blob.file == f"{blob.id}.{suffix}"
    assert blob.id.startswith("media-")


@pytest.mark.parametrize(
    "source",
    [{"type": "base64", "data": "no base64!"}, {"type": "base64"}, {"type": "url", "url": "https://x"}, None, "text"],
)
def test_what_holds_no_bytes_is_stored_as_its_json(source: JSON) -> None:
    block: Block = {"type": "document", "source": source}
    blob = media_blob(block)
    assert blob.form == "JSON"
    assert blob.file == f"{blob.id}.json"
    assert msgspec.json.decode(blob.content) == block
