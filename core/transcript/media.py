"""The size of pictures and documents, from the first bytes of their base64."""

from __future__ import annotations

import binascii
import re

import msgspec

PDF_BYTES_PER_PAGE = 50_000
"""For a PDF whose page objects are compressed: a rough mean of text pages and scans; it only sizes the estimate."""

_DATA = re.compile(rb'"data"\s*:\s*"')
_PAGE = re.compile(rb"/Type\s*/Page(?![s\w])")
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset(range(0xD0, 0xD9)) | {0x01}
_MAX_JPEG_SEGMENTS = 200


class Media(msgspec.Struct, frozen=True, gc=False):
    """One picture (pixels; 0 x 0 where they could not be read) or, where `pages` is set, one document."""

    width: int = 0
    height: int = 0
    pages: int = 0


class Base64(msgspec.Struct, frozen=True):
    """Random access into base64 text, decoding only what is asked for."""

    text: bytes = b""
    start: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        """The length of what is encoded, in bytes (padding aside)."""
        return (self.end - self.start) * 3 // 4

    def read(self, at: int, count: int) -> bytes:
        """`count` bytes from `at` on, fewer at the end, none where the text is no base64."""
        first = self.start + at // 3 * 4
        last = min(self.start + -(-(at + count) // 3) * 4, self.end)
        try:
            return binascii.a2b_base64(self.text[first : max(last, first)])[at % 3 :][:count]
        except binascii.Error:
            return b""


def source_data(source: bytes) -> Base64:
    """The base64 in the raw JSON of a block's `source`; empty for a url, a file id or damaged JSON."""
    found = _DATA.search(source)
    if not found:
        return Base64()
    end = source.find(b'"', found.end())
    return Base64(source, found.end(), end if end >= 0 else len(source))


def image_size(data: Base64) -> tuple[int, int]:
    """Width and height in pixels of a PNG, JPEG, GIF or WebP; (0, 0) if they cannot be read."""
    head = data.read(0, 32)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if head.startswith((b"GIF87a", b"GIF89a")):
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp_size(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    return 0, 0


def _webp_size(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return 0, 0


def _jpeg_size(data: Base64) -> tuple[int, int]:
    """Walks the segments up to the frame header; what is between (EXIF, colour profiles) is jumped over."""
    at = 2
    for _ in range(_MAX_JPEG_SEGMENTS):
        segment = data.read(at, 9)
        if len(segment) < 9 or segment[0] != 0xFF:
            break
        marker = segment[1]
        if marker in _JPEG_FRAMES:
            return int.from_bytes(segment[7:9], "big"), int.from_bytes(segment[5:7], "big")
        bare = marker in _JPEG_BARE
        at += 1 if marker == 0xFF else 2 if bare else 2 + int.from_bytes(segment[2:4], "big")
    return 0, 0


def document_pages(data: Base64) -> int:
    """The pages of a PDF: its page objects, or a guess by its size where they are compressed; 0 if it is no PDF."""
    if not data.read(0, 5).startswith(b"%PDF"):
        return 0
    pages = len(_PAGE.findall(data.read(0, data.size)))
    return pages or max(1, data.size // PDF_BYTES_PER_PAGE)
