"""Builds the bundle that Claude Desktop installs: the program, its manifest and its picture in one file.

    python -m scripts.build_bundle [FOLDER]

The same sources give the same bytes.  Desktop brings Python and installs what pyproject.toml names.
"""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "foldmark.mcpb"
PACKAGES = ("core", "cli", "mcp_server")
FILES = ("foldmark.py", "pyproject.toml", "README.md", "LICENSE")
_EPOCH = (2026, 1, 1, 0, 0, 0)
ICON_PX = 512
_PAPER, _FOLD, _MARK = (250, 248, 242, 255), (214, 206, 190, 255), (199, 80, 46, 255)
_NOTHING = (0, 0, 0, 0)


def main(args: list[str]) -> int:
    """Write the bundle into a folder (build/)."""
    folder = Path(args[0]) if args else ROOT / "build"
    folder.mkdir(parents=True, exist_ok=True)
    print(build(folder / NAME))
    return 0


def build(path: Path) -> Path:
    """Write the bundle; an older one gives way."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in sorted(contents().items()):
            bundle.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return path


def contents() -> dict[str, bytes]:
    """Everything in it, by name."""
    found = {name: (ROOT / name).read_bytes() for name in FILES}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.parent.name != "bundle":
                found[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    found["manifest.json"] = (ROOT / "mcp_server" / "bundle" / "manifest.json").read_bytes()
    found["icon.png"] = icon()
    return found


def icon() -> bytes:
    """The picture, as PNG: a sheet with a folded corner and a mark at its edge."""
    rows = [b"".join(bytes(_pixel(x, y)) for x in range(ICON_PX)) for y in range(ICON_PX)]
    header = struct.pack(">IIBBBBB", ICON_PX, ICON_PX, 8, 6, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _pixel(x: int, y: int) -> tuple[int, int, int, int]:
    left, right, top, bottom, fold = 96, 416, 48, 464, 112
    if not (left <= x < right and top <= y < bottom):
        return _NOTHING
    beyond = (x - (right - fold)) - (y - top)  # above 0: outside the cut corner
    if beyond > 0:
        return _NOTHING
    if x >= right - fold and y < top + fold:
        return _FOLD
    if 144 <= x < 200 and y < 360 and (y < 332 or abs(x - 172) >= y - 332):
        return _MARK
    return _PAPER


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
