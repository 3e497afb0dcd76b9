"""Sizes of pictures and documents from their base64."""

from __future__ import annotations

import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.transcript.media import Base64, document_pages, image_size, source_data


def data(body: bytes) -> Base64:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(body).decode()}
    return source_data(json.dumps(source).encode())


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 6, 0, 0, 0) + b"\0" * 50


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def jpeg(width: int, height: int, before: bytes = b"") -> bytes:
    frame = segment(0xC2, struct.pack(">BHHB", 8, height, width, 3) + b"\0" * 9)
    return b"\xff\xd8" + before + segment(0xC4, b"\0" * 20) + frame + b"\xff\xda" + b"\0" * 30


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + body + b"\0" * 20


@pytest.mark.parametrize(
    ("body", "size"),
    [
        pytest.param(png(1280, 720), (1280, 720), id="png"),
        pytest.param(b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0" * 30, (640, 480), id="gif"),
        pytest.param(webp(b"VP8X", b"\0" * 4 + b"\x7f\x07\x00\x37\x04\x00"), (1920, 1080), id="webp extended"),
        pytest.param(webp(b"VP8L", b"\x2f" + struct.pack("<I", 799 | 599 << 14)), (800, 600), id="webp lossless"),
        pytest.param(webp(b"VP8 ", b"\0" * 6 + struct.pack("<HH", 300, 200)), (300, 200), id="webp lossy"),
        pytest.param(webp(b"ALPH", b""), (0, 0), id="webp of another kind"),
        pytest.param(jpeg(1421, 1999), (1421, 1999), id="jpeg"),
        pytest.param(jpeg(90, 60, segment(0xE1, b"x" * 60_000)), (90, 60), id="jpeg behind exif"),
        pytest.param(jpeg(90, 60, b"\xff\xff\x01"), (90, 60), id="jpeg with fill bytes and a bare marker"),
        pytest.param(b"\xff\xd8\x00" + b"\0" * 40, (0, 0), id="jpeg without markers"),
        pytest.param(b"\xff\xd8" + segment(0xE0, b"") * 300, (0, 0), id="jpeg without end"),
        pytest.param(b"\xff\xd8", (0, 0), id="jpeg cut"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + b"\0" * 40, (0, 0), id="png without header"),
        pytest.param(b"BM" + b"\0" * 60, (0, 0), id="other"),
        pytest.param(b"", (0, 0), id="empty"),
    ],
)
def test_pictures_have_the_size_that_their_header_says(body: bytes, size: tuple[int, int]) -> None:
    assert image_size(data(body)) == size


@pytest.mark.parametrize(
    "source",
    [
        b'{"type":"url","url":"https://example.com/a.png"}',
        b'{"type":"file","file_id":"file_1"}',
        b"",
        b'{"data":"!',
    ],
)
def test_a_source_without_base64_has_no_size(source: bytes) -> None:
    assert image_size(source_data(source)) == (0, 0)


@given(st.binary(max_size=200), st.integers(0, 250), st.integers(0, 50))
def test_base64_is_read_at_any_place(body: bytes, at: int, count: int) -> None:
    assert data(body).read(at, count) == body[at : at + count]


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        pytest.param(b"%PDF-1.7 <</Type /Pages /Count 2>> <</Type/Page /X 1>> <</Type /Page>>", 2, id="page objects"),
        pytest.param(b"%PDF-1.7 " + b"\x80" * 200_000, 4, id="compressed objects"),
        pytest.param(b"%PDF-1.7", 1, id="at least one"),
        pytest.param(b"hello", 0, id="no pdf"),
    ],
)
def test_pages_of_a_pdf(body: bytes, pages: int) -> None:
    assert document_pages(data(body)) == pages
